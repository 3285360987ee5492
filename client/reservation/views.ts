/** State of requests for reserved capacity. */
import { withLimit } from '../deadline'
import { without } from '../../core/defined'
import { reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import {
  isReservationFinal,
  RESERVATION_QUERY,
  type ReservationInput,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import type { HoldOutcome, ReservationEntry } from '../../core/reservation/activities'
import { isOpenStatus } from '../../core/workflow-status'
import { eachOf } from '../../storage/parallel'
import { Gaps } from '../../storage/json'
import { readReservationEntries, reservationIds } from '../../storage/reservations'
import type { Context } from '../context'
import type { MicroUsd } from '../../core/money/money'
import { CrucibleError, isTemporals, toCrucibleError } from '../errors'
import { noteGaps } from '../job/list-gaps'
import { gapsInWords } from '../job/view'
import { checkStore } from '../store-trouble'
import { UPDATE_LIMIT_MS } from '../updates'

/** State of a reservation. Without a workflow that answers, unknown values are null. @experimental */
export interface KnownReservation extends Omit<
  ReservationStatus,
  'state' | 'spentMicroUsd' | 'idleMicroUsd'
> {
  state: ReservationStatus['state'] | null
  spentMicroUsd: MicroUsd | null
  idleMicroUsd: MicroUsd | null
}

/** A reservation with its record. @experimental */
export interface ReservationView {
  status: KnownReservation
  record: ReservationEntry[]
}

/**
 * Returns all reservations of the store, the newest first. Closed ones come from the record alone. `context.gaps` names the documents that
 * cannot be read; a reservation without anything readable is missing.
 */
export async function listReservations(context: Context): Promise<KnownReservation[]> {
  const ids = await reservationIds(context.store)
  if (ids.length === 0) await checkStore(context)
  const gaps = new Gaps()
  const views = await eachOf(ids, (id) => readReservation(context, id, gaps))
  noteGaps(context, gaps)
  return views
    .filter((view) => view !== undefined)
    .map(({ status }) => status)
    .sort((a, b) => b.submittedAtMs - a.submittedAtMs)
}

/** Returns one reservation by its id or a prefix of it. Throws `not-found` and `usage`. */
export async function showReservation(context: Context, meant: string): Promise<ReservationView> {
  const id = await findReservation(context, meant)
  const gaps = new Gaps()
  const view = await readReservation(context, id, gaps)
  noteGaps(context, gaps)
  if (view !== undefined) return view
  if (gaps.isEmpty) throw unknown(meant)
  throw new CrucibleError(
    'unavailable',
    `${gapsInWords(gaps.names, '')} Temporal does not know ${id} either.`,
  )
}

/**
 * Returns an open reservation whose worker answers, without a request to the store: a command that ends spending needs nothing else.
 * `undefined` if Temporal alone does not tell which one is meant.
 */
export async function openReservation(
  context: Context,
  meant: string,
): Promise<ReservationStatus | undefined> {
  if (!/^[\w.-]+$/.test(meant)) return undefined
  const client = await context.temporal()
  const query = `WorkflowType = '${WORKFLOW_TYPES.reserveCapacity}' AND WorkflowId STARTS_WITH '${reservationWorkflowId(meant)}' AND ExecutionStatus = 'Running'`
  const ids: string[] = []
  for await (const { workflowId } of client.workflow.list({ query, pageSize: OPEN_MAX })) {
    ids.push(workflowId.slice(reservationWorkflowId('').length))
    if (ids.length === OPEN_MAX) break
  }
  const id = ids.includes(meant) || ids.length === 0 ? meant : ids.length === 1 ? ids[0]! : undefined
  const status = id === undefined ? 'gone' : await liveStatus(context, id)
  return typeof status === 'string' || isReservationFinal(status.state) ? undefined : status
}

/** Candidates that a beginning of an id may have. */
const OPEN_MAX = 10

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

async function readReservation(
  context: Context,
  id: string,
  gaps: Gaps,
): Promise<ReservationView | undefined> {
  const record = await readReservationEntries(context.store, id, gaps)
  const first = record.find(({ kind }) => kind === 'requested')
  const last = record.at(-1)
  if (last?.kind === 'over') return { status: last.data as ReservationStatus, record }
  const live = await liveStatus(context, id)
  if (live !== 'silent' && live !== 'gone') return { status: live, record }
  return first && { status: silentStatus(first, record, live), record }
}

/** Why a workflow does not answer: no worker does, or the server does not have it. */
type Silence = 'silent' | 'gone'

/** The live status, or why it is unknown. Throws `unavailable` without a server. */
async function liveStatus(context: Context, id: string): Promise<ReservationStatus | Silence> {
  const client = await context.temporal()
  try {
    const handle = client.workflow.getHandle(reservationWorkflowId(id))
    const [status, described] = await withLimit(client, UPDATE_LIMIT_MS, () =>
      // The server answers the second request alone, the first one only with a worker.
      Promise.all([
        handle.query<ReservationStatus>(RESERVATION_QUERY).catch(() => undefined),
        handle.describe(),
      ]),
    )
    if (status === undefined) return 'silent'
    return isOpenStatus(described.status.name) || isReservationFinal(status.state)
      ? status
      : unwatched(status)
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return 'gone'
    if (toCrucibleError(error).kind === 'unavailable') throw error
    return 'silent'
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

const SILENCE: Readonly<Record<Silence, string>> = {
  silent: 'No worker responds; showing its record.',
  gone: 'The Temporal server has no workflow for it; showing its record.',
}

/** Returns the last recorded status. Its state may have changed since, and hourly capacity costs more with time. */
function silentStatus(
  requested: ReservationEntry,
  record: readonly ReservationEntry[],
  silence: Silence,
): KnownReservation {
  const { reservationId: id, owner, wish, rule, submittedAtMs, purpose } = requested.data as ReservationInput
  const noted = record.findLast(({ kind }) => kind === 'held')
  const { held } = (noted?.data ?? {}) as Partial<HoldOutcome>
  const isHourly = wish.kind === 'hourly'
  return {
    id,
    owner,
    wish,
    rule,
    submittedAtMs,
    state: held?.state ?? null,
    alternatives: [],
    message: noted?.summary ?? 'Its state is unknown.',
    trouble: SILENCE[silence],
    spentMicroUsd: held === undefined || isHourly ? null : held.upfrontMicroUsd,
    idleMicroUsd: held === undefined || isHourly ? null : 0,
    purpose,
    reservation: held?.reservation,
  }
}
