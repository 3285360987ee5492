/** Whole jobs in accounts and on machines that have something odd about them: what becomes of them, and what they say. */
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { CloudDeployment, QUICK, type DeploymentWishes } from './deployment'
import { itInAll } from '../support/selection'

jest.setTimeout(300_000)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

async function inWorld(
  { world, settings }: DeploymentWishes,
  body: (d: CloudDeployment) => Promise<void>,
): Promise<void> {
  const d = await CloudDeployment.start(at, {
    world: world ? world : undefined,
    settings: { ...QUICK, ...settings },
  })
  try {
    await body(d)
  } finally {
    await d.stop()
  }
}

const denying = (...actions: string[]): NonNullable<DeploymentWishes['world']> => ({
  users: {
    test: {
      accessKeyId: 'test',
      secretAccessKey: 'test',
      managed: ['AdministratorAccess'],
      policies: { no: { Statement: [{ Effect: 'Deny', Action: actions, Resource: '*' }] } },
    },
  },
})

/** Sessions of minutes would have the test wait. */
const SESSION = '10s'
const SESSION_NAMES = ['AWS_SESSION_TOKEN', 'AWS_CREDENTIAL_EXPIRATION']

/** Credentials of a session, as a shell has them: the SDK looks there again when they have ended. */
async function sessionOf(role: string): Promise<Record<string, string>> {
  const client = new STSClient({})
  const wish = { RoleArn: `arn:aws:iam::111122223333:role/${role}`, RoleSessionName: 'worker' }
  const { Credentials } = await client.send(new AssumeRoleCommand(wish))
  client.destroy()
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials!
  return {
    AWS_ACCESS_KEY_ID: AccessKeyId!,
    AWS_SECRET_ACCESS_KEY: SecretAccessKey!,
    AWS_SESSION_TOKEN: SessionToken!,
    AWS_CREDENTIAL_EXPIRATION: Expiration!.toISOString(),
  }
}

describe('a whole job', () => {
  it('is done on a machine whose clock is six minutes fast or slow, like those of its workers', async () => {
    await inWorld({ world: { ahead: '6m' } }, async (d) => {
      const id = await d.submit({ id: 'job-late' }, { lastAttempt: 1 })
      expect(await d.ended(id)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
      expect(d.machinesOf(id)).toHaveLength(1)
    })
  })

  it('says so at once where the store ignores put-if-absent', async () => {
    await inWorld({}, async (d) => {
      d.cloud.addFault({ fault: 'ignored-condition' })
      const id = await d.submit({ id: 'job-store' })
      expect(await d.ended(id)).toMatchObject({
        state: 'failed',
        attemptsTotal: 0,
        message: expect.stringContaining('Use a store that honours If-None-Match on PUT, as S3 does'),
      })
    })
  })

  it('says which permission is missing', async () => {
    await inWorld({ world: denying('ec2:CreateFleet') }, async (d) => {
      const id = await d.submit({ id: 'job-denied' })
      expect(await d.ended(id)).toMatchObject({
        state: 'failed',
        attemptsTotal: 1,
        message: expect.stringMatching(/not authorized to perform: ec2:CreateFleet.*crucible doctor/),
      })
      expect(d.machinesOf(id)).toEqual([])
    })
  })

  itInAll('says what to run where the role of spot machines is missing', async () => {
    const world = { linkedRoles: [], ...denying('iam:CreateServiceLinkedRole') }
    await inWorld({ world }, async (d) => {
      const id = await d.submit({ id: 'job-role' })
      expect(await d.ended(id)).toMatchObject({
        state: 'failed',
        attemptsTotal: 1,
        message: expect.stringContaining('create-service-linked-role --aws-service-name spot.amazonaws.com'),
      })
    })
  })

  itInAll('says while it waits that the Region has none of the types', async () => {
    await inWorld({ settings: { CRUCIBLE_EC2_TYPES: 'p9.*' } }, async (d) => {
      const id = await d.submit({ id: 'job-types' })
      await d.see(id, ({ message }) =>
        /us-east-1 has none of the machine types p9\.\*\. Set CRUCIBLE_EC2_TYPES/.test(message),
      )
      await d.client.cancel(id)
      await d.ended(id)
    })
  })

  itInAll('says that the quota is zero, and which', async () => {
    await inWorld({ world: { quotas: { 'L-1216C47A': 0, 'L-DB2E81BA': 0, 'L-417A185B': 0 } } }, async (d) => {
      const id = await d.submit({ id: 'job-quota', isInterruptible: false })
      expect(await d.ended(id)).toMatchObject({
        state: 'failed',
        reason: 'quota',
        message: expect.stringMatching(/quota L-1216C47A.*Request a higher quota/),
      })
      expect(d.machinesOf(id)).toEqual([])
    })
  })

  itInAll('says that the credentials of its workers have ended', async () => {
    await inWorld({}, async (d) => {
      d.cloud.addFault({ fault: 'error', code: 'RequestExpired', where: { service: 'ec2' } })
      const id = await d.submit({ id: 'job-token' })
      await d.see(id, ({ message }) => /Renew the AWS credentials of the worker/.test(message))
      await d.client.cancel(id)
      await d.ended(id)
    })
  })

  itInAll('waits until its workers have credentials again, and continues where it runs', async () => {
    const roles = {
      'crucible-machine': {
        managed: ['AmazonSSMManagedInstanceCore', 'AmazonS3FullAccess'],
        hasProfile: true,
        trusts: ['ec2.amazonaws.com'],
      },
      worker: { managed: ['AdministratorAccess'] },
    }
    // Its machines use the store with their role: sessions as short as these are too short for grants.
    const settings = { CRUCIBLE_EC2_GRANTS: 'no' }
    await inWorld({ world: { roles, durations: { session: SESSION } }, settings }, async (d) => {
      const running = await d.submit({ id: 'job-running' }, { lastAttempt: 99 })
      await d.atStep(running, 20)
      const machine = d.machineOf(running)
      const own = { ...process.env }
      Object.assign(process.env, await sessionOf('worker'))
      // What asks the cloud from now on has the session; what asks the store has found its credentials before.
      await d.restartBackends()
      const asked = (outcome: string): number =>
        d.cloud.journal.calls({ action: 'DescribeInstances' }).filter((call) => call.outcome === outcome)
          .length
      await until(() => asked('RequestExpired') > 0, 60_000)

      const waiting = await d.submit({ id: 'job-waiting' }, { lastAttempt: 1 })
      await d.see(waiting, ({ message }) => /Renew the AWS credentials of the worker/.test(message))
      expect(d.machinesOf(waiting)).toEqual([])
      const { attempts } = await d.client.get(running)
      const step = attempts[0]!.progress!.step!
      await d.see(running, (view) => view.attempts[0]!.progress!.step! > step + 5)

      for (const name of SESSION_NAMES) delete process.env[name]
      Object.assign(process.env, own)
      expect(await d.ended(waiting)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
      expect(await d.client.get(running)).toMatchObject({ state: 'running', attemptsTotal: 1 })
      expect(d.machineOf(running)).toBe(machine)
      await d.client.cancel(running)
      expect(await d.ended(running)).toMatchObject({ state: 'cancelled', attemptsTotal: 1 })
    })
  })
})
