import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../activities/documents'
import { BudgetWatch } from '../../activities/watch/budget'
import type { Settlement } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import { spendOver } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import type { Order } from '../../core/job/plan'
import { HOUR_MS } from '../../core/time/time'
import { readRecords } from '../../storage/record'
import { perform, Place, QUICK } from './place'

/** An hour of each machine. */
const PRICE = microUsd(360)

let place: Place
let order: Order
let kept: MachineHandle
let second: MachineHandle

beforeEach(async () => {
  place = await Place.make({ capabilities: { idempotency: 'tag' } })
  const launched = place.launched()
  order = launched.order
  kept = launched.handle
  second = place.world.duplicate(order).handle
  for (const handle of [kept, second]) handle.launchedAtMs -= HOUR_MS
  second.launchedAtMs += 1_000
})
afterEach(() => place.dispose())

const find = () => perform(place.verbs(), 'find', { order })
const settle = (handle: MachineHandle | null): Promise<Settlement> =>
  perform(place.verbs(), 'settle', {
    order,
    handle,
    timing: { ...QUICK, powerOffMs: 0 },
    windowMs: 0,
    end: null,
    drainReason: null,
    recordSeq: 4,
  })
const documents = (): AttemptDocuments => new AttemptDocuments(place.store, order, place.now)
const costOf = ({ launchedAtMs, id }: MachineHandle): number =>
  spendOver(place.world.machine(id)!.endedAtMs! - launchedAtMs, PRICE)

describe('the second machine that a provider made of an order', () => {
  it('is part of the cost of its attempt, although it was ended hours before and is listed no more', async () => {
    expect(await find()).toEqual({ kind: 'found', handles: [kept] })
    expect(place.lives()).toEqual(['alive', 'gone'])
    place.world.forgetEnded()
    place.aheadMs = 5 * HOUR_MS
    const settlement = await settle(kept)
    expect(settlement.duplicatesMicroUsd).toBe(costOf(second))
    expect(settlement.costMicroUsd).toBe(costOf(kept) + costOf(second))
    const [record] = await readRecords(place.store, order.jobId)
    expect(record!.summary).toMatch(/\$7\d\d\.\d\d \(with \$360\.\d\d for another machine that the provider/)
  })

  it('is metered by its last sign even if the search died before it had recorded the end', async () => {
    place.world.faults.add('observe', { kind: 'throws', failure: { class: 'transient', message: 'no' } })
    await expect(find()).rejects.toMatchObject({ type: 'transient' })
    expect(await documents().readEnded()).toEqual([{ handle: second, endedAtMs: null }])
    expect(await find()).toEqual({ kind: 'found', handles: [kept] })
    expect(await documents().readEnded()).toEqual([
      { handle: second, endedAtMs: place.world.machine(second.id)!.endedAtMs },
    ])
    place.aheadMs = 5 * HOUR_MS
    expect((await settle(kept)).duplicatesMicroUsd).toBe(costOf(second))
  })

  it('is billed, and ended, if only its beginning end is on record', async () => {
    await documents().putEnding(second)
    place.world.freezeLists(0)
    const { costMicroUsd } = await settle(kept)
    expect(place.lives()).toEqual(['gone', 'gone'])
    expect(costMicroUsd).toBe(costOf(kept) + costOf(second))
  })

  it('is what only a record of a machine of this attempt names', async () => {
    const put = (name: string, handle: object): Promise<void> =>
      place.store.put(
        `jobs/${order.jobId}/attempts/1/ended/${name}.json`,
        JSON.stringify({ handle, endedAtMs: null }),
      )
    await put('volume', { ...second, kind: 'volume' })
    await put('other', { ...second, attemptId: 'job-b-1' })
    await put('price', { ...second, realised: { ...second.realised, priceMicroUsdPerHour: -1 } })
    await put('none', [])
    expect(await documents().readEnded()).toEqual([])
  })

  it('is billed if the attempt got no machine: both were ended', async () => {
    await place.store.put(`jobs/${order.jobId}/attempts/1/claim.json`, JSON.stringify({ machine: 'm-77' }))
    expect(await find()).toMatchObject({ kind: 'unsettled' })
    expect(place.lives()).toEqual(['gone', 'gone'])
    place.world.forgetEnded()
    expect((await settle(null)).costMicroUsd).toBe(costOf(kept) + costOf(second))
  })

  it('is no machine of its own where the provider recognises a repeated order', async () => {
    await place.dispose()
    place = await Place.make()
    ;({ order, handle: kept } = place.launched())
    expect(await find()).toEqual({ kind: 'found', handles: [kept] })
    const { duplicatesMicroUsd } = await settle(kept)
    expect(duplicatesMicroUsd).toBeUndefined()
  })

  it('has used up part of the budget of its attempt', async () => {
    await find()
    const nowMs = kept.launchedAtMs + HOUR_MS
    const budget = new BudgetWatch(
      { order, handle: kept, timing: QUICK, isRunning: true },
      { backend: place.backend, documents: documents(), now: () => nowMs },
    )
    const { spentMicroUsd, metered } = await budget.report()
    const own = spendOver(HOUR_MS, PRICE)
    expect(spentMicroUsd - costOf(second)).toBeGreaterThanOrEqual(own)
    expect(metered.costMicroUsd - costOf(second)).toBeGreaterThanOrEqual(own)
    expect(metered.costMicroUsd - costOf(second)).toBeLessThan(own + microUsd(10))
  })
})
