import { BackendError } from '../../backends/errors'
import { plural } from '../../core/plural'
import type { OwnedReservation, ReservationOrder, ReservationRef } from '../../core/reservation/reservation'
import { SHARE_DEFAULT } from '../../core/reservation/hold'
import type { ChangeReservationTask, SplitReservationTask } from '../../core/reservation/activities'
import { formatInstant } from '../../core/time/time'
import { whyNotChanged, whyNotSplit } from '../../planner/reserving/change'
import { Purchases } from '../../storage/purchases'
import {
  claimReservation,
  lastReservationEntry,
  putHolder,
  putRequest,
  readHolder,
} from '../../storage/reservations'
import { note, reservingOf, type ReservingDeps } from './deps'

/** Sets the number of machines, the end or the start. All are absolute: a repeated call finds them as wanted, and sends nothing. */
export async function changeReservation(
  deps: ReservingDeps,
  input: ChangeReservationTask,
  signal: AbortSignal,
): Promise<OwnedReservation> {
  const { ref, rule, spentMicroUsd, count, endsAtMs, startsAtMs } = input
  const reserving = reservingOf(deps)
  const before = await held(deps, ref, signal)
  const nowMs = deps.now()
  // Repeated after a lost answer.
  if (startsAtMs !== undefined && before.startsAtMs === startsAtMs) return before
  const why = whyNotChanged({ reservation: before, rule, spentMicroUsd, count, endsAtMs, startsAtMs, nowMs })
  if (why !== undefined) throw invalid(why)
  let after = before
  if (startsAtMs !== undefined) after = await reserving.change(ref, { kind: 'start', startsAtMs }, { signal })
  // The end first: more machines without it could stay longer than wanted.
  if (endsAtMs !== undefined) after = await reserving.change(ref, { kind: 'end', endsAtMs }, { signal })
  if (count !== undefined) {
    const counted = await reserving.change(ref, { kind: 'count', count }, { signal })
    after = { ...after, total: counted.total, free: counted.free }
  }
  const end = after.endsAtMs === undefined ? 'without an end' : `until ${formatInstant(after.endsAtMs)}`
  await note(deps, input, {
    kind: 'changed',
    summary: `${ref.id} has ${plural(after.total, 'machine')}, ${startsAtMs === undefined ? '' : `from ${formatInstant(startsAtMs)} `}${end}.`,
    data: { before, count, endsAtMs, startsAtMs, rule, spentMicroUsd, nowMs, after },
  })
  return after
}

/**
 * Splits places off for a separate intent. It happens once because the provider's token is made of the intent, and because the part shows
 * by its tags once it exists. Its mark and effect are those of a purchase, so that its money counts as spent if its workflow is lost.
 */
export async function splitReservation(
  deps: ReservingDeps,
  input: SplitReservationTask,
  signal: AbortSignal,
): Promise<OwnedReservation> {
  const { ref, count, part } = input
  const { reservationId: intent, deployment, owner } = part
  const { store, now, backend } = deps
  const reserving = reservingOf(deps)
  const all = await reserving.reservations({ signal, within: [ref.region] })
  const isMade = (one: OwnedReservation): boolean => one.intent === intent && one.deployment === deployment
  const source = all.find(({ id }) => id === ref.id)
  let made = all.find(isMade)
  const order = orderOf(source ?? made, input, now())
  const purchases = new Purchases(store, now)
  // A part that is listed late exists already: the same request again returns it.
  const isFirst = !(await isBegun(deps, input))
  if (isFirst && made !== undefined) throw taken(intent)
  if (made === undefined) {
    const why = source === undefined ? `${ref.id} has ended or does not exist.` : whyNotSplit(source, count)
    if (isFirst && why !== undefined) throw invalid(why)
    await purchases.mark(order, { ownedBefore: all.map(({ id }) => id), splitOff: ref.id })
    if (!(await isBegun(deps, input))) throw taken(intent)
    // The holder is recorded before the part exists, so that none of its places is ever free for everyone.
    const { share = SHARE_DEFAULT } = (await readHolder(store, input.reservationId)) ?? {}
    await putHolder(store, intent, { owner, share })
    made = await reserving.change(ref, { kind: 'split', count, intent, deployment, owner }, { signal })
  }
  await putRequest(store, part, `${count} × ${made.type}, split off ${ref.id} of ${input.reservationId}`)
  await purchases.conclude(order, { kind: 'bought', reservationId: made.id })
  await claimReservation(store, { backend: backend.name, ownedId: made.id, intent })
  await note(deps, input, {
    kind: 'changed',
    summary: `Split ${plural(count, 'machine')} off ${ref.id} into ${made.id}, held by ${intent}.`,
    data: { source, count, part: intent, made },
  })
  return made
}

/** Whether this split was marked before. Throws if its id belongs to another reservation. */
async function isBegun({ store, now }: ReservingDeps, { ref, part }: SplitReservationTask): Promise<boolean> {
  const { reservationId: intent } = part
  const mark = await new Purchases(store, now).read({ intent, send: 1 })
  if (mark === undefined && (await lastReservationEntry(store, intent)) === undefined) return false
  if (mark?.kind === 'sent' && mark.splitOff === ref.id) return true
  throw taken(intent)
}

function taken(intent: string): BackendError {
  return invalid(`${intent} already exists; nothing was split. Choose another id for the part.`)
}

async function held(
  deps: ReservingDeps,
  { id, region }: ReservationRef,
  signal: AbortSignal,
): Promise<OwnedReservation> {
  const all = await reservingOf(deps).reservations({ signal, within: [region] })
  const found = all.find((one) => one.id === id)
  if (found !== undefined) return found
  throw new BackendError({
    class: 'expired',
    message: `${id} is over, or the provider does not list it yet.`,
  })
}

function orderOf(
  like: OwnedReservation | undefined,
  { ref, count, part }: SplitReservationTask,
  nowMs: number,
): ReservationOrder {
  const { reservationId: intent, deployment, owner, wish } = part
  const { type = wish.types[0]!, zone = '', idleMicroUsdPerHour = 0 } = like ?? {}
  return {
    intent,
    send: 1,
    deployment,
    owner,
    backend: wish.backend,
    quote: {
      id: '',
      kind: 'hourly',
      type,
      count,
      region: ref.region,
      zone,
      startsAtMs: nowMs,
      readAtMs: nowMs,
      upfrontMicro: 0,
      perHourMicro: idleMicroUsdPerHour * count,
      currency: 'USD',
    },
  }
}

function invalid(message: string): BackendError {
  return new BackendError({ class: 'invalid', message })
}
