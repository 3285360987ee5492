import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { JOB_DRAIN_REASONS } from '../../core/job/drain'
import type * as Requests from '../../workflows/job/drain-requests'

/** The timers that were armed: how long, whether they were cancelled, and how to let them fire. */
let timers: { forMs: number; isCancelled: boolean; fire: () => Promise<void> }[]

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: class {
    private readonly timer = { forMs: 0, isCancelled: false, fire: async () => undefined }
    run(work: () => Promise<void>): Promise<void> {
      timers.push(this.timer)
      return work()
    }
    cancel(): void {
      this.timer.isCancelled = true
    }
  },
  sleep: (forMs: number) =>
    new Promise<void>((resolve) => {
      const timer = timers.at(-1)!
      timer.forMs = forMs
      timer.fire = async () => {
        resolve()
        await new Promise(setImmediate)
      }
    }),
}))
const { DrainRequests } = jest.requireActual<typeof Requests>('../../workflows/job/drain-requests')

beforeEach(() => {
  timers = []
})

const pairs = JOB_DRAIN_REASONS.flatMap((weaker, rank) =>
  JOB_DRAIN_REASONS.slice(rank + 1).map((stronger) => [weaker, stronger] as const),
)

describe('two requests to save and stop', () => {
  it.each(pairs)('are the stronger one, whichever came first: %s and %s', (weaker, stronger) => {
    const requests = new DrainRequests()
    const current = { reason: stronger, windowMs: 20_000 }
    requests.add({ reason: weaker, windowMs: 10_000 })
    requests.add(current)
    expect(requests).toMatchObject({ current, version: 2 })
    requests.add({ reason: weaker, windowMs: 5_000 })
    expect(requests).toMatchObject({ current, version: 2 })
  })

  it('of one kind have the shorter window, and are passed on again', () => {
    const requests = new DrainRequests()
    for (const windowMs of [10_000, 5_000, 20_000]) requests.add({ reason: 'cancelled', windowMs })
    expect(requests).toMatchObject({ current: { reason: 'cancelled', windowMs: 5_000 }, version: 3 })
  })

  it('end the job unless it only moves', () => {
    const requests = new DrainRequests()
    expect(requests.ending).toBeNull()
    requests.add({ reason: 'migrated', windowMs: 1 })
    expect(requests.ending).toBeNull()
    requests.add({ reason: 'deadline', windowMs: 1 })
    expect(requests.ending).toBe('deadline')
  })
})

describe('a move', () => {
  it('goes where the newest request says, as its answer did', () => {
    const requests = new DrainRequests()
    for (const to of [{ backend: 'local' }, { backend: 'ec2' }])
      requests.add({ reason: 'migrated', windowMs: 10_000 }, to)
    expect(requests.target).toEqual({ backend: 'ec2' })
    requests.add({ reason: 'migrated', windowMs: 10_000 })
    expect(requests.target).toBeUndefined()
  })

  it('is forgotten once it is under way, with its target; nothing else is', () => {
    const requests = new DrainRequests()
    const to = { backend: 'local' }
    requests.add({ reason: 'migrated', windowMs: 10_000 }, to)
    expect(requests.target).toEqual(to)
    requests.forgetMove()
    expect(requests).toMatchObject({ current: null, target: undefined })
    requests.add({ reason: 'cancelled', windowMs: 10_000 })
    requests.forgetMove()
    expect(requests.current?.reason).toBe('cancelled')
  })
})

describe('the timer of the deadline', () => {
  const arm = (requests: Requests.DrainRequests, inMs: number): void =>
    requests.armDeadline({ inMs, windowMs: 7_000 })

  it('asks to stop for the deadline, with its window', async () => {
    const requests = new DrainRequests()
    arm(requests, 60_000)
    expect(timers).toMatchObject([{ forMs: 60_000 }])
    expect(requests.current).toBeNull()
    await timers[0]!.fire()
    expect(requests.current).toEqual({ reason: 'deadline', windowMs: 7_000 })
  })

  it('fires at once where its time is over', () => {
    arm(new DrainRequests(), -5)
    expect(timers).toMatchObject([{ forMs: 0 }])
  })

  it('replaces the one before, and goes with the job', () => {
    const requests = new DrainRequests()
    arm(requests, 60_000)
    arm(requests, 90_000)
    expect(timers).toMatchObject([
      { forMs: 60_000, isCancelled: true },
      { forMs: 90_000, isCancelled: false },
    ])
    requests.disarmDeadline()
    expect(timers[1]!.isCancelled).toBe(true)
  })
})
