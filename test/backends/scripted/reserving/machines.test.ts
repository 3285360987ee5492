import { beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../../backends/backend'
import type { MachineHandle } from '../../../../core/handle'
import type { Offer } from '../../../../core/offer'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { issueOrder, makeOrder } from '../../orders'
import { DrivenClock } from '../clock'
import { MemoryStore } from '../memory-store'
import { createScriptedBackend } from '../scripted-backend'
import { ScriptedWorld } from '../world'
import { ReservationMarket } from './market'

const TYPE = 'h100x8'

let clock: DrivenClock
let market: ReservationMarket
let store: MemoryStore
let backend: Backend

beforeEach(() => {
  clock = new DrivenClock(0)
  market = new ReservationMarket({ clock })
  store = new MemoryStore(() => clock.now())
  const wares = [{ capacityType: 'on-demand', type: TYPE, priceMicroUsdPerHour: 98_000_000 }] as const
  // No runner, which would leave in time: only the provider ends these machines.
  const behave = () => ({ neverStarts: true })
  backend = createScriptedBackend(new ScriptedWorld({ clock, store, wares: [...wares], market, behave }))
  market.sell({
    kind: 'prepaid',
    type: TYPE,
    region: 'east',
    zone: 'east-a',
    count: 1,
    stock: 2,
    startsAtMs: HOUR_MS,
    durationMs: DAY_MS,
    upfrontMicro: 1,
  })
})

const bought = async (): Promise<string> => {
  const wish = { backend: 'scripted', kind: 'prepaid', types: [TYPE], count: 1, durationMs: HOUR_MS } as const
  const [quote] = await backend.reserving!.reservable(wish, patiently())
  const order = { intent: 'res-1', send: 1, deployment: 'test', owner: 'ann', backend: 'scripted' }
  await backend.reserving!.reserve({ ...order, quote: quote! }, patiently())
  return market.purchases.at(-1)!.id
}
const reserved = async (): Promise<Offer> =>
  (await backend.offers({}, patiently())).find(({ capacityType }) => capacityType === 'reserved')!
const launched = async (): Promise<MachineHandle> => {
  const order = makeOrder({ store, offers: [await reserved()] })
  await issueOrder(store, order, clock.now())
  const outcome = await backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  return outcome.handle
}
const stateOf = async (handle: MachineHandle): Promise<string | undefined> =>
  (await backend.observe([handle], patiently()))[0]?.state

describe('a reservation that was bought from a scripted market', () => {
  it('is an offer, available from its start, whose machine takes a place', async () => {
    expect(backend.capabilities.capacityTypes).toContain('reserved')
    const id = await bought()
    await clock.advance(10 * MINUTE_MS)
    const usableUntilMs = HOUR_MS + DAY_MS - 30 * MINUTE_MS
    expect(await reserved()).toMatchObject({
      reservationId: id,
      availability: 'unavailable',
      place: 'east-a',
      usableUntilMs,
      priceMicroUsdPerHour: 0,
      reservation: { free: 0, total: 1, startsAtMs: HOUR_MS },
    })
    await clock.advance(HOUR_MS)
    expect(await reserved()).toMatchObject({ availability: 'available', reservation: { free: 1 } })
    const handle = await launched()
    expect(await reserved()).toMatchObject({ availability: 'unavailable', reservation: { free: 0 } })
    await backend.terminate(handle, patiently())
    expect(await reserved()).toMatchObject({ availability: 'available', reservation: { free: 1 } })
  })

  it('ends its machine when it stops being usable, after an extension too', async () => {
    const id = await bought()
    await clock.advance(2 * HOUR_MS)
    market.sell({ kind: 'extension', reservation: id, durationMs: DAY_MS, upfrontMicro: 1 })
    const wish = {
      backend: 'scripted',
      kind: 'prepaid',
      types: [TYPE],
      count: 1,
      durationMs: DAY_MS,
    } as const
    const [longer] = await backend.reserving!.reservable(
      { ...wish, extends: { id, region: 'east' } },
      patiently(),
    )
    const handle = await launched()
    const order = { intent: 'res-1', send: 2, deployment: 'test', owner: 'ann', backend: 'scripted' }
    await backend.reserving!.reserve({ ...order, quote: longer! }, patiently())
    await clock.advance(DAY_MS + HOUR_MS)
    expect(await stateOf(handle)).toBe('running')
    await clock.advance(DAY_MS)
    expect(await stateOf(handle)).toBe('gone')
  })

  it.each([
    ['shortened', (id: string) => market.shorten(id, 3 * HOUR_MS)],
    ['cancelled', (id: string) => market.cancel(id)],
  ])('ends its machine when it is %s', async (_what, happens) => {
    const id = await bought()
    await clock.advance(2 * HOUR_MS)
    const handle = await launched()
    happens(id)
    await clock.advance(HOUR_MS)
    expect(await stateOf(handle)).toBe('gone')
  })
})
