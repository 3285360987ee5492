import { describe, expect, it } from '@jest/globals'
import { collectGarbage, type OwnerLookup } from '../../activities/garbage/garbage'
import type { Backend } from '../../backends/backend'
import type { GarbageVerdict } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { ensureDeployment } from '../../storage/deployment'
import { patiently } from '../backends/harness'
import { DrivenClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import { createScriptedReserving } from '../backends/scripted/reserving/reserving'

const START_MS = Date.UTC(2026, 10, 2)
const DEPLOYMENT = 'dep-0123456789'
const MACHINES = { type: 'p5', region: 'east', zone: 'east-a', total: 4, perHourMicro: microUsd(2) }
const tags = { deployment: DEPLOYMENT, intent: 'res-a' }

async function scan(
  market: ReservationMarket,
  { owner, candidates = [], isDryRun = false }: { owner: string; candidates?: string[]; isDryRun?: boolean },
): Promise<GarbageVerdict[]> {
  const store = new MemoryStore(() => market.clock.now())
  await ensureDeployment(store, () => DEPLOYMENT)
  const backend = {
    name: 'scripted',
    list: async () => [],
    reserving: createScriptedReserving(market),
  } as unknown as Backend
  const owners: OwnerLookup = async ({ jobId, isReservation }) =>
    jobId === 'res-a' && isReservation === true ? (owner as 'open') : 'absent'
  const input = { deployment: DEPLOYMENT, backend: 'scripted', candidates, isDryRun }
  return collectGarbage({ backend, store, owners, now: () => market.clock.now() }, input, patiently().signal)
}

const market = (): ReservationMarket => new ReservationMarket({ clock: new DrivenClock(START_MS) })

describe('capacity whose reservation', () => {
  it('is open is kept', async () => {
    const place = market()
    const id = place.hold({ kind: 'hourly', ...MACHINES, tags })
    expect(await scan(place, { owner: 'open', candidates: [id] })).toMatchObject([
      { action: 'kept', kind: 'reservation', id, owner: 'res-a', reason: 'reservation res-a is open' },
    ])
  })

  it.each([
    ['closed', 'reservation res-a is over, and the capacity is still held'],
    ['absent', 'reservation res-a is unknown, and the capacity is still held'],
  ])('is %s is listed with its cost, and given back after the grace period', async (owner, reason) => {
    const place = market()
    const id = place.hold({ kind: 'hourly', ...MACHINES, tags, used: 1 })
    expect(await scan(place, { owner, isDryRun: true })).toMatchObject([
      {
        action: 'would-end',
        reason,
        place: 'east-a',
        costMicroUsdPerDay: 3 * 24 * microUsd(2),
        description: 'hourly capacity: 4 × p5, 3 free',
      },
    ])
    expect(await scan(place, { owner })).toMatchObject([{ action: 'would-end' }])
    expect(place.held()).toHaveLength(1)
    expect(await scan(place, { owner, candidates: [id] })).toMatchObject([{ action: 'ended', reason }])
    expect(place.held()).toEqual([])
  })

  it('is over is kept if it is prepaid', async () => {
    const place = market()
    const window = { startsAtMs: START_MS, endsAtMs: START_MS + DAY_MS }
    const id = place.hold({ kind: 'prepaid', ...MACHINES, ...window, tags })
    expect(await scan(place, { owner: 'closed', candidates: [id] })).toMatchObject([
      {
        action: 'kept',
        costMicroUsdPerDay: 0,
        reason:
          'reservation res-a is over, and the capacity is still held: it is paid for until 2026-11-03T00:00:00Z, so let jobs use it',
      },
    ])
    expect(place.held()).toHaveLength(1)
  })

  it('is over is not given back while that costs', async () => {
    const place = market()
    const id = place.hold({ kind: 'hourly', ...MACHINES, tags, committedUntilMs: START_MS + HOUR_MS })
    expect(await scan(place, { owner: 'closed', candidates: [id] })).toMatchObject([
      { action: 'failed', reason: expect.stringMatching(/still costs \$8\.00, until 2026-11-02T01:00:00Z/) },
    ])
    expect(place.held()).toHaveLength(1)
  })

  it('belongs to another deployment, to none, or is over is not listed', async () => {
    const place = market()
    place.hold({ kind: 'hourly', ...MACHINES, tags: { ...tags, deployment: 'other' } })
    place.hold({ kind: 'hourly', ...MACHINES })
    place.hold({ kind: 'hourly', ...MACHINES, tags: { deployment: DEPLOYMENT } })
    place.hold({ kind: 'hourly', ...MACHINES, tags, cancelledAtMs: START_MS })
    expect(await scan(place, { owner: 'closed' })).toEqual([])
  })

  it('cannot be listed is said to be unseen', async () => {
    const place = market()
    place.hold({ kind: 'hourly', ...MACHINES, tags })
    place.silent.add('east')
    expect(await scan(place, { owner: 'closed' })).toMatchObject([
      { action: 'unseen', kind: 'reservations', reason: 'east does not answer' },
    ])
  })
})
