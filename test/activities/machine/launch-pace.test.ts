import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { LaunchPace } from '../../../activities/machine/launch-pace'
import type { LaunchInput, LaunchOutcome } from '../../../core/activities'
import type { IssuedRunnerOrder } from '../../../core/documents'
import type { Order } from '../../../core/job/plan'
import { MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { AttemptDocuments } from '../../../activities/documents'
import { perform, Place } from '../place'

/** A launch every 315 ms. */
const PER_MINUTE = 200
const GAP_MS = 315

let place: Place

beforeEach(async () => {
  place = await Place.make({ capabilities: { idempotency: 'tag', pace: { launchesPerMinute: PER_MINUTE } } })
})
afterEach(() => place.dispose())

const paceOf = (launchesPerMinute = PER_MINUTE): LaunchPace =>
  new LaunchPace(
    { store: place.store, backend: 'scripted', launchesPerMinute },
    {
      now: place.now,
      monotonicMs: () => performance.now(),
    },
  )
const orderOf = (jobId: string): Order => place.order({ jobId })
const launch = (launchPace: LaunchPace, order: Order): Promise<LaunchOutcome> =>
  perform(place.verbs({ launchPace }), 'launch', { order, recordSeq: 3 } satisfies LaunchInput)
const sentAt = (): number[] => place.world.callsOf('launch').map(({ atMs }) => atMs)
const issuedAt = async ({ jobId }: Order): Promise<number> =>
  (await place.read<IssuedRunnerOrder>(layout.order(jobId, 1)))!.issuedAtMs

describe('launches of an account that allows only so many per minute', () => {
  it('are spaced over two workers, and nothing counts from before their turn', async () => {
    const workers = [paceOf(), paceOf()]
    const orders = Array.from({ length: 6 }, (_, index) => orderOf(`job-${index}`))
    const beganAtMs = Date.now()
    const outcomes = await Promise.all(orders.map((order, index) => launch(workers[index % 2]!, order)))
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(6).fill('launched'))
    const issued = (await Promise.all(orders.map(issuedAt))).sort((a, b) => a - b)
    issued.forEach((atMs, index) => expect(atMs - beganAtMs).toBeGreaterThanOrEqual(index * GAP_MS - 20))
    expect(sentAt()).toHaveLength(6)
  })

  it('are all held back in that worker when one is throttled, and it is sent again in its turn', async () => {
    const worker = paceOf()
    const failure = { class: 'throttled', message: 'too many launches', retryAfterMs: 1_500 } as const
    place.world.faults.add('launch', { kind: 'throws', failure }, { times: 1 })
    const [first, second] = ['job-a', 'job-b'].map(orderOf) as [Order, Order]
    await expect(launch(worker, first)).rejects.toMatchObject({ type: 'throttled', nextRetryDelay: 1_500 })
    expect(await Promise.all([launch(worker, second), launch(worker, first)])).toMatchObject([
      { kind: 'launched' },
      { kind: 'launched' },
    ])
    const [refused, ...sent] = sentAt()
    const waits = sent.map((atMs) => atMs - refused!)
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1_400)
    expect(Math.max(...waits)).toBeGreaterThanOrEqual(1_400 + GAP_MS / 2)
  })

  it('are held back no longer when the clock is set back meanwhile', async () => {
    const pace = paceOf()
    const beganMs = performance.now()
    pace.slowDown(600)
    place.aheadMs = -120 * MINUTE_MS
    await pace.turn(AbortSignal.timeout(10_000))
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(590)
  })

  it('leave the line at once when they are called off, and hold up none that come after', async () => {
    const pace = paceOf(30)
    const calledOff = new AbortController()
    await pace.turn(calledOff.signal)
    const beganAtMs = Date.now()
    const waiting = [1, 2].map(() => pace.turn(calledOff.signal))
    const next = pace.turn(new AbortController().signal)
    calledOff.abort(new Error('called off'))
    await Promise.all(waiting.map((each) => expect(each).rejects.toThrow('called off')))
    expect(Date.now() - beganAtMs).toBeLessThan(1_000)
    await next
    // After the first turn and that of the first in line, which was taken by then.
    expect(Date.now() - beganAtMs).toBeLessThan(3 * 2_100)
  })

  it('are sent no more half an hour after the order was put: its machine would start too late', async () => {
    const order = orderOf('job-a')
    await new AttemptDocuments(place.store, order, place.now).putOrder(order.runner)
    place.aheadMs = 31 * MINUTE_MS
    expect(await launch(paceOf(), order)).toEqual({ kind: 'unconfirmed', findAfterMs: 0 })
    expect(sentAt()).toEqual([])
  })

  it('buy nothing for an attempt that was stopped meanwhile', async () => {
    const order = orderOf('job-a')
    const documents = new AttemptDocuments(place.store, order, place.now)
    await documents.putDrain({ reason: 'superseded', windowMs: 0 })
    expect(await launch(paceOf(), order)).toMatchObject({ kind: 'refused', failure: { class: 'transient' } })
    expect(sentAt()).toEqual([])
  })
})
