import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { PricePath } from '../../../backends/backend'
import type { WatchInput } from '../../../core/activities'
import type { Lease } from '../../../core/documents'
import { spendOver } from '../../../core/money/meter'
import { microUsd } from '../../../core/money/money'
import type { Observation } from '../../../core/observation'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { BudgetWatch } from '../../../activities/watch/budget'
import { MachineWatch } from '../../../activities/watch/machine'
import { AttemptDocuments } from '../../../activities/documents'
import { layout } from '../../../storage/layout'
import { StoreError } from '../../../storage/store'
import { Place } from '../place'

const RUNNING: Observation = { state: 'running' }
/** Silence is not what is looked at here. */
const TIMING = { ...DEFAULT_TIMING, silenceMs: 100 * HOUR_MS }
const RESERVE_MS = TIMING.drainMs + 2 * TIMING.powerOffMs + 3 * TIMING.beatMs
/** Half a dollar an hour, as the provider tells; at most one. */
const HALF = microUsd(0.5)
const DEAREST = microUsd(1)

let place: Place
let input: WatchInput
let startMs: number
let nowMs: number
let prices: () => Promise<PricePath>
let seq: number

beforeEach(async () => {
  place = await Place.make()
  const { order, handle } = place.launched()
  startMs = nowMs = handle.launchedAtMs
  seq = 0
  const limits = {
    seq: 0,
    deadlineAtMs: null,
    budget: { microUsd: microUsd(2), priceMaxMicroUsdPerHour: DEAREST },
  }
  const offers = order.offers.map((offer) => ({
    ...offer,
    priceMicroUsdPerHour: HALF,
    priceMaxMicroUsdPerHour: DEAREST,
  }))
  input = {
    order: { ...order, offers, priceMaxMicroUsdPerHour: DEAREST, runner: { ...order.runner, limits } },
    handle: { ...handle, realised: { ...handle.realised, priceMicroUsdPerHour: HALF } },
    timing: TIMING,
    isRunning: true,
  }
  await new AttemptDocuments(place.store, order, () => startMs).putOrder(input.order.runner)
  prices = async () => ({ prices: [{ fromAtMs: startMs, priceMicroUsdPerHour: HALF }], knownToAtMs: nowMs })
})
afterEach(() => place.dispose())

const watch = (over: Partial<WatchInput> = {}): MachineWatch =>
  new MachineWatch(
    { store: place.store, now: () => nowMs, monotonicMs: () => nowMs, backend: { prices: () => prices() } },
    { ...input, ...over },
  )
const lease = (): Promise<Lease | undefined> =>
  place.read<Lease>(layout.lease(input.order.jobId, input.order.attempt))

async function readView(
  one: MachineWatch,
  afterStartMs: number,
  { isBeating = true } = {},
): Promise<unknown> {
  nowMs = startMs + afterStartMs
  if (isBeating) await place.beat(input.order, { clockMs: nowMs, seq: ++seq, uptimeMs: afterStartMs })
  return one.check(RUNNING, true)
}

describe('the money of a machine that runs', () => {
  it('is sent with the lease, more often the less is left', async () => {
    const one = watch()
    await readView(one, 0)
    expect(await lease()).toMatchObject({ seq: 1, spentMicroUsd: 0 })
    // Two dollars do for two hours at the dearest price; a lease alone is renewed after half an hour.
    await readView(one, 29 * MINUTE_MS)
    expect(await lease()).toMatchObject({ seq: 1 })
    await readView(one, 30 * MINUTE_MS)
    expect(await lease()).toMatchObject({
      seq: 2,
      spentMicroUsd: microUsd(0.25),
      metered: { costMicroUsd: microUsd(0.25), priceMicroUsdPerHour: HALF },
    })
    await readView(one, 3.5 * HOUR_MS)
    const { seq: before } = (await lease())!
    await readView(one, 3.5 * HOUR_MS + 5 * MINUTE_MS)
    expect((await lease())!.seq).toBeGreaterThan(before)
  })

  it('counts what the provider may not have told yet at the dearest price, and all of it where it tells nothing', async () => {
    const one = watch()
    prices = async () => ({
      prices: [{ fromAtMs: startMs, priceMicroUsdPerHour: HALF }],
      knownToAtMs: nowMs - 6 * MINUTE_MS,
    })
    await readView(one, HOUR_MS)
    expect(await lease()).toMatchObject({ spentMicroUsd: microUsd(0.45) + microUsd(0.1) })
    prices = () => Promise.reject(new Error('silent'))
    await readView(one, 2 * HOUR_MS)
    // The earlier report holds.
    expect(await lease()).toMatchObject({ spentMicroUsd: microUsd(1.55) })
    await readView(watch(), HOUR_MS, { isBeating: false })
  })

  it('shows people a cost that never falls, by the last known price where the provider is silent', async () => {
    const one = watch()
    const shown = async (): Promise<number> => (await lease())!.metered!.costMicroUsd
    await readView(one, HOUR_MS)
    expect(await shown()).toBe(HALF)
    prices = () => Promise.reject(new Error('silent'))
    await readView(one, 2 * HOUR_MS)
    expect(await shown()).toBe(2 * HALF)
    // The price had fallen long before the provider reported it.
    const fallen = { fromAtMs: startMs + 1.5 * HOUR_MS, priceMicroUsdPerHour: HALF / 10 }
    prices = async () => ({
      prices: [{ fromAtMs: startMs, priceMicroUsdPerHour: HALF }, fallen],
      knownToAtMs: nowMs,
    })
    const another = watch()
    await readView(another, 3 * HOUR_MS)
    expect(await shown()).toBe(3 * HALF)
    await readView(another, 4 * HOUR_MS)
    expect(await shown()).toBe(3 * HALF + HALF / 10)
  })

  it('reaches its budget by what it really cost, with time to end a machine that does not obey; and says so once', async () => {
    const one = watch()
    // At the dearest price it would be over after two hours.
    expect(await readView(one, 3 * HOUR_MS)).toBeUndefined()
    expect(
      await readView(one, 4 * HOUR_MS - 2 * RESERVE_MS - MINUTE_MS, { isBeating: false }),
    ).toBeUndefined()
    expect(await readView(one, 4 * HOUR_MS - RESERVE_MS, { isBeating: false })).toEqual({ kind: 'budget' })
    expect(await readView(one, 4 * HOUR_MS, { isBeating: false })).toBeUndefined()
    const told = watch({ isBudgetReached: true })
    expect(await readView(told, 4 * HOUR_MS, { isBeating: false })).toBeUndefined()
  })

  it('knows of more money before it reports an empty budget, whether or not its runner has read of it', async () => {
    const one = watch()
    await readView(one, 0)
    const budget = { microUsd: microUsd(20), priceMaxMicroUsdPerHour: DEAREST }
    await new AttemptDocuments(place.store, input.order, () => nowMs).putLimits({
      seq: 1,
      deadlineAtMs: null,
      budget,
    })
    expect(await readView(one, 4 * HOUR_MS, { isBeating: false })).toBeUndefined()
  })

  it('says nothing of a budget while the store cannot report more money, nor before the last report is known', async () => {
    const budget = { microUsd: microUsd(20), priceMaxMicroUsdPerHour: DEAREST }
    await new AttemptDocuments(place.store, input.order, () => nowMs).putLimits({
      seq: 1,
      deadlineAtMs: null,
      budget,
    })
    const silent = (): never => {
      throw new StoreError('silent', { isTransient: true })
    }
    const list = jest.spyOn(place.store, 'list').mockImplementation(silent)
    const read = jest.spyOn(place.store, 'get').mockImplementation(silent)
    const one = watch()
    nowMs = startMs + 4 * HOUR_MS
    expect(await one.check(RUNNING, true)).toBeUndefined()
    read.mockRestore()
    expect(await one.check(RUNNING, true)).toBeUndefined()
    list.mockRestore()
    expect(await one.check(RUNNING, true)).toBeUndefined()
  })

  it.each([
    [
      'from a clock slack before its launch, whose instant is by a clock that is not ours',
      10 * MINUTE_MS,
      CLOCK_SLACK_MS,
    ],
    ['from its order where that went out later', 10 * SECOND_MS, 10 * SECOND_MS],
  ])('counts %s', async (_, orderedBeforeMs, countedBeforeMs) => {
    const key = layout.order(input.order.jobId, input.order.attempt)
    const order = { ...input.order.runner, issuedAtMs: startMs - orderedBeforeMs }
    await place.store.put(key, JSON.stringify(order))
    nowMs = startMs + HOUR_MS
    const documents = new AttemptDocuments(place.store, input.order, () => nowMs)
    const backend = { prices: () => prices() }
    const budget = new BudgetWatch(input, { backend, documents, now: () => nowMs })
    expect((await budget.report()).spentMicroUsd).toBe(spendOver(HOUR_MS + countedBeforeMs, HALF))
  })

  it('continues from the reports of an earlier watch, if the provider has been silent since', async () => {
    prices = () => Promise.reject(new Error('silent'))
    const documents = new AttemptDocuments(place.store, input.order, () => nowMs)
    const budget = new BudgetWatch(input, {
      backend: { prices: () => prices() },
      documents,
      now: () => nowMs,
    })
    nowMs = startMs + 2 * HOUR_MS
    // At the dearest price it would all be spent.
    const told = { seq: 1, answersBeat: 1, ttlMs: 1, spentMicroUsd: microUsd(0.5) }
    budget.restore({ lease: told, renewedAtMs: startMs + HOUR_MS })
    expect(await budget.isReached()).toBe(false)
    const { spentMicroUsd } = await budget.report()
    // From a clock slack before the store's instant on, at the dearest price.
    expect(spentMicroUsd).toBe(microUsd(0.5) + spendOver(HOUR_MS + CLOCK_SLACK_MS, DEAREST))
  })
})
