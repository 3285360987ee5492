/**
 * The contract of `ReservingBackend` (`backends/backend.ts`), one test per promise, for every backend that sells reservations:
 *
 * account
 *    is the same for every process
 * reservable
 *    prices what satisfies the whole wish, in whole millionths, and buys nothing
 *    is empty if nothing can be bought
 *    throws invalid for what is never sold
 *    answers while one part of the provider fails, and reports that part
 * reserve
 *    buys the quote once, with the tags of the order
 *    sends nothing for a prepaid quote whose price has changed
 *    sends nothing for an hourly quote whose price has changed
 *    sends nothing for a quote that is gone
 *    sends nothing if the caller has left
 *    is refused if the provider certainly did not sell it
 *    is unconfirmed if the answer was lost, and reservations shows the purchase
 *    is unconfirmed if the provider failed, and sends nothing again
 *    makes one hourly reservation of one order, however often and from wherever it is sent
 *    makes another hourly reservation for another send
 * reservations
 *    shows what was bought elsewhere, without an intent
 *    reports the parts that do not answer
 *    shows a prepaid reservation as unpaid, scheduled, active and ended
 *    shows a payment that failed
 *    is offered to the jobs of its deployment with the intent, and with none if it was bought elsewhere
 * extensions
 *    are quoted for a reservation, bought once, and move its end when they are paid
 *    leave the end as it is if their payment fails
 * change
 *    sets the count, and repeating it is harmless
 *    sets the end, and takes it away
 *    splits free places off once for one intent
 *    is invalid for a prepaid reservation
 * release
 *    is free without a commitment, and may be repeated
 *    takes absence for success
 *    charges the rest of a commitment, as its terms say beforehand
 *    is refused within a commitment without terms
 *    is invalid for a prepaid reservation
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { LookContext, ReservingBackend } from '../../backends/backend'
import { BackendError } from '../../backends/errors'
import type {
  CapacityQuote,
  CapacityRequest,
  OwnedReservation,
  ReservationKind,
  ReservationOrder,
  ReserveOutcome,
} from '../../core/reservation/reservation'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { patiently } from './harness'
import type { ReservingHarness } from './reserving-harness'

/** A provider has accepted a start in the future by then. */
const ASSESSED_MS = HOUR_MS

export function describeReserving(name: string, makeHarness: () => Promise<ReservingHarness>): void {
  describe(`${name} keeps the promises of a backend that sells reservations:`, () => {
    let h: ReservingHarness
    let reserving: ReservingBackend
    let orders = 0
    beforeEach(async () => {
      h = await makeHarness()
      reserving = h.reserving
    })
    afterEach(() => h.dispose())

    const quoted = async (wish: CapacityRequest): Promise<CapacityQuote> => {
      const [quote] = await reserving.reservable(wish, patiently())
      if (quote === undefined) throw new Error('nothing is for sale')
      return quote
    }
    const orderOf = (quote: CapacityQuote, send = 1): ReservationOrder => ({
      intent: `res-${++orders}`,
      send,
      deployment: 'test',
      owner: 'ann',
      backend: 'any',
      quote,
    })
    const buy = async (wish: CapacityRequest): Promise<OwnedReservation> =>
      boughtOf(await reserving.reserve(orderOf(await quoted(wish)), patiently()))
    const seen = async (id: string): Promise<OwnedReservation | undefined> =>
      (await reserving.reservations(patiently())).find((one) => one.id === id)
    const refOf = ({ id, region }: OwnedReservation): { id: string; region: string } => ({ id, region })

    describe('account', () => {
      it('is the same for every process', async () => {
        const account = await reserving.account(patiently())
        expect(account).toMatch(/./)
        expect(await h.reopen().account(patiently())).toBe(account)
      })
    })

    describe('reservable', () => {
      it('prices what satisfies the whole wish, in whole millionths, and buys nothing', async () => {
        for (const kind of ['prepaid', 'hourly'] as const) {
          const wish = h.wish(kind)
          const quotes = await reserving.reservable(wish, patiently())
          expect(quotes.length).toBeGreaterThan(0)
          for (const quote of quotes) {
            expect(wish.types).toContain(quote.type)
            expect(quote).toMatchObject({ kind, count: wish.count, currency: 'USD' })
            expect(quote.startsAtMs).toBeGreaterThanOrEqual(wish.earliestStartAtMs ?? h.nowMs())
            const { usableUntilMs = quote.endsAtMs ?? Infinity } = quote
            expect(usableUntilMs - quote.startsAtMs).toBeGreaterThanOrEqual(wish.durationMs ?? 0)
            const { upfrontMicro, perHourMicro } = quote
            expect([upfrontMicro, perHourMicro].every(Number.isSafeInteger)).toBe(true)
            expect([upfrontMicro > 0, perHourMicro > 0]).toEqual([kind === 'prepaid', kind === 'hourly'])
          }
        }
        expect(h.purchases()).toEqual([])
      })

      it('is empty if nothing can be bought', async () => {
        await h.sellOut()
        expect(await reserving.reservable(h.wish('prepaid'), patiently())).toEqual([])
      })

      it('throws invalid for what is never sold', async () => {
        await expect(reserving.reservable(h.neverSold(), patiently())).rejects.toMatchObject({
          failure: { class: 'invalid' },
        })
      })

      it('answers while one part of the provider fails, and reports that part', async () => {
        const [, second] = h.regions
        h.silence(second)
        const { ctx, unseen } = watching()
        expect(await reserving.reservable(h.wish('hourly'), ctx)).not.toEqual([])
        expect(unseen).toEqual([second])
      })
    })

    describe('reserve', () => {
      it('buys the quote once, with the tags of the order', async () => {
        const order = orderOf(await quoted(h.wish('prepaid')))
        const bought = boughtOf(await reserving.reserve(order, patiently()))
        const { intent, quote } = order
        const truth = { intent, deployment: 'test', reservation: bought.id }
        expect(h.purchases()).toEqual([truth])
        expect(h.sent()).toBe(1)
        const expected = {
          id: bought.id,
          kind: 'prepaid',
          phase: 'unpaid',
          intent,
          deployment: 'test',
          type: quote.type,
          total: quote.count,
          region: quote.region,
          zone: quote.zone,
          startsAtMs: quote.startsAtMs,
          endsAtMs: quote.endsAtMs,
          usableUntilMs: quote.usableUntilMs,
          upfrontMicroUsd: quote.upfrontMicro,
          idleMicroUsdPerHour: 0,
          isTargeted: true,
          isShared: false,
        }
        expect(bought).toMatchObject(expected)
        expect(await seen(bought.id)).toMatchObject(expected)
      })

      const isRefusedAfterRise = async (kind: ReservationKind): Promise<void> => {
        const order = orderOf(await quoted(h.wish(kind)))
        await h.raisePrices()
        expect(await reserving.reserve(order, patiently())).toMatchObject({
          kind: 'refused',
          failure: { class: 'capacity' },
        })
        expect(h.purchases()).toEqual([])
      }

      it('sends nothing for a prepaid quote whose price has changed', () => isRefusedAfterRise('prepaid'))

      it('sends nothing for an hourly quote whose price has changed', () => isRefusedAfterRise('hourly'))

      it('sends nothing for a quote that is gone', async () => {
        const order = orderOf(await quoted(h.wish('prepaid')))
        await h.sellOut()
        expect(await reserving.reserve(order, patiently())).toMatchObject({
          kind: 'refused',
          failure: { class: 'capacity' },
        })
        expect(h.purchases()).toEqual([])
      })

      it('sends nothing if the caller has left', async () => {
        const order = orderOf(await quoted(h.wish('prepaid')))
        await expect(reserving.reserve(order, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(
          BackendError,
        )
        expect([h.sent(), h.purchases()]).toEqual([0, []])
      })

      it('is refused if the provider certainly did not sell it', async () => {
        for (const kind of ['prepaid', 'hourly'] as const) {
          const order = orderOf(await quoted(h.wish(kind)))
          h.refuseNextPurchase()
          expect(await reserving.reserve(order, patiently())).toMatchObject({
            kind: 'refused',
            failure: { class: 'auth' },
          })
        }
        expect(h.purchases()).toEqual([])
      })

      it('is unconfirmed if the answer was lost, and reservations shows the purchase', async () => {
        const order = orderOf(await quoted(h.wish('prepaid')))
        h.loseNextAnswer()
        expect(await reserving.reserve(order, patiently())).toMatchObject({ kind: 'unconfirmed' })
        expect(h.sent()).toBe(1)
        const found = await reserving.reservations(patiently())
        const ours = found.filter(({ intent }) => intent === order.intent).map(({ id }) => id)
        expect(ours).toEqual(h.purchases().map(({ reservation }) => reservation))
        expect(ours).toHaveLength(1)
      })

      it('is unconfirmed if the provider failed, and sends nothing again', async () => {
        for (const [index, kind] of (['prepaid', 'hourly'] as const).entries()) {
          const order = orderOf(await quoted(h.wish(kind)))
          h.failNextPurchase()
          expect(await reserving.reserve(order, patiently())).toMatchObject({ kind: 'unconfirmed' })
          expect(h.sent()).toBe(index + 1)
        }
        expect(h.purchases()).toEqual([])
      })

      it('makes one hourly reservation of one order, however often and from wherever it is sent', async () => {
        const order = orderOf(await quoted(h.wish('hourly')))
        h.loseNextAnswer()
        expect(await reserving.reserve(order, patiently())).toMatchObject({ kind: 'unconfirmed' })
        const again = await Promise.all([
          reserving.reserve(order, patiently()),
          h.reopen().reserve(order, patiently()),
        ])
        const ids = again.map((outcome) => boughtOf(outcome).id)
        expect(new Set(ids).size).toBe(1)
        expect(await seen(ids[0]!)).toMatchObject({
          kind: 'hourly',
          phase: 'active',
          isTargeted: true,
          free: order.quote.count,
          intent: order.intent,
          deployment: 'test',
        })
        expect(h.purchases()).toHaveLength(1)
      })

      it('makes another hourly reservation for another send', async () => {
        const order = orderOf(await quoted(h.wish('hourly')))
        const first = boughtOf(await reserving.reserve(order, patiently()))
        const second = boughtOf(await reserving.reserve({ ...order, send: 2 }, patiently()))
        expect(second.id).not.toBe(first.id)
        expect(h.purchases()).toHaveLength(2)
      })
    })

    describe('reservations', () => {
      it('shows what was bought elsewhere, without an intent', async () => {
        const id = h.buyByHand()
        const one = await seen(id)
        expect(one).toMatchObject({ id, isShared: false })
        expect([one?.intent, one?.deployment]).toEqual([undefined, undefined])
      })

      it('reports the parts that do not answer', async () => {
        const [, second] = h.regions
        const { id } = await buy({ ...h.wish('hourly'), regions: [h.regions[0]] })
        h.silence(second)
        const { ctx, unseen } = watching()
        expect((await reserving.reservations(ctx)).map((one) => one.id)).toContain(id)
        expect(unseen).toEqual([second])
        await expect(reserving.reservations(patiently())).rejects.toBeInstanceOf(BackendError)
      })

      it('shows a prepaid reservation as unpaid, scheduled, active and ended', async () => {
        const { id, startsAtMs, endsAtMs, phase } = await buy(h.wish('prepaid'))
        expect(phase).toBe('unpaid')
        await h.settlePayment(id)
        expect(await seen(id)).toMatchObject({ phase: 'scheduled', free: 0 })
        await h.pass(startsAtMs! - h.nowMs())
        const active = await seen(id)
        expect(active).toMatchObject({ phase: 'active', free: active!.total })
        await h.use(id)
        expect(await seen(id)).toMatchObject({ phase: 'active', free: active!.total - 1 })
        await h.pass(endsAtMs! - h.nowMs())
        expect((await seen(id))?.phase ?? 'ended').toBe('ended')
      })

      it('shows a payment that failed', async () => {
        h.failPayments()
        const { id } = await buy(h.wish('prepaid'))
        await h.settlePayment(id)
        expect(await seen(id)).toMatchObject({ phase: 'failed', free: 0 })
      })

      it('is offered to the jobs of its deployment with the intent, and with none if it was bought elsewhere', async () => {
        const { id, intent } = await buy(h.wish('hourly'))
        expect((await h.offered(id, 'test'))?.reservation).toMatchObject({ intent, free: 1 })
        const foreign = await h.offered(h.buyByHand(), 'test')
        expect(foreign?.reservation).toMatchObject({ total: expect.any(Number) })
        expect(foreign?.reservation?.intent).toBeUndefined()
      })
    })

    describe('extensions', () => {
      const longer = async (): Promise<{ bought: OwnedReservation; wish: CapacityRequest }> => {
        const bought = await buy(h.wish('prepaid'))
        await h.settlePayment(bought.id)
        const wish = { ...h.wish('prepaid'), durationMs: DAY_MS, extends: refOf(bought) }
        return { bought, wish }
      }

      it('are quoted for a reservation, bought once, and move its end when they are paid', async () => {
        const { bought, wish } = await longer()
        const quote = await quoted(wish)
        const { id, endsAtMs } = bought
        expect(quote).toMatchObject({ kind: 'prepaid', extends: id, startsAtMs: endsAtMs })
        expect(quote.endsAtMs).toBe(endsAtMs! + DAY_MS)
        const extended = boughtOf(await reserving.reserve(orderOf(quote), patiently()))
        expect(extended).toMatchObject({ id, endsAtMs })
        const unpaid = { phase: 'unpaid', endsAtMs: quote.endsAtMs }
        expect(await seen(id)).toMatchObject({ endsAtMs, extension: unpaid })
        expect([h.sent(), h.purchases().length]).toEqual([2, 2])
        await h.settlePayment(id)
        expect(await seen(id)).toMatchObject({
          endsAtMs: quote.endsAtMs,
          usableUntilMs: quote.usableUntilMs,
          extension: { phase: 'paid', endsAtMs: quote.endsAtMs },
        })
      })

      it('leave the end as it is if their payment fails', async () => {
        const { bought, wish } = await longer()
        h.failPayments()
        await reserving.reserve(orderOf(await quoted(wish)), patiently())
        await h.settlePayment(bought.id)
        expect(await seen(bought.id)).toMatchObject({
          endsAtMs: bought.endsAtMs,
          phase: 'scheduled',
          extension: { phase: 'failed' },
        })
      })
    })

    describe('change', () => {
      it('sets the count, and repeating it is harmless', async () => {
        const ref = refOf(await buy({ ...h.wish('hourly'), count: 2 }))
        for (const count of [3, 3, 1]) {
          const changed = await reserving.change(ref, { kind: 'count', count }, patiently())
          expect(changed).toMatchObject({ id: ref.id, total: count, free: count })
          expect(await seen(ref.id)).toMatchObject({ total: count })
        }
      })

      it('sets the end, and takes it away', async () => {
        const ref = refOf(await buy(h.wish('hourly')))
        const endsAtMs = Math.ceil(h.nowMs() / DAY_MS + 1) * DAY_MS
        await reserving.change(ref, { kind: 'end', endsAtMs }, patiently())
        expect(await seen(ref.id)).toMatchObject({ endsAtMs })
        await reserving.change(ref, { kind: 'end', endsAtMs: null }, patiently())
        expect((await seen(ref.id))?.endsAtMs).toBeUndefined()
      })

      it('splits free places off once for one intent', async () => {
        const source = await buy({ ...h.wish('hourly'), count: 3 })
        const split = {
          kind: 'split',
          count: 1,
          intent: 'res-part',
          deployment: 'test',
          owner: 'ada',
        } as const
        const made = await reserving.change(refOf(source), split, patiently())
        const again = await reserving.change(refOf(source), split, patiently())
        expect(again.id).toBe(made.id)
        expect(made).toMatchObject({ total: 1, intent: 'res-part', deployment: 'test' })
        expect(await seen(made.id)).toMatchObject({ intent: 'res-part', total: 1 })
        expect((await seen(source.id))?.intent).toBe(source.intent)
        expect(made.id).not.toBe(source.id)
        expect(await seen(source.id)).toMatchObject({ total: 2 })
      })

      it('is invalid for a prepaid reservation', async () => {
        const ref = refOf(await buy(h.wish('prepaid')))
        await expect(reserving.change(ref, { kind: 'count', count: 1 }, patiently())).rejects.toMatchObject({
          failure: { class: 'invalid' },
        })
      })
    })

    describe('release', () => {
      it('is free without a commitment, and may be repeated', async () => {
        const ref = refOf(await buy(h.wish('hourly')))
        const terms = await reserving.releaseTerms(ref, patiently())
        expect(terms.chargeMicroUsd).toBe(0)
        await reserving.release(ref, terms, patiently())
        await reserving.release(ref, terms, patiently())
        expect((await seen(ref.id))?.phase ?? 'ended').toBe('ended')
      })

      it('takes absence for success', async () => {
        const bought = await buy(h.wish('hourly'))
        const absent = { ...refOf(bought), id: `${bought.id.slice(0, -4)}ffff` }
        await reserving.release(absent, { chargeMicroUsd: 0 }, patiently())
        expect(await seen(bought.id)).toMatchObject({ phase: 'active' })
      })

      it('charges the rest of a commitment, as its terms say beforehand', async () => {
        const wish = h.committedWish()
        const quote = await quoted(wish)
        expect(quote.committedMs).toBeGreaterThan(0)
        expect(quote.startsAtMs).toBe(wish.earliestStartAtMs)
        const bought = boughtOf(await reserving.reserve(orderOf(quote), patiently()))
        expect(['assessing', 'scheduled']).toContain(bought.phase)
        await h.pass(ASSESSED_MS)
        const terms = await reserving.releaseTerms(refOf(bought), patiently())
        expect(terms.chargeMicroUsd).toBeGreaterThan(0)
        expect(terms.quoteId).toBeDefined()
        await reserving.release(refOf(bought), terms, patiently())
        expect(await seen(bought.id)).toMatchObject({ phase: 'ending' })
      })

      it('is refused within a commitment without terms', async () => {
        const bought = await buy(h.committedWish())
        await h.pass(ASSESSED_MS)
        const release = reserving.release(refOf(bought), { chargeMicroUsd: 0 }, patiently())
        await expect(release).rejects.toBeInstanceOf(BackendError)
        expect((await seen(bought.id))?.phase).toBe('scheduled')
      })

      it('is invalid for a prepaid reservation', async () => {
        const ref = refOf(await buy(h.wish('prepaid')))
        await expect(reserving.releaseTerms(ref, patiently())).rejects.toMatchObject({
          failure: { class: 'invalid' },
        })
        await expect(reserving.release(ref, { chargeMicroUsd: 0 }, patiently())).rejects.toMatchObject({
          failure: { class: 'invalid' },
        })
      })
    })
  })
}

function boughtOf(outcome: ReserveOutcome): OwnedReservation {
  if (outcome.kind !== 'reserved') throw new Error(`${outcome.kind}: ${outcome.failure.message}`)
  return outcome.reservation
}

function watching(): { ctx: LookContext; unseen: string[] } {
  const unseen: string[] = []
  return { ctx: { ...patiently(), unseen: (place) => unseen.push(place) }, unseen }
}
