/** Jobs whose image must be got from a registry, on EC2 over the wire with machines that are processes. */
import { describe, expect, it, jest } from '@jest/globals'
import type { JobView } from '../../client/job/job-view'
import type { Settlement } from '../../core/activities'
import type { JobSpec } from '../../core/job/job'
import { HAS_NAMESPACES } from '../../packages/small-cloud/test/machines/machines'
import { QUICK, type CloudDeployment } from './deployment'
import { onDeployment } from './hooks'
import { itInAll } from '../support/selection'

jest.setTimeout(300_000)

const PULL_MS = 700
const REGISTRY = 'registry.example.com'
const OWN_REGISTRY = '111122223333.dkr.ecr.us-east-1.amazonaws.com'
const REPOSITORIES = 'arn:aws:ecr:us-east-1:111122223333:repository'
const allow = (Action: string[], Resource: string) => ({ Statement: [{ Effect: 'Allow', Action, Resource }] })

let d: CloudDeployment

onDeployment(
  {
    world: {
      docker: {
        pull: PULL_MS,
        images: [`${REGISTRY}/team/*`, 'open.example.com/*', `${OWN_REGISTRY}/*`],
        logins: { [REGISTRY]: { username: 'robot', password: 'open sesame' } },
      },
      roles: {
        'crucible-machine': {
          managed: ['AmazonSSMManagedInstanceCore', 'AmazonS3FullAccess'],
          policies: {
            token: allow(['ecr:GetAuthorizationToken'], '*'),
            team: allow(['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'], `${REPOSITORIES}/team/*`),
          },
          trusts: ['ec2.amazonaws.com'],
          hasProfile: true,
        },
      },
    },
    settings: {
      ...QUICK,
      CRUCIBLE_REGISTRY_WITHIN: '12s',
      RIGHT_TOKEN: 'open sesame',
      WRONG_TOKEN: 'sesame',
    },
  },
  (started) => {
    d = started
  },
)

/** Without namespaces a host has no containers. */
const test = HAS_NAMESPACES ? it.concurrent : it.skip
const testInAll = HAS_NAMESPACES ? itInAll.concurrent : it.skip

function submit(id: string, image: string, more: Partial<JobSpec> = {}): Promise<string> {
  return d.submit({ id, image, ...more }, { lastAttempt: 1 })
}

const loginWith = (secret: string): Partial<JobSpec> => ({ imageLogin: { username: 'robot', secret } })

/** What each attempt's pull took, from the job's record. */
async function pullsOf(jobId: string): Promise<number[]> {
  const settled = (await d.client.records(jobId)).filter(({ kind }) => kind === 'settled')
  return settled.flatMap(({ data }) =>
    (data as Settlement).phases.flatMap(({ name, durationMs }) => (name === 'pulling' ? [durationMs] : [])),
  )
}

/** The job has ended with one machine, and says so in the same words in its record. */
async function expectEnd(view: JobView, reason: string, words: RegExp): Promise<void> {
  expect(view).toMatchObject({ state: 'failed', reason, attemptsTotal: 1 })
  expect(view.message).toMatch(words)
  expect(d.machinesOf(view.id)).toHaveLength(1)
  const decided = (await d.client.records(view.id)).filter(({ kind }) => kind === 'decided')
  expect(decided.at(-1)!.summary).toMatch(words)
}

describe('an image in a registry that asks for a login', () => {
  test('is got with the right secret, on each machine anew, and the pull is a stage of its own', async () => {
    const id = 'job-private'
    await d.submit({ id, image: `${REGISTRY}/team/train:1`, ...loginWith('RIGHT_TOKEN') })
    await d.atStep(id, 25)
    d.cloud.interrupt(d.machineOf(id), { noticeMs: 20_000 })
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    expect(view.attempts[1]!.restoredFrom).toEqual(view.attempts[0]!.checkpoint)
    const pulls = await pullsOf(id)
    expect(pulls).toHaveLength(2)
    for (const pullMs of pulls) expect(pullMs).toBeGreaterThanOrEqual(PULL_MS)
    const told = (await d.client.events(id)).filter(({ text }) => text.startsWith('pulling for'))
    expect(told.map(({ attempt }) => attempt)).toEqual([1, 2])
  })

  testInAll('ends the job where the secret is wrong, and the words say what to do', async () => {
    await submit('job-wrong', `${REGISTRY}/team/train:1`, loginWith('WRONG_TOKEN'))
    const view = await d.ended('job-wrong')
    await expectEnd(view, 'auth', /unauthorized.*set image_login to a user and a token with read access/s)
    expect(JSON.stringify([view, await d.client.records('job-wrong')])).not.toContain('sesame')
  })

  testInAll('ends the job where it names no login', async () => {
    await submit('job-no-login', `${REGISTRY}/team/train:1`)
    await expectEnd(await d.ended('job-no-login'), 'auth', /authentication required.*set image_login/s)
  })
})

describe('an image', () => {
  test('that is in no registry ends the job', async () => {
    await submit('job-absent', 'open.example.org/trian:1')
    const words =
      /the registry has no image open\.example\.org\/trian:1.*Correct the name and the tag under image/s
    await expectEnd(await d.ended('job-absent'), 'invalid', words)
  })

  testInAll('of a registry that is slow and has errors for a while comes in the end', async () => {
    const image = 'open.example.com/train:slow'
    d.cloud.addFault({ fault: 'registry-slow', by: '300ms', where: { image } })
    d.cloud.addFault({ fault: 'registry-down', instead: 'error', times: 2, where: { image } })
    await submit('job-slow', image)
    expect(await d.ended('job-slow')).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
    const [pullMs] = await pullsOf('job-slow')
    expect(pullMs).toBeGreaterThanOrEqual(3 * 300 + PULL_MS)
    const struck = d.cloud.faults().filter(({ rule }) => 'image' in rule.where && rule.where.image === image)
    expect(struck.map((each) => each.struck)).toEqual([3, 2])
  })

  testInAll(
    'of a registry out of reach ends the machine, pauses the job, and says so; by hand it continues at once',
    async () => {
      const id = 'job-away'
      d.cloud.addFault({ fault: 'registry-down', where: { tags: { 'crucible:attempt': `${id}-1` } } })
      await submit(id, 'open.example.com/train:1')
      const paused = await d.see(id, ({ attempts }) => attempts.length === 2)
      expect(paused).toMatchObject({ state: 'provisioning', reason: 'unreachable' })
      expect(paused.message).toMatch(
        /the registry of open\.example\.com\/train:1 does not give it.*refused.*Check that it answers/s,
      )
      expect(paused.attempts[0]!.reason).toMatch(/^transient: /)
      expect(d.machinesOf(id).map(({ state }) => state)).not.toContain('running')
      expect(d.machinesOf(id)).toHaveLength(1)
      await d.client.migrate(id)
      expect(await d.ended(id)).toMatchObject({ state: 'succeeded' })
    },
  )
})

describe("an image in Amazon's own registry", () => {
  test('is got with the role of the machine', async () => {
    const id = 'job-ecr'
    await submit(id, `${OWN_REGISTRY}/team/train:1`)
    expect(await d.ended(id)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
    const asked = d.cloud.journal.calls({ service: 'ecr' })
    const [machine] = d.machinesOf(id)
    const caller = `arn:aws:sts::111122223333:assumed-role/crucible-machine/${machine!.id}`
    expect(asked).toContainEqual(
      expect.objectContaining({ action: 'GetAuthorizationToken', caller, outcome: 'ok' }),
    )
  })

  test('that the role may not read ends the job, and the words name the permission', async () => {
    await submit('job-ecr-closed', `${OWN_REGISTRY}/others/train:1`)
    const words = /not authorized to perform: ecr:BatchGetImage.*AmazonEC2ContainerRegistryReadOnly/s
    await expectEnd(await d.ended('job-ecr-closed'), 'auth', words)
  })
})
