/** Whole jobs on the small cloud's Modal: the workflows, this backend over the wire, the real runner in containers, and S3. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { SECOND_MS } from '../../../core/time/time'
import { CloudDeployment, QUICK } from '../../recovery/deployment'
import { patient } from '../../support/patience'
import { itInAll } from '../../support/selection'
import { connectTo, quietWorkers, type TestConnection } from '../../support/temporal'

jest.setTimeout(400_000)

const ACCOUNT = '111122223333'
/** The least with which a job that saves is placed: a minute of work, and what saving, stopping and clocks take. */
const RUN_MAX_S = patient(110)
const NEVER = 1_000
const GATEWAY_TROUBLES: [number, string][] = [
  [404, 'modal-http: app for invoked web endpoint is stopped'],
  [401, 'modal-http: incorrect credentials for proxy authorization'],
  [503, 'modal-http: bad gateway'],
]

let at: TestConnection
let d: CloudDeployment
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  d = await CloudDeployment.start(at, {
    world: {
      account: ACCOUNT,
      durations: { pending: '100ms', boot: '50ms', osShutdown: '1s' },
      roles: { 'crucible-grant': { managed: ['AmazonS3FullAccess'], sessionMax: '12h' } },
    },
    settings: ({ providers }) => {
      const { endpoint, key, secret } = providers['modal']!
      return {
        ...QUICK,
        CRUCIBLE_BACKENDS: 'modal',
        CRUCIBLE_MODAL_URL: endpoint!,
        CRUCIBLE_MODAL_KEY: key!,
        CRUCIBLE_MODAL_SECRET: secret!,
        CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/crucible-grant`,
        CRUCIBLE_MODAL_RUN_MAX: `${RUN_MAX_S}s`,
      }
    },
  })
})
afterAll(async () => {
  await d?.stop()
  await at.close()
})

const sandboxesOf = (jobId: string): ReturnType<typeof d.cloud.instances> =>
  d.cloud.instances().filter(({ tags }) => tags['job'] === jobId)

describe('a job on Modal', () => {
  it.concurrent('that Modal takes away continues from its checkpoint', async () => {
    const id = await d.submit({ id: 'job-taken', resources: { accelerators: ['T4'] } })
    await d.atStep(id, 40)
    d.cloud.interrupt(sandboxesOf(id)[0]!.id)
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first).toMatchObject({ state: 'interrupted' })
    expect(second!.restoredFrom).toEqual(first!.checkpoint)
    expect(sandboxesOf(id).map(({ type, state }) => `${type} ${state}`)).toEqual(['T4:1 ended', 'T4:1 ended'])
  })

  itInAll.concurrent(
    'continues while its gateway is deleted, refuses the token, or does not work',
    async () => {
      const id = await d.submit({ id: 'job-alone' }, { lastAttempt: NEVER })
      let step = (await d.atStep(id, 20)).attempts[0]!.progress!.step!
      for (const [status, message] of GATEWAY_TROUBLES) {
        const where = { service: 'modal', action: 'read' } as const
        const end = d.cloud.addFault({ fault: 'error', code: 'gateway', message, status, where })
        const target = step + 40
        const { attempts } = await d.see(id, (view) => (view.attempts[0]?.progress?.step ?? 0) > target)
        end()
        expect([status, attempts.length]).toEqual([status, 1])
        step = attempts[0]!.progress!.step!
      }
      await d.client.cancel(id)
      expect(await d.ended(id)).toMatchObject({ state: 'cancelled', attemptsTotal: 1 })
      expect(sandboxesOf(id)).toMatchObject([{ state: 'ended' }])
    },
  )

  it.concurrent('waits, free of charge, while the workspace is at its limit of GPUs', async () => {
    const id = 'job-waits'
    const end = d.cloud.addFault({ fault: 'no-capacity', where: { service: 'modal', type: 'L4' } })
    await d.submit({ id, resources: { accelerators: ['L4'] } }, { lastAttempt: 1 })
    const queued = await d.see(id, ({ reason }) => reason === 'queued')
    expect(queued).toMatchObject({ state: 'provisioning', attemptsTotal: 1 })
    expect(sandboxesOf(id)).toMatchObject([{ state: 'queued', bill: { usd: 0 } }])
    end()
    expect(await d.ended(id)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
    expect(sandboxesOf(id)).toHaveLength(1)
  })

  itInAll.concurrent(
    'that reaches the run-time limit saves before, and continues at the same step',
    async () => {
      const id = await d.submit({ id: 'job-long' }, { every: 100 })
      const view = await d.ended(id)
      expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
      const [first, second] = view.attempts
      expect(first!.stepsLost).toBeLessThanOrEqual(1)
      expect(second!.restoredFrom).toEqual(first!.checkpoint)
      const [ended] = sandboxesOf(id)
      // Not by Modal's own limit, whose exit code would be 124.
      expect(ended).toMatchObject({ state: 'ended' })
      expect(ended!.reason).not.toBe('TIMEOUT')
      expect(ended!.bill.untilMs! - ended!.bill.fromMs!).toBeLessThan(RUN_MAX_S * SECOND_MS)
    },
  )
})
