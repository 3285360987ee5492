import { describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createReservationDocuments } from '../../../activities/reserving/documents'
import type { ReservationStatus } from '../../../core/reserving'
import { readReservationEntries } from '../../../storage/reservations'
import type { Treasury } from '../../../activities/treasury'
import { MemoryStore } from '../../backends/scripted/memory-store'

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
    const status = { id: 'res-1', state: 'rejected', message: 'Rejected.' } as ReservationStatus
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
})
