import { describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createReservationDocuments } from '../../../activities/reserving/documents'
import type { ReservationStatus } from '../../../core/reservation/reserving'
import { Purchases } from '../../../storage/purchases'
import { putReservationEntry, readReservationEntries } from '../../../storage/reservations'
import type { Treasury } from '../../../activities/money/treasury'
import { quoteOf } from '../../planner/reserving/facts'
import { MemoryStore } from '../../backends/scripted/memory-store'

const SPENT = { spentMicroUsd: 5_000_000, idleMicroUsd: 2_000_000 }
const NOW = Date.UTC(2027, 0, 3)

describe('the end of a reservation', () => {
  it('is on record, and releases what an earlier history may have reserved', async () => {
    const store = new MemoryStore(() => NOW)
    const settled: [string, number][] = []
    const treasury: Pick<Treasury, 'settle' | 'settlePurchase'> = {
      settle: async () => undefined,
      settlePurchase: async (month, { send }) => void settled.push([month, send]),
    }
    const activities = createReservationDocuments({ store, now: () => NOW, treasury })
    const status = { id: 'res-1', state: 'rejected', message: 'Rejected.', ...SPENT } as ReservationStatus
    const task = { reservationId: 'res-1', deployment: 'dep', owner: 'ada', recordSeq: 7 }
    await new MockActivityEnvironment().run(() => activities.endReservation({ ...task, status, sends: 2 }))
    expect(await readReservationEntries(store, 'res-1')).toMatchObject([
      { seq: 7, kind: 'over', data: status },
    ])
    expect(settled).toEqual([
      ['2026-12', 2],
      ['2027-01', 2],
      ['2026-12', 3],
      ['2027-01', 3],
    ])
  })

  it.each([
    ['cr-1 has ended.', 'It is over (ended). Spent: $5.00, of it for unused time $2.00.'],
    ['cr-1 is active.', 'cr-1 has ended. Spent: $5.00, of it for unused time $2.00.'],
  ])('says after "%s" what is not on record yet', async (before, words) => {
    const store = new MemoryStore(() => NOW)
    await putReservationEntry(store, 'res-1', { seq: 1, atMs: NOW, kind: 'held', summary: before, data: {} })
    const status = { id: 'res-1', state: 'ended', message: 'cr-1 has ended.', ...SPENT } as ReservationStatus
    const task = { reservationId: 'res-1', deployment: 'dep', owner: 'ada', recordSeq: 7 }
    const activities = createReservationDocuments({ store, now: () => NOW })
    await new MockActivityEnvironment().run(() => activities.endReservation({ ...task, status, sends: 1 }))
    expect((await readReservationEntries(store, 'res-1')).at(-1)).toMatchObject({
      kind: 'over',
      summary: words,
    })
  })

  it('releases what was reserved in the month that pays, however long ago', async () => {
    const store = new MemoryStore(() => NOW)
    const purchases = new Purchases(store, () => NOW)
    const order = { intent: 'res-1', send: 1, deployment: 'dep', owner: 'ada', backend: 'ec2' } as const
    await purchases.mark({ ...order, quote: quoteOf(), month: '2026-10' }, { ownedBefore: [] })
    const months: string[] = []
    const treasury = {
      settle: async () => undefined,
      settlePurchase: async (m: string) => void months.push(m),
    }
    const activities = createReservationDocuments({ store, now: () => NOW, treasury })
    await new MockActivityEnvironment().run(() =>
      activities.releaseBudget({ reservationId: 'res-1', sends: [1] }),
    )
    expect(months).toEqual(['2026-10', '2026-12', '2027-01'])
  })
})
