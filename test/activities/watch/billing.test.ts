import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../../activities/documents'
import { MachineWatch } from '../../../activities/watch/machine'
import type { WatchInput, WatchOutcome } from '../../../core/activities'
import type { Billing, Lease } from '../../../core/documents'
import { microUsd } from '../../../core/money/money'
import type { Observation } from '../../../core/observation'
import { CLOCK_SLACK_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { Place, QUICK } from '../place'

const QUEUED: Observation = { state: 'queued' }
const RUNNING: Observation = { state: 'running' }
const QUEUE_MS = 10 * MINUTE_MS
const RUN_MS_MAX = 60 * MINUTE_MS
const TIMING = { ...QUICK, goneConfirmMs: 0, silenceMs: MINUTE_MS, leaseMs: 30 * MINUTE_MS }

let place: Place
let input: WatchInput
let launchedAtMs: number
let nowMs: number

beforeEach(async () => {
  place = await Place.make()
  const { order, handle } = place.launched()
  launchedAtMs = nowMs = handle.launchedAtMs
  const terms = { queueMs: QUEUE_MS, runMsMax: RUN_MS_MAX }
  // It pays for five minutes of the dearest machine.
  const budget = { microUsd: microUsd(30), priceMaxMicroUsdPerHour: microUsd(360) }
  const runner = { ...order.runner, ...terms, limits: { seq: 0, deadlineAtMs: null, budget } }
  input = { order: { ...order, runner }, handle, timing: TIMING, isRunning: false, isQueued: false }
  await new AttemptDocuments(place.store, order, () => launchedAtMs).putOrder(runner)
})
afterEach(() => place.dispose())

const watch = (over: Partial<WatchInput> = {}): MachineWatch =>
  new MachineWatch(
    { store: place.store, now: () => nowMs, monotonicMs: () => nowMs, backend: {} },
    { ...input, ...over },
  )
/** The attempt knows that its machine has begun. */
const begun = (): MachineWatch => {
  const told = { ...input }
  delete told.isQueued
  return new MachineWatch(
    { store: place.store, now: () => nowMs, monotonicMs: () => nowMs, backend: {} },
    { ...told, isRunning: true },
  )
}
const recorded = (): Promise<Billing | undefined> =>
  place.read<Billing>(layout.billing(input.order.jobId, input.order.attempt))
const at = (ms: number, one: MachineWatch, observation: Observation): Promise<WatchOutcome | undefined> => {
  nowMs = launchedAtMs + ms
  return one.check(observation, true)
}

describe('a watch of a machine that may be queued', () => {
  it('reports once that it is, and puts it on record', async () => {
    expect(await at(SECOND_MS, watch(), QUEUED)).toEqual({ kind: 'queued' })
    expect(await recorded()).toEqual({ machine: input.handle.id, fromAtMs: null })
    expect(await at(2 * SECOND_MS, watch({ isQueued: true }), QUEUED)).toBeUndefined()
  })

  it('takes neither its silence nor its age for an end, nor its wait for spending', async () => {
    const one = watch({ isQueued: true })
    for (let ms = 0; ms < QUEUE_MS; ms += MINUTE_MS / 2) expect(await at(ms, one, QUEUED)).toBeUndefined()
    expect(await at(QUEUE_MS, one, { ...RUNNING, billedFromAtMs: launchedAtMs + QUEUE_MS })).toEqual({
      kind: 'begun',
      fromAtMs: launchedAtMs + QUEUE_MS,
    })
  })

  it('ends it as missing capacity when it has waited too long', async () => {
    expect(await at(QUEUE_MS + 1, watch({ isQueued: true }), QUEUED)).toMatchObject({
      kind: 'over',
      end: { kind: 'failed', isLaunched: false, failure: { class: 'capacity' } },
    })
  })

  it('ends it with its result, should it have begun and ended in between', async () => {
    await place.result(input.order)
    expect(await at(QUEUE_MS + 1, watch({ isQueued: true }), QUEUED)).toEqual({
      kind: 'over',
      end: { kind: 'succeeded' },
    })
  })

  it('calls it missing capacity when its provider drops it', async () => {
    const one = watch({ isQueued: true })
    await at(SECOND_MS, one, QUEUED)
    expect(await at(2 * SECOND_MS, one, { state: 'gone', cause: 'interrupted' })).toMatchObject({
      kind: 'over',
      end: { failure: { class: 'capacity' }, isLaunched: false },
    })
  })

  it('calls it an interruption when it had begun', async () => {
    const one = watch({ isQueued: true })
    await at(SECOND_MS, one, QUEUED)
    const gone = {
      state: 'gone',
      cause: 'interrupted',
      billedFromAtMs: launchedAtMs + 2 * SECOND_MS,
    } as const
    expect(await at(2 * SECOND_MS, one, gone)).toMatchObject({
      kind: 'over',
      end: { failure: { class: 'interrupted' } },
    })
  })

  it('counts billing from the last look but one that found it queued, if the provider reports no start', async () => {
    const one = watch({ isQueued: true })
    await at(10 * SECOND_MS, one, QUEUED)
    await at(20 * SECOND_MS, one, QUEUED)
    // Its answer may have left the provider right after the look before.
    expect(await at(30 * SECOND_MS, one, RUNNING)).toEqual({
      kind: 'begun',
      fromAtMs: launchedAtMs + 10 * SECOND_MS,
    })
    expect(await recorded()).toMatchObject({ fromAtMs: launchedAtMs + 10 * SECOND_MS })
  })

  it('knows it from the record when another watch has seen it', async () => {
    await at(SECOND_MS, watch(), { ...RUNNING, billedFromAtMs: launchedAtMs + 7 })
    expect(await at(2 * SECOND_MS, watch({ isQueued: true }), RUNNING)).toEqual({
      kind: 'begun',
      fromAtMs: launchedAtMs + 7,
    })
  })

  it('reports the beginning only to who waits for it', async () => {
    expect(await at(SECOND_MS, watch(), RUNNING)).toBeUndefined()
    expect(
      await at(SECOND_MS, watch({ order: { ...input.order, runnerStart: 'after-launch' } }), RUNNING),
    ).toEqual({
      kind: 'begun',
      fromAtMs: launchedAtMs,
    })
    expect(await at(SECOND_MS, begun(), RUNNING)).toBeUndefined()
  })

  it('tells the runner what it cost and when its time is up, both from the beginning of its billing', async () => {
    const one = watch({ isQueued: true })
    await at(8 * MINUTE_MS, one, QUEUED)
    const fromAtMs = launchedAtMs + 9 * MINUTE_MS
    await at(9 * MINUTE_MS, one, { ...RUNNING, billedFromAtMs: fromAtMs })
    await place.beat(input.order, { clockMs: launchedAtMs + 10 * MINUTE_MS, seq: 1 })
    await at(10 * MINUTE_MS, begun(), { ...RUNNING, billedFromAtMs: fromAtMs })
    const lease = await place.read<Lease>(layout.lease(input.order.jobId, input.order.attempt))
    expect(lease).toMatchObject({ usableUntilMs: fromAtMs + RUN_MS_MAX })
    // A minute and the slack of two clocks, at $6 a minute.
    expect(lease!.spentMicroUsd).toBe(microUsd((6 * (MINUTE_MS + CLOCK_SLACK_MS)) / MINUTE_MS))
  })

  it('waits for the store before it says anything', async () => {
    const one = watch()
    const bringBack = await place.storeDown()
    expect(await at(SECOND_MS, one, QUEUED)).toBeUndefined()
    await bringBack()
    expect(await at(2 * SECOND_MS, one, QUEUED)).toEqual({ kind: 'queued' })
  })
})

describe('a machine that is gone when its time was up', () => {
  it('has reached its limit, and was not interrupted', async () => {
    const one = begun()
    const fromAtMs = launchedAtMs + MINUTE_MS
    await at(MINUTE_MS, one, { ...RUNNING, billedFromAtMs: fromAtMs })
    const gone = { state: 'gone', cause: 'interrupted' } as const
    const endedAtMs = fromAtMs + RUN_MS_MAX
    await place.beat(input.order, { clockMs: nowMs, seq: 1 })
    expect(await at(RUN_MS_MAX, one, { ...gone, endedAtMs })).toEqual({
      kind: 'over',
      end: { kind: 'stopped', by: 'expired' },
    })
    const early = begun()
    await at(MINUTE_MS, early, RUNNING)
    expect(
      await at(2 * MINUTE_MS, early, { ...gone, endedAtMs: launchedAtMs + 2 * MINUTE_MS }),
    ).toMatchObject({
      end: { failure: { class: 'interrupted' } },
    })
  })
})
