import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { Wish } from '../../core/activities'
import type * as Requests from '../../workflows/stop-requests'

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
const { StopRequests } = jest.requireActual<typeof Requests>('../../workflows/stop-requests')

beforeEach(() => {
  timers = []
})

const WEAKER_TO_STRONGER: Wish[][] = [['migrated'], ['budget', 'deadline'], ['cancelled']]
const pairs = WEAKER_TO_STRONGER.flatMap((weak, rank) =>
  WEAKER_TO_STRONGER.slice(rank + 1).flatMap((strong) =>
    weak.flatMap((weaker) => strong.map((stronger) => [weaker, stronger] as const)),
  ),
)

describe('two requests to stop', () => {
  it.each(pairs)('are the stronger one, whichever came first: %s and %s', (weaker, stronger) => {
    const requests = new StopRequests()
    requests.want(weaker, 10_000)
    requests.want(stronger, 20_000)
    expect(requests).toMatchObject({ present: stronger, windowMs: 20_000, version: 2 })
    requests.want(weaker, 5_000)
    expect(requests).toMatchObject({ present: stronger, windowMs: 20_000, version: 2 })
  })

  it('of one strength are the first', () => {
    const requests = new StopRequests()
    requests.want('deadline', 10_000)
    requests.want('budget', 5_000)
    expect(requests).toMatchObject({ present: 'deadline', windowMs: 10_000, version: 1 })
  })

  it('of one kind have the shorter window, and are passed on again', () => {
    const requests = new StopRequests()
    for (const windowMs of [10_000, 5_000, 20_000]) requests.want('cancelled', windowMs)
    expect(requests).toMatchObject({ present: 'cancelled', windowMs: 5_000, version: 3 })
  })
})

describe('a move', () => {
  it('is forgotten once it is under way, with its target; nothing else is', () => {
    const requests = new StopRequests()
    const to = { backend: 'local' }
    requests.want('migrated', 10_000, to)
    expect(requests.target).toEqual(to)
    requests.forgetMove()
    expect(requests).toMatchObject({ present: null, target: undefined })
    requests.want('cancelled', 10_000)
    requests.forgetMove()
    expect(requests.present).toBe('cancelled')
  })
})

describe('the timer of the deadline', () => {
  const arm = (requests: Requests.StopRequests, inMs: number): void =>
    requests.arm({ wish: 'deadline', inMs, windowMs: 7_000 })

  it('asks to stop for the deadline, with its window', async () => {
    const requests = new StopRequests()
    arm(requests, 60_000)
    expect(timers).toMatchObject([{ forMs: 60_000 }])
    expect(requests.present).toBeNull()
    await timers[0]!.fire()
    expect(requests).toMatchObject({ present: 'deadline', windowMs: 7_000 })
  })

  it('fires at once where its time is over', () => {
    arm(new StopRequests(), -5)
    expect(timers).toMatchObject([{ forMs: 0 }])
  })

  it('replaces the one before, and goes with the job', () => {
    const requests = new StopRequests()
    arm(requests, 60_000)
    arm(requests, 90_000)
    expect(timers).toMatchObject([
      { forMs: 60_000, isCancelled: true },
      { forMs: 90_000, isCancelled: false },
    ])
    requests.disarm('deadline')
    expect(timers[1]!.isCancelled).toBe(true)
  })
})
