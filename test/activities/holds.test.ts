import { beforeEach, describe, expect, it } from '@jest/globals'
import { namedReservation, withHolds } from '../../activities/plan/holds'
import { without } from '../../core/defined'
import { microUsd } from '../../core/money/money'
import type { Offer, ReservedCapacity } from '../../core/offer'
import type { BackendAnswer } from '../../core/job/plan'
import type { AwaitedJob, ReservationHolder } from '../../core/reservation/hold'
import type { RecordEntryOf } from '../../core/job/record'
import { HOUR_MS, SECOND_MS } from '../../core/time/time'
import { wishNamed } from '../../core/job/waiting'
import { layout } from '../../storage/layout'
import { RESOLVED_SEQ, putRecord } from '../../storage/record'
import { claimReservation, putHolder, putReservationEntry } from '../../storage/reservations'
import { putRunEntry } from '../../storage/schedules'
import { putWaiter, takeTurn, waiterKey } from '../../storage/waiting-line'
import { MemoryStore } from '../backends/scripted/memory-store'
import { partialEntry } from '../support/record'

const NOW_MS = Date.UTC(2027, 0, 4)
let nowMs: number
let store: MemoryStore

beforeEach(() => {
  nowMs = NOW_MS
  store = new MemoryStore(() => nowMs)
})

const answers = (reservation: Partial<ReservedCapacity> = {}): BackendAnswer[] => {
  const offer = {
    backend: 'ec2',
    capacityType: 'reserved',
    type: 'p5',
    place: 'a',
    reservationId: 'cr-1',
    reservation: { free: 1, total: 1, idleMicroUsdPerHour: microUsd(2), ...reservation },
  } as Offer
  const other: Offer = { ...without(offer, ['reservation', 'reservationId']), capacityType: 'spot' }
  return [{ backend: 'ec2', capabilities: {} as BackendAnswer['capabilities'], offers: [offer, other] }]
}

const held = async (reservation?: Partial<ReservedCapacity>): Promise<ReservedCapacity> => {
  const [{ offers }] = (await withHolds(store, answers(reservation), { jobId: 'job-self', nowMs })) as [
    BackendAnswer,
  ]
  expect(offers[1]!.reservation).toBeUndefined()
  return offers[0]!.reservation!
}

const ALICE: ReservationHolder = { owner: 'alice', share: 'none' }

describe('the holder of a place', () => {
  it('is the wish that it was bought for, with its owner', async () => {
    await putHolder(store, 'res-1', ALICE)
    expect((await held({ intent: 'res-1' })).hold).toEqual({ reservation: 'res-1', ...ALICE })
  })

  it('is the wish that has taken it over', async () => {
    await putHolder(store, 'res-2', ALICE)
    await claimReservation(store, { backend: 'ec2', ownedId: 'cr-1', intent: 'res-2' })
    expect((await held()).hold).toEqual({ reservation: 'res-2', ...ALICE })
    expect((await held({ intent: 'res-1' })).hold).toMatchObject({ reservation: 'res-2' })
  })

  it('is missing where no wish holds it, and has no owner where that is not on record', async () => {
    expect((await held()).hold).toBeUndefined()
    expect((await held({ intent: 'res-1' })).hold).toEqual({ reservation: 'res-1' })
  })

  it('is unknown where a document about it is damaged, which keeps its places and hinders no other job', async () => {
    await putHolder(store, 'res-1', ALICE)
    await store.put(layout.reservationHolder('res-1'), '{"owner"')
    expect((await held({ intent: 'res-1' })).hold).toEqual({ reservation: 'res-1' })
    await store.put(layout.reservationClaim('ec2', 'cr-1'), '[42]')
    expect((await held()).hold).toEqual({ reservation: 'cr-1' })
  })

  it('stays the first that was recorded', async () => {
    await putHolder(store, 'res-1', ALICE)
    await putHolder(store, 'res-1', { owner: 'bob', share: 'all' })
    expect((await held({ intent: 'res-1' })).hold).toMatchObject(ALICE)
  })
})

describe('the job that a place is kept for', () => {
  const AWAITED: AwaitedJob = {
    jobId: 'ranker-train',
    fromMs: NOW_MS + HOUR_MS,
    untilMs: NOW_MS + 2 * HOUR_MS,
    schedule: 'ranker',
    run: '2027-01-04',
  }
  const begun = (seq: number, kind: 'submitted' | 'resolved'): RecordEntryOf<typeof kind> =>
    partialEntry({ seq, kind, atMs: NOW_MS, summary: '', data: {} })
  const awaited = async (): Promise<AwaitedJob | undefined> => (await held({ intent: 'res-1' })).hold?.awaited
  beforeEach(() => putHolder(store, 'res-1', { ...ALICE, awaited: AWAITED }))

  it('is awaited until it has begun', async () => {
    await putRecord(store, 'ranker-train', begun(0, 'submitted'))
    expect(await awaited()).toEqual(AWAITED)
    await putRecord(store, 'ranker-train', begun(RESOLVED_SEQ, 'resolved'))
    expect(await awaited()).toBeUndefined()
  })

  it('is awaited until its run is over', async () => {
    const put = (seq: number, kind: 'checked' | 'finished'): Promise<unknown> =>
      putRunEntry(store, AWAITED, { seq, kind, atMs: nowMs, summary: '', data: {} as never })
    await put(1, 'checked')
    expect(await awaited()).toEqual(AWAITED)
    await put(2, 'finished')
    expect(await awaited()).toBeUndefined()
  })

  it('is awaited until it is too late for it', async () => {
    nowMs = AWAITED.untilMs - 1
    expect(await awaited()).toEqual(AWAITED)
    nowMs += 1
    expect(await awaited()).toBeUndefined()
  })
})

describe('waiting jobs that name a reservation', () => {
  const waits = (jobId: string, name?: string): Promise<void> =>
    putWaiter(store, { jobId, sinceMs: nowMs, wish: wishNamed(jobId, name), backends: ['ec2'] })
  const count = async (): Promise<number | undefined> => (await held({ intent: 'res-1' })).namedByWaiting

  it('are counted, by either name and without the one that asks', async () => {
    await waits('job-a')
    await waits('job-self', 'res-1')
    await waits('job-b', 'res-2')
    expect(await count()).toBeUndefined()
    await waits('job-c', 'res-1')
    await waits('job-d', 'cr-1')
    expect(await count()).toBe(2)
  })

  it('count until their order is answered, and no longer than an order takes', async () => {
    const turn = { jobId: 'job-c', sinceMs: nowMs, wish: wishNamed('w', 'res-1'), backends: ['ec2'] }
    expect(await takeTurn(store, turn)).toBe(true)
    expect(await count()).toBe(1)
    await putWaiter(store, turn)
    expect(await count()).toBe(1)
    await store.delete(waiterKey(turn))
    nowMs += 31 * SECOND_MS
    await waits('job-x')
    expect(await count()).toBeUndefined()
  })

  it('count no more once they have vanished', async () => {
    await waits('job-c', 'res-1')
    nowMs += HOUR_MS
    await waits('job-x')
    expect(await count()).toBeUndefined()
  })
})

describe('a reservation without an offer', () => {
  const named = (name: string) => namedReservation(store, name, [{ ...answers()[0]!, offers: [] }])
  const entry = (id: string, seq: number, kind: 'looked' | 'over', summary: string): Promise<unknown> =>
    putReservationEntry(store, id, { seq, kind, atMs: nowMs, summary, data: {} })

  it('is not asked about while there is one', async () => {
    expect(await namedReservation(store, 'cr-1', answers())).toBeUndefined()
    expect(await namedReservation(store, undefined, [])).toBeUndefined()
  })

  it('is open until its wish is over, and unknown without one', async () => {
    expect(await named('res-1')).toEqual({ state: 'unknown' })
    await entry('res-1', 1, 'looked', 'Nothing is for sale.')
    expect(await named('res-1')).toEqual({ state: 'open', message: 'Nothing is for sale.' })
    await claimReservation(store, { backend: 'ec2', ownedId: 'cr-9', intent: 'res-1' })
    expect(await named('cr-9')).toMatchObject({ state: 'open' })
    await entry('res-1', 2, 'over', 'It has ended.')
    expect(await named('cr-9')).toEqual({ state: 'over', message: 'It has ended.' })
  })
})
