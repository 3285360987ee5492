/** Whole jobs on the small cloud's Lambda: the workflows, this backend over the wire, the real runner on its machines, and S3. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { SECOND_MS } from '../../../core/time/time'
import { CloudDeployment, QUICK } from '../../recovery/deployment'
import { connectTo, quietWorkers, type TestConnection } from '../../support/temporal'
import { until } from '../../support/until'
import { patient } from '../../support/patience'
import { itInAll } from '../../support/selection'

jest.setTimeout(600_000)

const ACCOUNT = '111122223333'
const NEVER = 1_000
/** Lambda's limits, twenty times as fast: twenty requests a second, and a launch in 600 ms. The second place is for late arrivals. */
const FASTER = 20
const THROTTLING = {
  requests: { size: 10, perSecond: FASTER },
  launches: { size: 2, perSecond: FASTER / 12 },
}

let at: TestConnection
let d: CloudDeployment
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  d = await CloudDeployment.start(at, {
    world: {
      account: ACCOUNT,
      durations: { pending: '100ms', boot: '50ms', shuttingDown: '100ms', osShutdown: '1s' },
      roles: { 'crucible-grant': { managed: ['AmazonS3FullAccess'], sessionMax: '12h' } },
      lambda: { throttling: THROTTLING },
    },
    settings: ({ providers }) => {
      const { endpoint, apiKey } = providers['lambda']!
      return {
        ...QUICK,
        CRUCIBLE_BACKENDS: 'lambda',
        CRUCIBLE_LAMBDA_ENDPOINT: endpoint!,
        LAMBDA_API_KEY: apiKey!,
        CRUCIBLE_LAMBDA_TYPES: 'gpu_1x_a10',
        CRUCIBLE_LAMBDA_STALE_FOR: '2s',
        CRUCIBLE_LAMBDA_REQUESTS: String(0.9 * FASTER),
        CRUCIBLE_LAMBDA_LAUNCHES: String(5 * FASTER),
        CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/crucible-grant`,
      }
    },
  })
})
afterAll(async () => {
  await d?.stop()
  await at.close()
})

const A10 = { resources: { accelerators: ['A10'] } }
const machinesOf = (jobId: string): ReturnType<typeof d.cloud.instances> => d.machinesOf(jobId)
const isBilled = ({ bill }: ReturnType<typeof machinesOf>[number]): boolean =>
  bill.fromMs !== undefined && bill.untilMs === undefined

describe('a job on Lambda', () => {
  it.concurrent('that Lambda preempts continues from its checkpoint', async () => {
    const id = await d.submit({ id: 'job-taken', ...A10 })
    await d.atStep(id, 40)
    d.cloud.interrupt(machinesOf(id)[0]!.id)
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first).toMatchObject({ state: 'interrupted' })
    expect(second!.restoredFrom).toEqual(first!.checkpoint)
    expect(machinesOf(id).map(({ state }) => state)).toEqual(['preempted', 'terminated'])
    expect(machinesOf(id).filter(isBilled)).toEqual([])
  })

  // In `npm test`, test/clouds/clouds.e2e.test.ts has a machine of Lambda that becomes unhealthy.
  itInAll.concurrent(
    'whose machine becomes unhealthy and silent ends it, and continues on another',
    async () => {
      const where = { service: 'lambda', tags: { 'crucible:job': 'job-sick' } } as const
      d.cloud.addFault({ fault: 'unhealthy', after: '8s', times: 1, where })
      const id = await d.submit({ id: 'job-sick', ...A10 })
      const view = await d.ended(id)
      expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
      const [first, second] = machinesOf(id)
      expect([first!.state, second!.state]).toEqual(['terminated', 'terminated'])
      expect(machinesOf(id).filter(isBilled)).toEqual([])
      expect(first!.bill.untilMs).toBeLessThanOrEqual(second!.launchedAtMs)
    },
  )

  itInAll.concurrent('keeps running on a machine that is unhealthy and works', async () => {
    const where = { service: 'lambda', tags: { 'crucible:job': 'job-well' } } as const
    d.cloud.addFault({ fault: 'unhealthy', after: '8s', isAlive: true, times: 1, where })
    const id = await d.submit({ id: 'job-well', ...A10 }, { lastAttempt: NEVER })
    await d.atStep(id, 20)
    await until(() => machinesOf(id)[0]!.state === 'unhealthy', patient(60 * SECOND_MS))
    const { attempts: before } = await d.atStep(id, 20)
    const step = before[0]!.progress!.step!
    const { attempts } = await d.see(id, (view) => (view.attempts[0]?.progress?.step ?? 0) > step + 150)
    expect(attempts).toHaveLength(1)
    await d.client.cancel(id)
    expect(await d.ended(id)).toMatchObject({ state: 'cancelled', attemptsTotal: 1 })
    expect(machinesOf(id)).toMatchObject([{ state: 'terminated' }])
  })

  itInAll.concurrent('keeps running while Lambda is down', async () => {
    const id = await d.submit({ id: 'job-alone', ...A10 }, { lastAttempt: NEVER })
    const { attempts: before } = await d.atStep(id, 20)
    // Of the reads that the watches share; other jobs start and end meanwhile.
    const where = { service: 'lambda', action: 'instances' } as const
    const code = 'provider/internal-unavailable'
    d.cloud.addFault({ fault: 'error', code, status: 503, until: '10s', where })
    const step = before[0]!.progress!.step!
    const { attempts } = await d.see(id, (view) => (view.attempts[0]?.progress?.step ?? 0) > step + 150)
    expect(attempts).toHaveLength(1)
    await d.client.cancel(id)
    expect(await d.ended(id)).toMatchObject({ state: 'cancelled', attemptsTotal: 1 })
    expect(machinesOf(id)).toMatchObject([{ state: 'terminated' }])
  })
})

describe('twenty jobs at once on Lambda', () => {
  itInAll('get twenty machines, at the pace that the account allows, and all of them are ended', async () => {
    // Machines that never boot: only the launches count here.
    d.cloud.addFault({ fault: 'no-boot', where: { service: 'lambda' } })
    const ids = Array.from({ length: 20 }, (_, index) => `job-of-many-${index}`)
    const startedAtMs = Date.now()
    await Promise.all(ids.map((id) => d.submit({ id, ...A10 })))
    const machines = (): ReturnType<typeof machinesOf> => ids.flatMap(machinesOf)
    await until(() => machines().length >= 20, patient(120 * SECOND_MS))
    const tookMs = Date.now() - startedAtMs
    // Nineteen gaps between twenty launches, less the place for a late arrival.
    expect(tookMs).toBeGreaterThan((18 * 12 * SECOND_MS) / FASTER)
    const calls = d.cloud.journal
      .calls({ service: 'lambda', action: 'launch' })
      .filter(({ parameters }) => String((parameters as { name?: string })?.name).startsWith('job-of-many'))
    expect(calls.map(({ outcome }) => outcome)).toEqual(Array(20).fill('ok'))
    // A refused call has no parameters: no launch of this file was too early.
    const tooEarly = d.cloud.journal
      .calls({ service: 'lambda', action: 'launch' })
      .filter(({ outcome }) => outcome === 'global/rate-limit-exceeded')
    expect(tooEarly).toEqual([])
    for (const id of ids) await d.client.cancel(id)
    for (const id of ids)
      expect(await d.ended(id)).toMatchObject({ state: 'cancelled', attemptsTotal: 1, attempts: [{}] })
    expect(machines()).toHaveLength(20)
    expect(machines().filter(({ state }) => state !== 'terminated')).toEqual([])
  })
})
