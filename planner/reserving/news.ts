import { formatUsd } from '../../core/money/money'
import { plural } from '../../core/plural'
import type { OwnedReservation } from '../../core/reservation/reservation'
import type { ReservationNews } from '../../core/reservation/reserving'
import type { HoldOutcome } from '../../core/reservation/activities'
import { DAY_MS, formatDuration, formatInstant, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type { HoldFacts } from './hold'

/** Idle time after which a warning is due. */
export const IDLE_WARNING_MS = HOUR_MS
/** Time before the start at which a person is notified, early enough to prepare jobs. */
export const BEGIN_NOTICE_MS = DAY_MS

const MEANS = "Check the account's means of payment."

/** Returns the events that a person should hear of after an observation, each once. */
export function newsOf(facts: HoldFacts, outcome: HoldOutcome): ReservationNews[] {
  return [payment(facts, outcome), change(facts, outcome), begin(facts), idle(facts, outcome)].filter(
    (news) => news !== undefined,
  )
}

/** Whether the capacity is prepaid. Hourly capacity has no payment that could fail before it begins. */
const isPrepaid = ({ reservation, held }: HoldFacts): boolean =>
  (reservation ?? held.reservation)?.kind !== 'hourly'

function payment(facts: HoldFacts, outcome: HoldOutcome): ReservationNews | undefined {
  const { held, reservationId } = facts
  const { extending } = held
  const event = 'payment-failed'
  if (outcome.held.state === 'failed' && held.state === 'unpaid' && isPrepaid(facts))
    return { event, text: `${outcome.message} Nothing is held. ${MEANS}` }
  const hasFailed = outcome.held.upfrontMicroUsd < held.upfrontMicroUsd
  if (extending === undefined || !hasFailed) return undefined
  const { id, endsAtMs } = outcome.held.reservation!
  const end = endsAtMs === undefined ? '' : ` at ${formatInstant(endsAtMs)}`
  return {
    event,
    text:
      `The payment of ${formatUsd(extending.microUsd)} for the extension of ${id} failed: it ends${end}, as before. ` +
      `${MEANS} Then: crucible reservations extend ${reservationId}.`,
  }
}

function change(facts: HoldFacts, { held: next, message }: HoldOutcome): ReservationNews | undefined {
  const event = 'changed-by-provider'
  if (next.state === 'failed' && (facts.held.state !== 'unpaid' || !isPrepaid(facts)))
    return { event, text: message }
  const text = earlyEnd(facts) ?? warningAbout(facts)?.warning
  return text === undefined ? undefined : { event, text }
}

/** Lists show an end at its time some minutes early. */
const END_SLACK_MS = 10 * MINUTE_MS

/** Describes the early end of a reservation that was taken away before its time and not released. */
export function earlyEnd({ reservation, held, nowMs }: HoldFacts): string | undefined {
  if (reservation === undefined || held.releasedForMs !== undefined) return undefined
  const { id, phase, state, kind, endsAtMs = Infinity } = reservation
  if (phase !== 'ended' || endsAtMs <= nowMs + END_SLACK_MS) return undefined
  const end = endsAtMs === Infinity ? '' : `, before its end at ${formatInstant(endsAtMs)}`
  const who = kind === 'hourly' ? 'by the provider or by a person in its account' : 'by the provider'
  return `${id} was taken back ${who}${end}: it is reported as ${state}.`
}

/** Whether the notice of its start is due. */
function beginsSoon({ phase, startsAtMs }: OwnedReservation, nowMs: number): boolean {
  return phase === 'scheduled' && startsAtMs !== undefined && startsAtMs - nowMs <= BEGIN_NOTICE_MS
}

function begin({ held, reservation, nowMs }: HoldFacts): ReservationNews | undefined {
  if (reservation === undefined || held.isBeginTold === true || !beginsSoon(reservation, nowMs))
    return undefined
  const { id, total, type, zone, startsAtMs = nowMs, kind } = reservation
  const cost = kind === 'hourly' ? ' It costs money from then on, used or not.' : ''
  return {
    event: 'begins',
    text: `${total} × ${type} in ${zone} (${id}) begin in ${formatDuration(Math.max(0, startsAtMs - nowMs))}, at ${formatInstant(startsAtMs)}.${cost} Have jobs ready: they prefer it to other machines.`,
  }
}

/** Returns the idle warning, once in each time without a job. */
function idle(
  { held, reservationId }: HoldFacts,
  { held: next, next: step }: HoldOutcome,
): ReservationNews | undefined {
  const isNews = next.idleMs >= IDLE_WARNING_MS && held.idleMs < IDLE_WARNING_MS
  const { reservation } = next
  if (!isNews || step !== 'hold' || reservation === undefined) return undefined
  const { id, total, kind, endsAtMs, idleMicroUsdPerHour = 0 } = reservation
  const since = `No machine has run in ${id} for ${formatDuration(next.idleMs)}.`
  if (kind === 'prepaid') {
    const end = endsAtMs === undefined ? '' : ` until ${formatInstant(endsAtMs)}`
    return {
      event: 'idle',
      text: `${since} Its ${total} × ${reservation.type} are paid for${end}: submit jobs.`,
    }
  }
  return {
    event: 'idle',
    text:
      `${since} It costs ${formatUsd(total * idleMicroUsdPerHour)} per hour; its unused time has cost ${formatUsd(next.idleMicroUsd)} so far. ` +
      `Submit jobs, make it smaller (crucible reservations resize ${reservationId} --count N), or release it (crucible reservations release ${reservationId}).`,
  }
}

/** The provider has moved the end, or taken places away. */
export function warningAbout({
  reservation,
  held: { reservation: before },
}: HoldFacts): { warning: string } | undefined {
  if (reservation === undefined || before === undefined) return undefined
  const { id, endsAtMs = Infinity, usableUntilMs, total } = reservation
  const { endsAtMs: endedAtMs = Infinity } = before
  if (endsAtMs < endedAtMs && reservation.kind === 'prepaid')
    return {
      warning: `The provider now ends ${id} at ${formatInstant(endsAtMs)} instead of ${formatInstant(endedAtMs)}${usableUntilMs === undefined ? '' : `: usable until ${formatInstant(usableUntilMs)}`}.`,
    }
  if (total < before.total && reservation.kind === 'prepaid')
    return { warning: `${id} has ${plural(total, 'place')} now instead of ${before.total}.` }
  return undefined
}
