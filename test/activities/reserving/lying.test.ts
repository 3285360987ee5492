/** A provider that answers late, not at all, or less than it knows. */
import { describe, expect, it } from '@jest/globals'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { Desk } from './desk'
import { INTENT, START_MS } from './place'

const SILENT = { kind: 'throws', failure: { class: 'transient', message: 'Service Unavailable' } } as const
const ANSWER_LOST = { kind: 'loses-answer', hasEffect: true } as const

describe('a provider that does not answer for an hour', () => {
  it('leaves a purchase open until it answers, and then shows it', async () => {
    const desk = new Desk()
    const order = desk.order()
    desk.market.faults.add('reserve', ANSWER_LOST)
    expect((await desk.buy(order)).kind).toBe('unconfirmed')
    desk.market.faults.add('reservations', SILENT, { times: 12 })
    for (let looks = 0; looks < 12; looks++) {
      await expect(desk.find(order)).rejects.toThrow('Service Unavailable')
      await desk.clock.advance(5 * MINUTE_MS)
    }
    expect(await desk.purchases.effect(order)).toBeUndefined()
    expect(await desk.find(order)).toMatchObject({ kind: 'found', reservation: { intent: INTENT } })
    expect([desk.sent, desk.market.purchases.length]).toEqual([1, 1])
  })

  it('before a purchase leaves nothing sent, and no mark', async () => {
    const desk = new Desk()
    const order = desk.order()
    desk.market.faults.add('reservations', SILENT)
    await expect(desk.buy(order)).rejects.toThrow('Service Unavailable')
    expect(await desk.purchases.read(order)).toBeUndefined()
    expect(desk.sent).toBe(0)
  })

  it('takes no decision of a person that it cannot check', async () => {
    const desk = new Desk()
    const order = desk.order()
    desk.market.faults.add('reserve', ANSWER_LOST)
    await desk.buy(order)
    desk.market.faults.add('reservations', SILENT)
    await expect(desk.decide(null, order)).rejects.toThrow('Service Unavailable')
    expect(await desk.purchases.effect(order)).toBeUndefined()
  })
})

describe('a provider that shows a purchase without its tags', () => {
  async function untagged(): Promise<{ desk: Desk; id: string }> {
    const desk = new Desk()
    desk.market.faults.add('reserve', ANSWER_LOST)
    await desk.buy(desk.order({ intent: 'res-b' }))
    const { id } = desk.market.purchases[0]!
    desk.market.untag(id)
    await desk.clock.advance(HOUR_MS)
    return { desk, id }
  }

  it('leaves it to a person, names it, and lets no other wish have it', async () => {
    const { desk, id } = await untagged()
    const order = desk.order({ intent: 'res-b' })
    expect(await desk.find(order)).toMatchObject({ kind: 'absent', candidates: [{ id }] })
    expect((await desk.look()).kind).toBe('buy')
    expect(await desk.decide(id, order)).toMatchObject({ kind: 'found', reservation: { id } })
    expect((await desk.look()).kind).toBe('buy')
    expect(await desk.find(order)).toMatchObject({ kind: 'found', reservation: { id } })
    expect(desk.market.purchases).toHaveLength(1)
  })

  it('gives it to the next wish once a person says that it was not bought', async () => {
    const { desk, id } = await untagged()
    expect((await desk.decide(null, desk.order({ intent: 'res-b' }))).kind).toBe('no-effect')
    expect(await desk.look()).toMatchObject({ kind: 'adopt', reservation: { id } })
  })
})

describe('a provider whose other Region shows the tags of a purchase', () => {
  const tags = { intent: INTENT, deployment: 'dep' }
  const away = { region: 'west', zone: 'west-a', tags } as const

  it('is believed before anything is bought', async () => {
    const desk = new Desk()
    desk.market.sell({ kind: 'hourly', type: 'p5', region: 'west', zone: 'west-a', perHourMicro: 1 })
    const id = desk.untagged(away)
    expect(await desk.look()).toMatchObject({ kind: 'adopt', reservation: { id } })
  })

  it('does not answer for a purchase in this one', async () => {
    const desk = new Desk()
    const order = desk.order()
    desk.market.faults.add('reserve', { kind: 'loses-answer', hasEffect: false })
    await desk.buy(order)
    desk.untagged(away)
    expect(await desk.find(order)).toMatchObject({ kind: 'absent', candidates: [] })
  })
})

describe('a worker whose clock is ten minutes off', () => {
  it.each([-10 * MINUTE_MS, 10 * MINUTE_MS])('buys once, and finds what it bought: %d', async (skewMs) => {
    const desk = new Desk()
    const order = desk.order()
    const now = (): number => desk.clock.now() + skewMs
    desk.market.faults.add('reserve', ANSWER_LOST)
    expect((await desk.buy(order, { now })).kind).toBe('unconfirmed')
    expect(await desk.purchases.read(order)).toMatchObject({ kind: 'sent', atMs: START_MS + skewMs })
    expect(await desk.find(order)).toMatchObject({ kind: 'found' })
    expect((await desk.buy({ ...order, send: 2 }, { now })).kind).toBe('reserved')
    expect(desk.market.purchases).toHaveLength(1)
  })
})
