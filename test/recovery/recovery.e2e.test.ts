/** Each of what can happen to a job (docs/reference/failures.md), on EC2 over the wire with machines that are processes. */
import { describe, expect, it, jest } from '@jest/globals'
import type { JobView, RecoveryView } from '../../client/job/job-view'
import type { JobSpec } from '../../core/job/job'
import type { RecordedPlan } from '../../core/job/record'
import { QUICK, type CloudDeployment } from './deployment'
import { onDeployment } from './hooks'
import { itInAll } from '../support/selection'

jest.setTimeout(300_000)

let d: CloudDeployment

onDeployment(
  {
    world: {
      // The agent of a machine that hangs counts as lost soon; of the H100 the account may have none as spot.
      durations: { connectionLost: [1_000, 1_000], osShutdown: [1_000, 1_000] },
      quotas: { 'L-7212CCBC': 0 },
    },
    settings: {
      CRUCIBLE_BACKENDS: 'ec2,local',
      CRUCIBLE_LOCAL_PRICE: '9',
      ...QUICK,
      CRUCIBLE_SILENCE: '6s',
      CRUCIBLE_START_WITHIN: '40s',
      CRUCIBLE_EC2_REGISTER_WITHIN: '12s',
    },
  },
  (started) => {
    d = started
  },
)

const on = (accelerator: string): Partial<JobSpec> => ({ resources: { accelerators: [accelerator] } })
const ofAttempt = (attemptId: string): { tags: Record<string, string> } => ({
  tags: { 'crucible:attempt': attemptId },
})

/** Every part is known, and together they are the whole. */
function expectWhole({ recoveries }: JobView): RecoveryView {
  expect(recoveries).toHaveLength(1)
  const [recovery] = recoveries as [RecoveryView]
  const { detectMs, drainMs, acquireMs, bootMs, restoreMs, firstStepMs, totalMs, overheadMs } = recovery
  const parts = [detectMs, drainMs, acquireMs, bootMs, restoreMs, firstStepMs]
  expect(parts).not.toContain(null)
  expect(parts.reduce<number>((sum, part) => sum + part!, 0)).toBe(totalMs)
  expect(overheadMs).toBe(totalMs! - bootMs!)
  return recovery
}

const reasons = ({ attempts }: JobView): string[] => attempts.map(({ reason }) => reason)

describe('an interruption', () => {
  it.concurrent('with a notice costs a step at most', async () => {
    const job = await d.submit(on('T4'))
    await d.atStep(job, 30)
    d.cloud.interrupt(d.machineOf(job), { noticeMs: 20_000 })
    const view = await d.ended(job)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first!.state).toBe('interrupted')
    expect(first!.stepsLost).toBeLessThanOrEqual(1)
    expect(second!.restoredFrom).toEqual(first!.checkpoint)
    expect(expectWhole(view)).toMatchObject({ from: 1, to: 2, cause: 'interrupted' })
  })

  itInAll.concurrent('without a notice costs a checkpoint interval at most', async () => {
    const every = 40
    const job = await d.submit(on('T4'), { every, stillAt: 2 * every - 1 })
    await d.atStep(job, every)
    d.cloud.interrupt(d.machineOf(job), { isSilent: true })
    const view = await d.ended(job)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first!.stepsLost).toBeLessThan(every)
    expect(second!.restoredFrom!.step).toBe(every)
    expect(expectWhole(view)).toMatchObject({ cause: 'interrupted', drainMs: 0 })
  })

  itInAll.concurrent('of a program that ignores SIGTERM costs a checkpoint interval at most', async () => {
    const every = 40
    const job = await d.submit(on('T4'), { every, stillAt: 2 * every - 1, isDeaf: true })
    await d.atStep(job, every)
    d.cloud.interrupt(d.machineOf(job), { noticeMs: 10_000 })
    const view = await d.ended(job)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    expect(reasons(view)[0]).toMatch(/^interrupted: .*had to be killed/)
    expect(view.attempts[0]!.stepsLost).toBeLessThan(every)
    expect(view.attempts[1]!.restoredFrom!.step).toBe(every)
    expectWhole(view)
  })
})

describe('no machine', () => {
  itInAll.concurrent(
    'in a pool leads to other pools, then to other capacity types, then to other backends',
    async () => {
      const types = ['c7i.large', 'm7i.large']
      const none = (where: object): void =>
        types.forEach((type) => d.cloud.addFault({ fault: 'no-capacity', where: { type, ...where } }))
      none({ zone: 'us-east-1a', capacity: 'spot' })
      d.cloud.addFault({ fault: 'no-capacity', where: { type: 'c7i.large', capacity: 'spot' } })
      const id = 'job-fallback'
      // An on-demand machine is never taken back: this one breaks.
      d.cloud.addFault({ fault: 'crash', after: 20_000, where: ofAttempt(`${id}-4`) })
      const backends = [{ backend: 'ec2' }, { backend: 'local' }]
      const resources = { cpus: { max: 2 }, gpus: { max: 0 } }
      await d.submit({ id, backends, resources }, { lastAttempt: 6 })
      await d.atStep(id, 30)
      none({ capacity: 'spot' })
      d.cloud.interrupt(d.machineOf(id), { isSilent: true })
      await d.see(id, ({ attempts }) => attempts[3]?.realised?.capacityType === 'on-demand')
      none({ capacity: 'on-demand' })
      const view = await d.ended(id)
      expect(view.state).toBe('succeeded')
      expect(
        view.attempts.map(({ backend, capacityType, realised, reason }) => [
          `${backend} ${capacityType}`,
          realised?.type,
          reason.split(':')[0],
        ]),
      ).toEqual([
        ['ec2 spot', 'm7i.large', 'interrupted'],
        ['ec2 spot', undefined, 'capacity'],
        // The pool that took the machine back comes after the others, on its own.
        ['ec2 spot', undefined, 'capacity'],
        ['ec2 on-demand', expect.stringMatching(/large$/), 'interrupted'],
        ['ec2 on-demand', undefined, 'capacity'],
        ['local on-demand', expect.any(String), 'completed'],
      ])
      expect(view.attempts[0]!.place).not.toBe('us-east-1a')
      expect(view.recoveries.map(({ from }) => from)).toEqual([1, 4])
    },
  )

  it.concurrent(
    'for want of a quota leads elsewhere, whether the quota is known before or told by the launch',
    async () => {
      const id = 'job-quota'
      const fault = { fault: 'launch-fails', reason: 'Client.VolumeLimitExceeded' } as const
      d.cloud.addFault({ ...fault, where: ofAttempt(`${id}-1`) })
      await d.submit({ id, ...on('H100') })
      const view = await d.ended(id)
      expect(view.state).toBe('succeeded')
      expect(reasons(view)).toEqual([expect.stringMatching(/^quota: /), 'completed'])
      const places = view.attempts.map(({ capacityType, place }) => `${capacityType} ${place}`)
      expect(new Set(places).size).toBe(2)
      expect(places.filter((place) => !place.startsWith('on-demand'))).toEqual([])
      const [planned] = (await d.client.records(id)).filter(({ kind }) => kind === 'planned')
      const { rejections } = (planned!.data as RecordedPlan).plan!
      expect(rejections).toContainEqual(
        expect.objectContaining({
          why: 'quota',
          offerKeys: expect.arrayContaining([expect.stringContaining('spot/p5.4xlarge')]),
        }),
      )
    },
  )

  itInAll.concurrent('because a launch failed leads to another', async () => {
    const id = 'job-launch-fails'
    d.cloud.addFault({ fault: 'launch-fails', where: ofAttempt(`${id}-1`) })
    await d.submit({ id, ...on('A10G') })
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    expect(reasons(view)[0]).toMatch(/^capacity: .*Server\.InternalError: the launch has failed/)
    // What never worked is nothing to recover.
    expect(view.recoveries).toEqual([])
  })
})

describe('a machine', () => {
  itInAll.concurrent('that never speaks is replaced in another zone', async () => {
    const id = 'job-mute'
    d.cloud.addFault({ fault: 'no-agent', where: ofAttempt(`${id}-1`) })
    await d.submit({ id, ...on('A10G') })
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    expect(reasons(view)[0]).toMatch(/^unreachable: /)
    expect(view.attempts[0]!.place).not.toBe(view.attempts[1]!.place)
  })

  itInAll.concurrent(
    'that never speaks, after another that did not, ends the job with what to look at',
    async () => {
      const id = 'job-mute-twice'
      d.cloud.addFault({ fault: 'no-agent', where: { tags: { 'crucible:job': id } } })
      await d.submit({ id, ...on('A10G') })
      expect(await d.ended(id)).toMatchObject({ state: 'failed', reason: 'unreachable', attemptsTotal: 2 })
    },
  )

  itInAll.concurrent(
    'that stops speaking is ended after a long silence, and the job continues elsewhere',
    async () => {
      const id = 'job-hung'
      d.cloud.addFault({ fault: 'hang', after: 20_000, where: ofAttempt(`${id}-1`) })
      await d.submit({ id, ...on('L4') })
      const view = await d.ended(id)
      expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
      expect(reasons(view)[0]).toMatch(/^interrupted: The machine runs, but its runner has been silent/)
      expect(expectWhole(view).detectMs).toBeGreaterThan(6_000)
      const [hung] = d.cloud.instances().filter(({ tags }) => tags['crucible:attempt'] === `${id}-1`)
      expect(hung!.state).toBe('terminated')
    },
  )

  itInAll.concurrent(
    'whose role may not ask for images ends the job, and the words say what it needs',
    async () => {
      const image = '111122223333.dkr.ecr.us-east-1.amazonaws.com/team/train:1'
      const id = await d.submit({ image, ...on('T4') })
      const view = await d.ended(id)
      expect(view).toMatchObject({ state: 'failed', reason: 'auth', attemptsTotal: 1 })
      expect(view.message).toMatch(
        /not authorized to perform: ecr:GetAuthorizationToken.*AmazonEC2ContainerRegistryReadOnly/s,
      )
    },
  )

  itInAll.concurrent('is left by hand with a checkpoint first', async () => {
    const job = await d.submit(on('L4'))
    await d.atStep(job, 30)
    await d.client.migrate(job, { backend: 'ec2', capacityType: 'on-demand' })
    const view = await d.ended(job)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first).toMatchObject({ state: 'stopped', reason: 'migrated', capacityType: 'spot' })
    expect(first!.stepsLost).toBeLessThanOrEqual(1)
    expect(second).toMatchObject({ capacityType: 'on-demand', restoredFrom: first!.checkpoint })
    expect(expectWhole(view).cause).toBe('migrated')
  })
})
