/** State of requests for reserved capacity. */
import { without } from '../../core/defined'
import { reservationWorkflowId } from '../../core/queues'
import {
  isReservationFinal,
  RESERVATION_QUERY,
  type ReservationInput,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import type { HoldOutcome, ReservationEntry } from '../../core/reservation/activities'
import { isOpenStatus } from '../../core/workflow-status'
import { eachOf } from '../../storage/parallel'
import { readReservationEntries, reservationIds } from '../../storage/reservations'
import type { Context } from '../context'
import { CrucibleError, toCrucibleError } from '../errors'
import { UPDATE_LIMIT_MS } from '../updates'

/** A reservation with its record. @experimental */
export interface ReservationView {
  status: ReservationStatus
  record: ReservationEntry[]
}

/** Returns all reservations of the store, the newest first. Closed ones come from the record alone. */
export async function listReservations(context: Context): Promise<ReservationStatus[]> {
  const ids = await reservationIds(context.store)
  const views = await eachOf(ids, (id) => readReservation(context, id))
  return views
    .filter((view) => view !== undefined)
    .map(({ status }) => status)
    .sort((a, b) => b.submittedAtMs - a.submittedAtMs)
}

/** Returns one reservation by its id or a prefix of it. Throws `not-found` and `usage`. */
export async function showReservation(context: Context, meant: string): Promise<ReservationView> {
  const id = await findReservation(context, meant)
  const view = await readReservation(context, id)
  if (view !== undefined) return view
  throw unknown(meant)
}

export async function findReservation({ store }: Context, meant: string): Promise<string> {
  const ids = await reservationIds(store)
  if (ids.includes(meant)) return meant
  const found = ids.filter((id) => id.startsWith(meant))
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw unknown(meant)
  throw new CrucibleError('usage', `${meant} is a prefix of ${found.slice(0, 5).join(', ')}.`, {
    hint: 'Write more of it.',
  })
}

function unknown(meant: string): CrucibleError {
  return new CrucibleError('not-found', `There is no reservation ${meant}.`, {
    hint: 'See them with `crucible reservations list`.',
  })
}

async function readReservation(context: Context, id: string): Promise<ReservationView | undefined> {
  const record = await readReservationEntries(context.store, id)
  const [first, last] = [record[0], record.at(-1)]
  if (last?.kind === 'over') return { status: last.data as ReservationStatus, record }
  const live = await liveStatus(context, id)
  const status = live ?? (first?.kind === 'requested' ? silentStatus(first, record) : undefined)
  return status && { status, record }
}

/** Returns the live status; undefined without a server, a worker or a workflow that answers. */
async function liveStatus(context: Context, id: string): Promise<ReservationStatus | undefined> {
  const client = await context.temporal()
  try {
    const handle = client.workflow.getHandle(reservationWorkflowId(id))
    const [status, described] = await client.withDeadline(Date.now() + UPDATE_LIMIT_MS, () =>
      Promise.all([handle.query<ReservationStatus>(RESERVATION_QUERY), handle.describe()]),
    )
    return isOpenStatus(described.status.name) || isReservationFinal(status.state)
      ? status
      : unwatched(status)
  } catch (error) {
    if (toCrucibleError(error).kind === 'unavailable') throw error
    return undefined
  }
}

/** Describes a reservation whose workflow was terminated by hand and still answers with its last state. */
function unwatched(last: ReservationStatus): ReservationStatus {
  const status = without(last, ['nextLookAtMs'])
  const held =
    last.reservation === undefined
      ? ''
      : ' `crucible gc` gives hourly capacity back, and lists prepaid capacity.'
  return {
    ...status,
    trouble: `Its workflow was terminated by hand; showing its last state. The reservation is not watched.${held}`,
  }
}

/** Returns the last recorded status, for a reservation whose workers do not answer. */
function silentStatus(requested: ReservationEntry, record: readonly ReservationEntry[]): ReservationStatus {
  const { reservationId: id, owner, wish, rule, submittedAtMs, purpose } = requested.data as ReservationInput
  const noted = record.findLast(({ kind }) => kind === 'held')
  const { held } = (noted?.data ?? {}) as Partial<HoldOutcome>
  const { state = 'searching', upfrontMicroUsd = 0, idleMicroUsd = 0, reservation } = held ?? {}
  return {
    id,
    owner,
    wish,
    rule,
    submittedAtMs,
    state,
    alternatives: [],
    message: noted?.summary ?? 'Nothing is known to be held.',
    trouble: 'No worker responds; showing its record.',
    spentMicroUsd: upfrontMicroUsd + idleMicroUsd,
    idleMicroUsd,
    purpose,
    reservation,
  }
}
