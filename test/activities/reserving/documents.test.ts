import { describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createReservationDocuments } from '../../../activities/reserving/documents'
import type { ReservationStatus } from '../../../core/reserving'
import { readReservationEntries } from '../../../storage/reservations'
import type { SettleRequest } from '../../../core/treasury'
import { MemoryStore } from '../../backends/scripted/memory-store'

const NOW = Date.UTC(2027, 0, 3)

describe('the end of a reservation', () => {
  it('is on record, and releases what an earlier history may have reserved', async () => {
    const store = new MemoryStore(() => NOW)
    const settled: [string, SettleRequest][] = []
    const treasury = {
      settle: async (month: string, request: SettleRequest) => void settled.push([month, request]),
    }
    const activities = createReservationDocuments({ store, now: () => NOW, treasury })
    const status = { id: 'res-1', state: 'rejected', message: 'Rejected.' } as ReservationStatus
    const task = { reservationId: 'res-1', deployment: 'dep', owner: 'ada', recordSeq: 7 }
    await new MockActivityEnvironment().run(() => activities.endReservation({ ...task, status, sends: 2 }))
    expect(await readReservationEntries(store, 'res-1')).toMatchObject([
      { seq: 7, kind: 'over', data: status },
    ])
    expect(settled.map(([month, { jobId, spentMicroUsd }]) => [month, jobId, spentMicroUsd])).toEqual([
      ['2026-12', 'reservation/res-1/2', 0],
      ['2027-01', 'reservation/res-1/2', 0],
      ['2026-12', 'reservation/res-1/3', 0],
      ['2027-01', 'reservation/res-1/3', 0],
    ])
    // Money that was spent is settled already: only what is still reserved is released.
    expect(settled.every(([, { isCertain }]) => isCertain === undefined)).toBe(true)
  })
})
