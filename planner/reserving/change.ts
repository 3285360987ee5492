import { formatUsd, type MicroUsd } from '../../core/money/money'
import type { OwnedReservation } from '../../core/reservation/reservation'
import type { PurchaseRule } from '../../core/reservation/reserving'
import { plural } from '../../core/plural'
import { formatInstant, HOUR_MS } from '../../core/time/time'

/** A change of an hourly reservation that is held. */
export interface ChangeFacts {
  reservation: OwnedReservation
  rule: PurchaseRule
  /** Cost of its unused time so far. */
  spentMicroUsd: MicroUsd
  count?: number | undefined
  /** Null for no end. */
  endsAtMs?: number | null | undefined
  startsAtMs?: number | undefined
  nowMs: number
}

/**
 * Returns why a change is refused; undefined if it is allowed. A change buys more machines, so they must fit the rule: their price, and
 * their unused cost until the end (or for an hour without an end) within the rest of the limit.
 */
export function whyNotChanged(facts: ChangeFacts): string | undefined {
  if (facts.startsAtMs !== undefined) return whyNotPostponed(facts.reservation, facts.startsAtMs)
  const { reservation, count = reservation.total, nowMs } = facts
  const why = whyUnchangeable(reservation)
  if (why !== undefined) return why
  const { id, total } = reservation
  const used = total - reservation.free
  const { endsAtMs = reservation.endsAtMs ?? null } = facts
  if (endsAtMs !== null && endsAtMs <= nowMs)
    return `${formatInstant(endsAtMs)} has passed. To end it now, release it (crucible reservations release).`
  if (count < used)
    return `${used} of the ${plural(total, 'place')} of ${id} ${used === 1 ? 'is' : 'are'} in use, so it cannot have ${count}. Migrate jobs first, or ask for at least ${used}.`
  return count > total ? whyNotMore(facts, { count, endsAtMs }) : undefined
}

function whyNotPostponed(
  { id, kind, phase, startsAtMs: nowAtMs = Infinity, endsAtMs = Infinity }: OwnedReservation,
  startsAtMs: number,
): string | undefined {
  if (kind !== 'hourly') return `${id} is prepaid: its dates are fixed.`
  if (phase !== 'scheduled') return `${id} is ${phase}: only a start that lies ahead can be postponed.`
  if (startsAtMs <= nowAtMs) return `${id} begins ${formatInstant(nowAtMs)}, and can only begin later.`
  return startsAtMs < endsAtMs ? undefined : `${id} ends ${formatInstant(endsAtMs)}, before that start.`
}

function whyNotMore(
  { reservation, rule, spentMicroUsd, nowMs }: ChangeFacts,
  { count, endsAtMs }: { count: number; endsAtMs: number | null },
): string | undefined {
  const { id, idleMicroUsdPerHour: each } = reservation
  const { machineHourMaxMicroUsd = Infinity, spendMaxMicroUsd = Infinity } = rule
  if (each === undefined) return `The price of ${reservation.type} is unknown, so ${id} does not grow.`
  if (each > machineHourMaxMicroUsd)
    return `A machine of ${id} costs ${formatUsd(each)} per hour now, above the limit of ${formatUsd(machineHourMaxMicroUsd)}.`
  const heldMs = endsAtMs === null ? HOUR_MS : endsAtMs - nowMs
  const unused = Math.ceil((count * each * heldMs) / HOUR_MS)
  if (spentMicroUsd + unused <= spendMaxMicroUsd) return undefined
  const until = endsAtMs === null ? 'in an hour' : `until ${formatInstant(endsAtMs)}`
  return (
    `${plural(count, 'machine costs', 'machines cost')} ${formatUsd(unused)} ${until} if they stay unused, and the limit of ${formatUsd(spendMaxMicroUsd)} leaves ` +
    `${formatUsd(Math.max(0, spendMaxMicroUsd - spentMicroUsd))}. Raise it: --max-spend ${Math.ceil((spentMicroUsd + unused) / 1e6)}.`
  )
}

/** Why a reservation cannot be split so; undefined if it can. */
export function whyNotSplit(reservation: OwnedReservation, count: number): string | undefined {
  const why = whyUnchangeable(reservation)
  if (why !== undefined) return why
  const { id, total, free } = reservation
  if (count >= total) return `${id} has ${plural(total, 'machine')}, and keeps at least one.`
  if (count > free)
    return `Only ${free} of the ${plural(total, 'place')} of ${id} ${free === 1 ? 'is' : 'are'} free, and ${count} are requested. Migrate jobs first, or split fewer off.`
  return undefined
}

function whyUnchangeable({ id, kind, phase }: OwnedReservation): string | undefined {
  if (kind !== 'hourly') return `${id} is prepaid: its machines are paid for, and do not change.`
  return phase === 'active' ? undefined : `${id} is ${phase}: it can be changed once it is active.`
}
