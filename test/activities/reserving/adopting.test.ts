import { describe, expect, it } from '@jest/globals'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { Desk } from './desk'
import { START_MS } from './place'

describe('a look for capacity that finds a block without tags', () => {
  it('does not adopt what an undecided purchase of another wish has bought, perhaps', async () => {
    const desk = new Desk()
    const before = desk.untagged({ type: 'p4' })
    const order = desk.order({ intent: 'res-b' })
    await desk.purchases.mark(order, { ownedBefore: [before] })
    desk.untagged()
    expect((await desk.look()).kind).toBe('buy')
    expect((await desk.record()).at(-1)!.data).toMatchObject({ undecided: { 'r-2': 'res-b' } })
    await desk.purchases.conclude(order, {
      kind: 'no-effect',
      failure: { class: 'capacity', message: 'gone' },
    })
    expect((await desk.look()).kind).toBe('adopt')
  })

  it('adopts what was there before an undecided purchase of another wish, or is unlike it', async () => {
    for (const changes of [{}, { endsAtMs: START_MS + 4 * DAY_MS }]) {
      const desk = new Desk()
      const id = desk.untagged(changes)
      const ownedBefore = 'endsAtMs' in changes ? [] : [id]
      await desk.purchases.mark(desk.order({ intent: 'res-b' }), { ownedBefore })
      expect(await desk.look()).toMatchObject({ kind: 'adopt', reservation: { id } })
    }
  })

  it('adopts none while the mark of another purchase is damaged, and continues its own search', async () => {
    const desk = new Desk()
    const id = desk.untagged()
    await desk.store.put(layout.purchase('res-b', 1), '{"kind":"sent"}')
    expect((await desk.look()).kind).toBe('buy')
    expect((await desk.record()).at(-1)!.data).toMatchObject({ undecided: { [id]: 'res-b' } })
  })

  it('does not adopt what another wish has bought while its tags do not show', async () => {
    const desk = new Desk()
    expect((await desk.buy(desk.order({ intent: 'res-b' }))).kind).toBe('reserved')
    desk.market.untag(desk.market.purchases[0]!.id)
    await desk.clock.advance(HOUR_MS)
    expect((await desk.look()).kind).toBe('buy')
  })

  it('waits for the tags of what was just bought, before it adopts it or buys another', async () => {
    const desk = new Desk()
    const id = desk.untagged({ createdAtMs: START_MS })
    expect(await desk.look()).toMatchObject({ kind: 'wait', lookInMs: 15.5 * MINUTE_MS })
    await desk.clock.advance(15.5 * MINUTE_MS)
    expect(await desk.look()).toMatchObject({ kind: 'adopt', reservation: { id } })
  })
})
