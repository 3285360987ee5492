import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { WatchInput } from '../../../core/activities'
import type { Order } from '../../../core/job/plan'
import type { Beat, Lease } from '../../../core/documents'
import { microUsd } from '../../../core/money/money'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import type { GrantSource } from '../../../activities/watch/grants'
import { MachineWatch } from '../../../activities/watch/machine'
import { layout } from '../../../storage/layout'
import { Place, QUICK } from '../place'

/** For an hour, as the order has it. */
const PRICE = microUsd(360)
const RUNNING = { state: 'running' } as const
const GONE = { state: 'gone' } as const
const TIMING = {
  ...QUICK,
  beatMs: SECOND_MS,
  leaseMs: 6 * HOUR_MS,
  goneConfirmMs: 2 * SECOND_MS,
  silenceMs: 2 * HOUR_MS,
}
/** Of our wall clock; a machine that is suspended sees the same when it continues. */
const STEPS = [
  ['2 h ahead', 2 * HOUR_MS],
  ['2 h back', -2 * HOUR_MS],
  ['30 d ahead', 30 * DAY_MS],
  ['30 d back', -30 * DAY_MS],
] as const

let place: Place
let order: Order
let input: WatchInput
/** The true time; ours is wrong by `stepMs`, and no process can read it. */
let trueMs: number
let stepMs: number
let seq: number
/** How far the machine's clock is ahead. */
let machineStepMs: number
/** By how much the monotonic clock is slower, for each beat. */
let driftMs: number

beforeEach(async () => {
  place = await Place.make()
  const launched = place.launched()
  order = launched.order
  trueMs = launched.handle.launchedAtMs
  stepMs = machineStepMs = driftMs = seq = 0
  input = { ...launched, timing: TIMING, isRunning: true }
})
afterEach(() => place.dispose())

const watch = (over: Partial<WatchInput> = {}, grants?: GrantSource): MachineWatch =>
  new MachineWatch(
    {
      store: place.store,
      now: () => trueMs + stepMs,
      monotonicMs: () => trueMs - input.handle.launchedAtMs - driftMs * seq,
      backend: {},
      grants,
    },
    { ...input, ...over },
  )
const lease = (): Promise<Lease | undefined> => place.read<Lease>(layout.lease(order.jobId, order.attempt))
const START_MS = 5 * SECOND_MS
const beat = (): Promise<void> => {
  const uptimeMs = Math.max(0, trueMs - input.handle.launchedAtMs - START_MS)
  const startedAtMs = input.handle.launchedAtMs + START_MS
  const phases: Beat['phases'] = [{ name: 'starting', startedAtMs, durationMs: 0 }]
  return place.beat(order, { clockMs: trueMs + machineStepMs, seq: ++seq, uptimeMs, phases })
}

/** The machine beats and the watch looks, every second. */
async function follow(one: MachineWatch, seconds: number): Promise<unknown[]> {
  const told: unknown[] = []
  for (let second = 0; second < seconds; second += 1) {
    trueMs += SECOND_MS
    await beat()
    told.push(await one.check(RUNNING, true))
  }
  return told.filter((each) => each !== undefined)
}

it('does not believe a machine that denies the time which the watch has measured', async () => {
  const limits = {
    seq: 0,
    deadlineAtMs: null,
    budget: { microUsd: 3 * PRICE, priceMaxMicroUsdPerHour: PRICE },
  }
  const over = { order: { ...input.order, runner: { ...input.order.runner, limits } } }
  const forged = (): Promise<void> =>
    place.beat(order, { clockMs: trueMs, seq: ++seq, uptimeMs: 0, phases: [] })
  let one = watch(over)
  const told: unknown[] = []
  for (let minute = 0; minute < 300 && told.length === 0; minute += 1) {
    trueMs += MINUTE_MS
    await forged()
    // Another worker takes over.
    if (minute === 90) one = watch(over)
    const outcome = await one.check(RUNNING, true)
    if (outcome !== undefined) told.push(outcome, minute)
  }
  expect(told).toEqual([{ kind: 'budget' }, expect.any(Number)])
  expect(told[1]).toBeGreaterThan(170)
  expect(told[1]).toBeLessThan(240)
})

describe.each(STEPS)('a wall clock that is set %s', (_, byMs) => {
  const limited = (): WatchInput['order'] => {
    const limits = {
      seq: 0,
      deadlineAtMs: null,
      budget: { microUsd: 3 * PRICE, priceMaxMicroUsdPerHour: PRICE },
    }
    const usableUntilMs = trueMs + HOUR_MS
    return { ...input.order, runner: { ...input.order.runner, limits, usableUntilMs } }
  }

  it.each(['during the watch', 'before it'])('%s ends no healthy machine', async (when) => {
    const told: unknown[] = []
    if (when === 'before it') {
      await follow(watch(), 2)
      stepMs = byMs
    }
    const one = watch({ order: limited() })
    told.push(...(await follow(one, 3)))
    stepMs = byMs
    told.push(...(await follow(one, 60)))
    stepMs = 0
    told.push(...(await follow(one, 60)))
    expect(told).toEqual([])
  })

  it('together with that of the machine ends no healthy machine that has a budget', async () => {
    driftMs = 0.25
    const { runner, ...rest } = limited()
    const one = watch({ order: { ...rest, runner: { ...runner, usableUntilMs: undefined } } })
    const told = await follow(one, 3)
    stepMs = machineStepMs = byMs
    told.push(...(await follow(one, 60)))
    expect(told).toEqual([])
    const { spentMicroUsd, metered } = (await lease())!
    expect(spentMicroUsd).toBeLessThan(PRICE)
    expect(Number.isInteger(metered!.toAtMs)).toBe(true)
  })

  it('together with that of the machine counts no money in a watch that begins afterwards', async () => {
    const { runner, ...rest } = limited()
    const over = { order: { ...rest, runner: { ...runner, usableUntilMs: undefined } } }
    await follow(watch(over), 3)
    trueMs += HOUR_MS
    stepMs = machineStepMs = byMs
    const told = await follow(watch(over), 60)
    expect(told).toEqual([])
    const { spentMicroUsd, metered } = (await lease())!
    expect(spentMicroUsd).toBeGreaterThanOrEqual(PRICE)
    expect(spentMicroUsd).toBeLessThan(1.1 * PRICE)
    expect(metered!.costMicroUsd).toBeGreaterThanOrEqual(PRICE)
    expect(metered!.costMicroUsd).toBeLessThan(1.1 * PRICE)
    // Another one begins when the clock is right again.
    stepMs = machineStepMs = 0
    expect(await follow(watch(over), 60)).toEqual([])
    expect((await lease())!.spentMicroUsd).toBeLessThan(1.2 * PRICE)
  })

  it('does not keep a lease from being renewed', async () => {
    const one = watch()
    await follow(one, 3)
    const before = (await lease())!.seq
    stepMs = byMs
    trueMs += TIMING.leaseMs / 2
    await follow(one, 3)
    expect((await lease())!.seq).toBeGreaterThan(before)
    // Another worker takes over, and finds a lease that was written by another clock.
    const other = watch()
    await follow(other, 3)
    trueMs += TIMING.leaseMs / 2
    await follow(other, 3)
    expect((await lease())!.seq).toBeGreaterThan(before + 1)
  })

  it('keeps grants and leases no longer and no shorter than they hold', async () => {
    const holdsForMs = 12 * HOUR_MS
    let endsTrueMs = 0
    let given = 0
    const grants: GrantSource = {
      holdsForMs,
      learnHoldsForMs: async () => holdsForMs,
      grant: async () => {
        endsTrueMs = trueMs + holdsForMs
        given += 1
        const sealed = { v: 1 as const, nonce: String(given), text: '', tag: '' }
        return { sealed, endsAtMs: trueMs + stepMs + holdsForMs }
      },
      recall: (_grantee, sealed) => ({ sealed, endsAtMs: endsTrueMs + stepMs }),
    }
    const one = watch({}, grants)
    await follow(one, 3)
    stepMs = byMs
    let { seq: before } = (await lease())!
    let lapsesTrueMs = trueMs + TIMING.leaseMs / 2
    for (let quarter = 0; quarter < 100; quarter += 1) {
      trueMs += HOUR_MS / 4
      if (quarter === 50) stepMs = 0
      await follow(one, 1)
      const { seq: after, ttlMs } = (await lease())!
      if (after > before) lapsesTrueMs = trueMs + ttlMs
      before = after
      expect(lapsesTrueMs).toBeGreaterThan(trueMs + HOUR_MS)
      expect(lapsesTrueMs).toBeLessThanOrEqual(endsTrueMs)
    }
    // Each six hours, and once more after each step.
    expect(given).toBeLessThanOrEqual(8)
  })

  it('reports no spending that rests on it', async () => {
    const one = watch({ order: limited() })
    await follow(one, 3)
    const before = (await lease())!
    stepMs = byMs
    trueMs += HOUR_MS
    await follow(one, 3)
    const after = (await lease())!
    expect(after.seq).toBeGreaterThan(before.seq)
    const spentMicroUsd = after.spentMicroUsd ?? PRICE
    expect(spentMicroUsd).toBeGreaterThanOrEqual(PRICE)
    expect(spentMicroUsd).toBeLessThan(1.1 * PRICE)
  })

  it('hides no machine that is gone', async () => {
    const one = watch()
    await follow(one, 3)
    stepMs = byMs
    trueMs += SECOND_MS
    await one.check(GONE, true)
    trueMs += TIMING.goneConfirmMs
    expect(await one.check(GONE, true)).toMatchObject({ kind: 'over' })
  })

  it('hides no machine that is silent', async () => {
    const one = watch()
    await follow(one, 3)
    stepMs = byMs
    trueMs += TIMING.silenceMs - SECOND_MS
    expect(await one.check(RUNNING, true)).toBeUndefined()
    trueMs += SECOND_MS
    expect(await one.check(RUNNING, true)).toEqual({ kind: 'silent', silentMs: TIMING.silenceMs })
  })

  it('ends no machine that waits in a queue', async () => {
    const runner = { ...input.order.runner, queueMs: HOUR_MS }
    const one = watch({ isQueued: true, order: { ...input.order, runner } })
    expect(await one.check({ state: 'queued' }, true)).toBeUndefined()
    stepMs = byMs
    trueMs += SECOND_MS
    expect(await one.check({ state: 'queued' }, true)).toBeUndefined()
    trueMs += HOUR_MS
    expect(await one.check({ state: 'queued' }, true)).toMatchObject({ kind: 'over' })
  })
})

describe('a runner that does not answer its timekeeper', () => {
  it('is silent although its machine beats, and keeps its lease', async () => {
    const one = watch()
    await follow(one, 3)
    const { seq: before } = (await lease())!
    const stalledSinceMs = trueMs
    for (let passedMs = 0; passedMs < TIMING.silenceMs; passedMs += HOUR_MS / 4) {
      expect(await one.check(RUNNING, true)).toBeUndefined()
      trueMs += HOUR_MS / 4
      await place.beat(order, { clockMs: trueMs, seq: ++seq, stalledSinceMs })
    }
    expect(await one.check(RUNNING, true)).toMatchObject({ kind: 'silent' })
    expect((await lease())!.seq).toBeGreaterThan(before)
  })
})
