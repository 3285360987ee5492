import type { Backend, ReservingBackend } from '../../backends/backend'
import { BackendError } from '../../backends/errors'
import type { ReservationEntry, ReservationTask } from '../../core/reservation/activities'
import { putReservationEntry } from '../../storage/reservations'
import type { ObjectStore } from '../../storage/store'
import type { WakingDeps } from '../waking'

export interface ReservingDeps extends WakingDeps {
  backend: Backend
  store: ObjectStore
  now: () => number
  purchaseLimitMs?: number
}

/** Throws `invalid` for a backend that sells none. */
export function reservingOf({ backend }: Pick<ReservingDeps, 'backend'>): ReservingBackend {
  if (backend.reserving !== undefined) return backend.reserving
  throw new BackendError({
    class: 'invalid',
    message: `${backend.name} sells no reservations, or its settings exclude them.`,
  })
}

/** A step whose entry cannot be put is repeated: everything that is decided or bought is on record. */
export async function note(
  { store, now }: ReservingDeps,
  { reservationId, recordSeq }: ReservationTask,
  entry: Pick<ReservationEntry, 'kind' | 'summary' | 'data'>,
): Promise<void> {
  await putReservationEntry(store, reservationId, { seq: recordSeq, atMs: now(), ...entry })
}
