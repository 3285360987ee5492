import { describe, expect, it } from '@jest/globals'
import type { ReservationOrder } from '../../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { DrivenClock } from '../clock'
import type { PrepaidLot } from './lots'
import { ReservationMarket, type MarketOptions } from './market'
import { createScriptedReserving } from './reserving'

const LOT: PrepaidLot = {
  kind: 'prepaid',
  type: 'h100x8',
  region: 'east',
  zone: 'east-a',
  count: 2,
  startsAtMs: DAY_MS,
  durationMs: DAY_MS,
  upfrontMicro: 1_000_000,
}
const WISH = {
  backend: 'scripted',
  kind: 'prepaid',
  types: ['h100x8'],
  count: 2,
  durationMs: HOUR_MS,
} as const

function opened(options: Partial<MarketOptions> = {}) {
  const clock = new DrivenClock(0)
  const market = new ReservationMarket({ clock, ...options })
  market.sell({ ...LOT, stock: 5 })
  const reserving = createScriptedReserving(market)
  const orderOf = async (intent: string, deployment = 'one'): Promise<ReservationOrder> => ({
    intent,
    deployment,
    send: 1,
    owner: 'ann',
    backend: 'scripted',
    quote: (await reserving.reservable(WISH, patiently()))[0]!,
  })
  const idsListed = async (): Promise<string[]> =>
    (await reserving.reservations(patiently())).map(({ id }) => id)
  return { clock, market, reserving, orderOf, idsListed }
}

describe('a scripted market of reservations', () => {
  it('buys a prepaid quote twice if the order is sent twice', async () => {
    const { market, reserving, orderOf } = opened()
    const order = await orderOf('res-a')
    await reserving.reserve(order, patiently())
    await reserving.reserve(order, patiently())
    expect(market.purchases.map(({ intent }) => intent)).toEqual(['res-a', 'res-a'])
  })

  it('is shared by deployments, whose purchases have their own tags', async () => {
    const { market, orderOf } = opened()
    const other = createScriptedReserving(market)
    const [mine, theirs] = [await orderOf('res-a', 'one'), await orderOf('res-a', 'two')]
    await createScriptedReserving(market).reserve(mine, patiently())
    await other.reserve(theirs, patiently())
    const listed = await other.reservations(patiently())
    expect(listed.map(({ deployment }) => deployment)).toEqual(['one', 'two'])
    expect(await other.account(patiently())).toBe(market.account)
  })

  it('lists a purchase after its lag', async () => {
    const { clock, market, reserving, orderOf, idsListed } = opened({ listsLagMs: 10 * MINUTE_MS })
    market.faults.add('reserve', { kind: 'loses-answer', hasEffect: true }, { intent: 'res-a' })
    expect((await reserving.reserve(await orderOf('res-a'), patiently())).kind).toBe('unconfirmed')
    expect(await idsListed()).toEqual([])
    await clock.advance(10 * MINUTE_MS)
    expect(await idsListed()).toEqual([market.purchases[0]!.id])
  })

  it('makes a late purchase later', async () => {
    const { clock, market, reserving, orderOf } = opened()
    market.faults.add('reserve', { kind: 'late', effectAfterMs: MINUTE_MS })
    expect((await reserving.reserve(await orderOf('res-a'), patiently())).kind).toBe('unconfirmed')
    expect(market.purchases).toEqual([])
    await clock.advance(MINUTE_MS)
    expect(market.purchases.map(({ atMs }) => atMs)).toEqual([MINUTE_MS])
  })

  it('sells the last one to another customer in the moment of the purchase', async () => {
    const { market, reserving, orderOf } = opened()
    market.faults.add('reserve', { kind: 'gone' })
    expect(await reserving.reserve(await orderOf('res-a'), patiently())).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity' },
    })
    expect(market.purchases).toEqual([])
  })

  it('keeps its call unanswered until the caller leaves, when it hangs', async () => {
    const { market, reserving, orderOf } = opened()
    const order = await orderOf('res-a')
    const leaving = new AbortController()
    market.faults.add('reserve', { kind: 'hangs', hasEffect: true })
    const outcome = reserving.reserve(order, { signal: leaving.signal })
    leaving.abort()
    expect((await outcome).kind).toBe('unconfirmed')
    expect(market.purchases).toHaveLength(1)
  })

  it('changes stock and prices over time', async () => {
    const { clock, market, reserving } = opened()
    const [lot] = market.lots
    lot!.stock = [
      [0, 0],
      [HOUR_MS, 1],
    ]
    Object.assign(lot!, { upfrontMicro: [[0, 5], [2 * HOUR_MS, 3]] }) // prettier-ignore
    const fees = async (): Promise<number[]> =>
      (await reserving.reservable(WISH, patiently())).map(({ upfrontMicro }) => upfrontMicro)
    expect(await fees()).toEqual([])
    await clock.advance(HOUR_MS)
    expect(await fees()).toEqual([5])
    await clock.advance(HOUR_MS)
    expect(await fees()).toEqual([3])
  })

  it('confirms a payment in time, and says in the truth whether it did', async () => {
    const { clock, market, reserving, orderOf } = opened()
    await reserving.reserve(await orderOf('res-a'), patiently())
    market.payment = { kind: 'failed', afterMs: MINUTE_MS }
    await reserving.reserve(await orderOf('res-b'), patiently())
    expect(market.purchases.map(({ isPaid }) => isPaid)).toEqual([undefined, undefined])
    await clock.advance(5 * MINUTE_MS)
    expect(market.purchases.map(({ isPaid }) => isPaid)).toEqual([true, false])
  })

  it('shortens, delays, cancels and refuses what it sold', async () => {
    const { clock, market, reserving, orderOf } = opened()
    await reserving.reserve(await orderOf('res-a'), patiently())
    const { id } = market.purchases[0]!
    await clock.advance(DAY_MS)
    market.delay(id, DAY_MS + HOUR_MS)
    expect(market.reservation(id)).toMatchObject({ phase: 'delayed', free: 0 })
    await clock.advance(HOUR_MS)
    expect(market.reservation(id)).toMatchObject({ phase: 'active', free: 2 })
    market.shorten(id, DAY_MS + 2 * HOUR_MS)
    expect(market.reservation(id)).toMatchObject({ endsAtMs: DAY_MS + 2 * HOUR_MS })
    market.cancel(id)
    expect(market.reservation(id)).toMatchObject({ phase: 'ended', state: 'cancelled' })
    const pool = { type: 'h100x8', region: 'east', zone: 'east-a', total: 1 }
    const later = market.hold({ kind: 'hourly', ...pool, assessedAtMs: Infinity })
    expect(market.reservation(later)).toMatchObject({ phase: 'assessing' })
    market.refuse(later)
    expect(market.reservation(later)).toMatchObject({ phase: 'failed', state: 'unsupported' })
  })
})
