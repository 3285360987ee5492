import { describe, expect, it } from '@jest/globals'
import type { ReservingBackend } from '../../../backends/backend'
import { LOOK_PAUSES_MS, PURCHASE_LIMIT_MS, STALE_MS } from '../../../core/reservation/purchase-limits'
import { CLOCK_SLACK_MS, DAY_MS, MINUTE_MS } from '../../../core/time/time'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import { claimReservation } from '../../../storage/reservations'
import { BuyingPlace, INTENT, START_MS } from './place'

const ANSWER_LOST = { kind: 'loses-answer', hasEffect: true } as const
const NEVER_MADE = { kind: 'loses-answer', hasEffect: false } as const

describe('a purchase', () => {
  it('is sent once, and its mark and its effect are on record', async () => {
    const place = new BuyingPlace()
    const before = place.untagged({ type: 'p4' })
    const order = place.order()
    expect(await place.buy(order)).toMatchObject({ kind: 'reserved', reservation: { intent: INTENT } })
    const [made] = place.market.purchases
    expect(await place.purchases.read(order)).toEqual({
      kind: 'sent',
      order,
      atMs: START_MS,
      ownedBefore: [before],
    })
    expect(await place.purchases.effect(order)).toEqual({
      kind: 'bought',
      reservationId: made!.id,
      atMs: START_MS,
    })
  })

  it('is sent by one of two callers at once, and found by the other', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    const outcomes = await Promise.all([place.buy(order), place.buy(order)])
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['reserved', 'unconfirmed'])
    expect(place.market.purchases).toHaveLength(1)
    expect(await place.find(order)).toMatchObject({ kind: 'found', reservation: { intent: INTENT } })
  })

  it('is not sent if it shows already', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    await place.buy(order)
    expect(await place.buy({ ...order, send: 2 })).toMatchObject({ kind: 'reserved' })
    expect(place.sent).toBe(1)
    expect(await place.purchases.read({ ...order, send: 2 })).toBeUndefined()
  })

  it('is not stopped by one for the same wish of another deployment, nor by one that is over', async () => {
    const place = new BuyingPlace()
    await place.buy(place.order({ deployment: 'other', intent: 'res-b' }))
    place.untagged({ tags: { intent: INTENT, deployment: 'other' } })
    place.untagged({ tags: { intent: INTENT, deployment: 'dep' }, cancelledAtMs: START_MS })
    expect(await place.buy()).toMatchObject({ kind: 'reserved' })
    expect(place.sent).toBe(2)
  })

  it('is not stopped by tags that somebody has put on what it never bought', async () => {
    const place = new BuyingPlace()
    const tags = { intent: INTENT, deployment: 'dep' }
    place.untagged({ tags, kind: 'hourly' })
    const shared = place.untagged({ tags })
    const reserving: ReservingBackend = {
      ...place.reserving,
      reservations: async (ctx) =>
        (await place.reserving.reservations(ctx)).map((one) => ({ ...one, isShared: one.id === shared })),
    }
    expect(await place.buy(place.order(), { reserving })).toMatchObject({ kind: 'reserved' })
    expect(place.sent).toBe(1)
  })

  it.each<[string, (place: BuyingPlace) => Partial<OwnedReservation>, RegExp]>([
    ['that was there before', (place) => ({ id: place.untagged() }), /existed before the purchase/],
    ['of another type', () => ({ id: 'r-9', type: 'p4' }), /of type p4/],
    ['in another zone', () => ({ id: 'r-9', zone: 'east-z' }), /is in east-z/],
    ['of another size', () => ({ id: 'r-9', total: 3 }), /has 3 machines/],
    ['bought for somebody else', () => ({ id: 'r-9', intent: 'res-b' }), /was bought for res-b/],
  ])('answered with a reservation %s is looked for', async (_, oddOf, message) => {
    const place = new BuyingPlace()
    const odd = oddOf(place)
    const reserving: ReservingBackend = {
      ...place.reserving,
      reserve: async (order, ctx) => {
        const outcome = await place.reserving.reserve(order, ctx)
        if (outcome.kind !== 'reserved') throw new Error(outcome.kind)
        return { ...outcome, reservation: { ...outcome.reservation, ...odd } }
      },
    }
    expect(await place.buy(place.order(), { reserving })).toMatchObject({
      kind: 'unconfirmed',
      failure: { message: expect.stringMatching(message) },
    })
    const { id } = place.market.purchases[0]!
    expect(await place.find()).toMatchObject({ kind: 'found', reservation: { id } })
  })

  it.each([
    ['before its mark', '1.json', 'before', 0, { kind: 'no-effect', failure: { class: 'transient' } }],
    ['after its mark', '1.json', 'after', 0, { kind: 'absent', candidates: [] }],
    ['before its effect is on record', '1-effect.json', 'before', 1, { kind: 'found' }],
    ['after its effect is on record', '1-effect.json', 'after', 1, { kind: 'found' }],
  ] as const)('whose worker dies %s is never sent again', async (_, document, moment, bought, found) => {
    const place = new BuyingPlace()
    const order = place.order()
    place.killAt(document, moment)
    await place.buy(order).catch(() => undefined)
    expect(await place.find(order)).toMatchObject(found)
    await place.buy(order)
    expect(place.market.purchases).toHaveLength(bought)
    expect(place.sent).toBe(bought)
  })

  it('that is sealed before it is sent is never sent', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    expect(await place.find(order)).toEqual({
      kind: 'no-effect',
      failure: { class: 'transient', message: 'The purchase was not sent before its worker stopped.' },
    })
    expect((await place.buy(order)).kind).toBe('unconfirmed')
    expect(place.sent).toBe(0)
  })

  it('that was refused stays refused for every caller', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    const failure = { class: 'quota', message: 'no more of these' } as const
    place.market.faults.add('reserve', { kind: 'refuses', failure })
    const refused = { kind: 'refused', failure }
    expect(await place.buy(order)).toMatchObject(refused)
    expect(await place.buy(order)).toMatchObject(refused)
    expect(await place.find(order)).toMatchObject({ kind: 'no-effect', failure })
    expect(place.sent).toBe(1)
  })

  it('whose effect is on record is answered from what is owned', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    const untagged = place.untagged()
    await place.purchases.mark(order, { ownedBefore: [] })
    await place.purchases.conclude(order, { kind: 'bought', reservationId: untagged })
    expect(await place.buy(order)).toMatchObject({ kind: 'reserved', reservation: { id: untagged } })
    expect(await place.find(order)).toMatchObject({ kind: 'found', reservation: { id: untagged } })
    expect(place.sent).toBe(0)
  })

  it.each(['throttled', 'transient', 'capacity', 'quota', 'expired', 'auth', 'invalid'] as const)(
    'certainly had no effect after an error of class %s',
    async (failureClass) => {
      const place = new BuyingPlace()
      const failure = { class: failureClass, message: 'no' }
      place.market.faults.add('reserve', { kind: 'throws', failure })
      expect(await place.buy()).toMatchObject({ kind: 'refused', failure })
      expect(await place.find()).toMatchObject({ kind: 'no-effect' })
    },
  )

  it.each(['unclassified', 'unreachable'] as const)(
    'may have had an effect after an error of class %s',
    async (failureClass) => {
      const place = new BuyingPlace()
      place.market.faults.add('reserve', { kind: 'throws', failure: { class: failureClass, message: 'hm' } })
      expect((await place.buy()).kind).toBe('unconfirmed')
      expect((await place.find()).kind).toBe('absent')
    },
  )

  it('is not sent once its time is over, counted from its mark', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    const { store, clock } = place
    const put = store.putIfAbsent.bind(store)
    store.putIfAbsent = async (key, body) => {
      const isFirst = await put(key, body)
      await clock.advance(PURCHASE_LIMIT_MS)
      return isFirst
    }
    expect((await place.buy(order)).kind).toBe('refused')
    expect(place.sent).toBe(0)
  })

  it('knows from the clock that it is late, whatever its timers do', async () => {
    const place = new BuyingPlace()
    const late: (boolean | undefined)[] = []
    const reserving: ReservingBackend = {
      ...place.reserving,
      reserve: async (order, ctx) => {
        late.push(ctx.isLate?.())
        // As in a process that was suspended: the time has passed, and the timers have not fired.
        await place.clock.advance(PURCHASE_LIMIT_MS)
        late.push(ctx.isLate?.())
        return place.reserving.reserve(order, ctx)
      },
    }
    await place.buy(place.order(), { reserving })
    expect(late).toEqual([false, true])
  })

  it('without an answer is left at its limit', async () => {
    const place = new BuyingPlace()
    place.market.faults.add('reserve', { kind: 'hangs', hasEffect: true })
    expect((await place.buy(place.order(), { purchaseLimitMs: 1 })).kind).toBe('unconfirmed')
    expect(await place.find()).toMatchObject({ kind: 'found' })
  })

  it('is answered although its effect cannot be put on record', async () => {
    const place = new BuyingPlace()
    place.store.refuses = (key) => key.endsWith('-effect.json')
    expect((await place.buy()).kind).toBe('reserved')
    expect(place.store.refused).toBe(1)
  })
})

describe('a purchase with a lost answer', () => {
  it('is found by its tag once a list shows it', async () => {
    const place = new BuyingPlace({ listsLagMs: 10 * MINUTE_MS })
    const order = place.order()
    place.market.faults.add('reserve', ANSWER_LOST)
    expect((await place.buy(order)).kind).toBe('unconfirmed')
    await place.clock.advance(10 * MINUTE_MS - 1)
    expect(await place.find(order)).toEqual({
      kind: 'absent',
      sentAtMs: START_MS,
      candidates: [],
      saw: `2026-11-02T00:09:59Z: of 0 reservations in east, none has the tag of res-a; 0 appeared since ${order.quote.id} was ordered, 0 of them match the order and have no tags.`,
    })
    await place.clock.advance(1)
    const { id } = place.market.purchases[0]!
    expect(await place.find(order)).toMatchObject({ kind: 'found', reservation: { id } })
    expect(await place.purchases.effect(order)).toMatchObject({ kind: 'bought', reservationId: id })
  })

  it('is found when its effect is late', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    place.market.faults.add('reserve', { kind: 'late', effectAfterMs: MINUTE_MS })
    await place.buy(order)
    expect((await place.find(order)).kind).toBe('absent')
    await place.clock.advance(MINUTE_MS)
    expect((await place.find(order)).kind).toBe('found')
    expect(place.market.purchases).toHaveLength(1)
  })

  it('is found although its payment has failed meanwhile', async () => {
    const place = new BuyingPlace({ payment: { kind: 'failed', afterMs: MINUTE_MS } })
    const order = place.order()
    place.market.faults.add('reserve', ANSWER_LOST)
    await place.buy(order)
    await place.clock.advance(MINUTE_MS)
    expect(await place.find(order)).toMatchObject({ kind: 'found', reservation: { phase: 'failed' } })
  })

  it('is not confused with an older one of the same wish whose payment has failed', async () => {
    const place = new BuyingPlace({ payment: { kind: 'failed', afterMs: MINUTE_MS } })
    await place.buy()
    await place.clock.advance(MINUTE_MS)
    const second = place.order({ send: 2 })
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy(second)
    expect(await place.find(second)).toMatchObject({ kind: 'absent', candidates: [] })
  })

  it('is looked for in its own Region only', async () => {
    const place = new BuyingPlace()
    place.market.hold({ kind: 'prepaid', type: 'p5', region: 'west', zone: 'west-a', total: 4 })
    place.market.silent.add('west')
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy()
    expect((await place.find()).kind).toBe('absent')
  })

  it('may be one that appeared without tags, which is only shown', async () => {
    const place = new BuyingPlace()
    const order = place.order()
    place.untagged()
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy(order)
    const like = place.untagged()
    const others: Parameters<BuyingPlace['untagged']>[0][] = [
      { type: 'p4' },
      { zone: 'east-b' },
      { total: 3 },
      { endsAtMs: START_MS + DAY_MS },
      { tags: { intent: 'res-b' } },
      { tags: { deployment: 'dep' } },
      { cancelledAtMs: START_MS },
      { kind: 'hourly' },
    ]
    for (const other of others) place.untagged(other)
    const found = await place.find(order)
    expect(found).toMatchObject({ kind: 'absent', candidates: [{ id: like }] })
    expect(found).toMatchObject({
      saw: expect.stringMatching(/of 10 reservations .*; 9 appeared since .*, 1 of them match/) as unknown,
    })
    expect(await place.purchases.effect(order)).toBeUndefined()
  })
})

describe('an extension', () => {
  async function extending(): Promise<{ place: BuyingPlace; order: ReturnType<BuyingPlace['order']> }> {
    const place = new BuyingPlace()
    await place.buy()
    const { id } = place.market.purchases[0]!
    place.market.sell({ kind: 'extension', reservation: id, durationMs: DAY_MS, upfrontMicro: 500_000 })
    place.market.payment = { kind: 'confirmed', afterMs: MINUTE_MS }
    return { place, order: place.order({ send: 2 }, { extends: { id, region: 'east' } }) }
  }

  it('is not what is held already', async () => {
    const { place, order } = await extending()
    expect(order.quote.extends).toBe(place.market.purchases[0]!.id)
    expect((await place.buy(order)).kind).toBe('reserved')
    expect(place.market.purchases.map(({ kind }) => kind)).toEqual(['reservation', 'extension'])
  })

  it.each([
    ['that the reservation reports', 0],
    ['by its later end', MINUTE_MS],
  ])('with a lost answer is found %s', async (_, afterMs) => {
    const { place, order } = await extending()
    place.market.faults.add('reserve', ANSWER_LOST)
    expect((await place.buy(order)).kind).toBe('unconfirmed')
    await place.clock.advance(afterMs)
    expect(await place.find(order)).toMatchObject({
      kind: 'found',
      reservation: { id: order.quote.extends },
    })
    expect((await place.buy(order)).kind).toBe('reserved')
    expect(place.market.purchases).toHaveLength(2)
  })

  it('that was never made does not show', async () => {
    const { place, order } = await extending()
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy(order)
    expect((await place.find(order)).kind).toBe('absent')
  })

  it('whose payment failed after a lost answer is settled without a person', async () => {
    const { place, order } = await extending()
    place.market.payment = { kind: 'failed', afterMs: 0 }
    place.market.faults.add('reserve', ANSWER_LOST)
    await place.buy(order)
    const failure = { class: 'quota', message: expect.stringMatching(/its payment failed/) as unknown }
    expect(await place.find(order)).toMatchObject({ kind: 'no-effect', failure })
    expect(await place.purchases.effect(order)).toMatchObject({ kind: 'no-effect' })
  })

  it('is what a decision about it must name', async () => {
    const { place, order } = await extending()
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy(order)
    const other = place.untagged()
    await expect(place.decide(other, order)).rejects.toThrow(/was an extension of r-\d, not r-\d/)
    expect(await place.decide(order.quote.extends!, order)).toMatchObject({ kind: 'found' })
  })

  it('does not count as one before it whose payment failed', async () => {
    const { place, order } = await extending()
    place.market.lots.at(-1)!.stock = 2
    place.market.payment = { kind: 'failed', afterMs: 0 }
    await place.buy(order)
    place.market.faults.add('reserve', NEVER_MADE)
    const second = { ...order, send: 3 }
    await place.clock.advance(MINUTE_MS)
    expect((await place.buy(second)).kind).toBe('unconfirmed')
    expect((await place.find(second)).kind).toBe('absent')
  })
})

describe('a decision about a purchase', () => {
  async function undecided(): Promise<BuyingPlace> {
    const place = new BuyingPlace()
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy()
    return place
  }

  it.each([
    ['by another deployment', { tags: { intent: INTENT, deployment: 'other' } }, /another deployment/],
    ['of another kind', { kind: 'hourly' }, /is hourly capacity of type p5, and prepaid capacity/],
    ['of another type', { type: 'p4' }, /of type p4, and prepaid capacity of type p5 was ordered/],
    ['in another zone', { zone: 'east-z' }, /is in east-z, and capacity in east-a was ordered/],
  ] as const)('names nothing that was bought %s', async (_, changes, message) => {
    const place = await undecided()
    await expect(place.decide(place.untagged(changes))).rejects.toThrow(message)
    expect(await place.purchases.effect(place.order())).toBeUndefined()
  })

  it('names nothing that was there before', async () => {
    const place = new BuyingPlace()
    const before = place.untagged()
    place.market.faults.add('reserve', NEVER_MADE)
    await place.buy()
    await expect(place.decide(before)).rejects.toThrow(`${before} existed before the purchase was sent.`)
  })

  it('that it was not bought is on record with its author', async () => {
    const place = await undecided()
    const failure = { class: 'transient', message: 'ada has determined that it was not bought.' }
    expect(await place.decide(null)).toEqual({ kind: 'no-effect', failure })
    expect(await place.purchases.effect(place.order())).toMatchObject({ kind: 'no-effect', by: 'ada' })
    expect(await place.find()).toEqual({ kind: 'no-effect', failure })
  })

  it('that it was bought keeps other wishes from what it bought', async () => {
    const place = await undecided()
    const ownedId = place.untagged()
    expect(await place.decide(ownedId)).toMatchObject({ kind: 'found', reservation: { id: ownedId } })
    expect(await place.purchases.effect(place.order())).toMatchObject({ kind: 'bought', by: 'ada' })
    const owner = await claimReservation(place.store, { backend: 'scripted', ownedId, intent: 'res-b' })
    expect(owner).toBe(INTENT)
  })

  it('is contradicted by a tag', async () => {
    const place = new BuyingPlace()
    place.market.faults.add('reserve', ANSWER_LOST)
    await place.buy()
    const { id } = place.market.purchases[0]!
    await expect(place.decide(null)).rejects.toThrow(`It was bought: it is ${id}, which carries its tag.`)
    expect(await place.decide('r-9')).toMatchObject({ kind: 'found', reservation: { id } })
  })

  it('is contradicted by a refusal that is on record', async () => {
    const place = new BuyingPlace()
    place.market.faults.add('reserve', { kind: 'refuses', failure: { class: 'quota', message: 'no' } })
    await place.buy()
    expect(await place.decide(place.untagged())).toMatchObject({ kind: 'no-effect' })
  })

  it.each<[string, (place: BuyingPlace) => Promise<string>, string]>([
    ['does not exist', async () => 'r-9', 'The account has no reservation r-9 in east.'],
    [
      'was bought for another wish',
      async (place) => place.untagged({ tags: { intent: 'res-b' } }),
      'r-1 was bought for res-b.',
    ],
    [
      'serves another wish',
      async (place) => {
        const ownedId = place.untagged()
        await claimReservation(place.store, { backend: 'scripted', ownedId, intent: 'res-b' })
        return ownedId
      },
      'r-1 serves res-b already.',
    ],
  ])('is refused if what it names %s', async (_, named, message) => {
    const place = await undecided()
    const ownedId = await named(place)
    await expect(place.decide(ownedId)).rejects.toThrow(message)
    expect(await place.purchases.effect(place.order())).toBeUndefined()
  })
})

describe('the looks for a purchase without an answer', () => {
  it('last longer than a send, and than lists may be stale, by the clocks of two machines', () => {
    const lookedForMs = LOOK_PAUSES_MS.reduce((sum, one) => sum + one, 0)
    expect(lookedForMs).toBeGreaterThanOrEqual(PURCHASE_LIMIT_MS + STALE_MS + CLOCK_SLACK_MS)
  })
})
