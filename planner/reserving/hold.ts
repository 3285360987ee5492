import { without } from '../../core/defined'
import { isAmount } from '../../core/figures'
import { formatUsd, type MicroUsd } from '../../core/money/money'
import { plural } from '../../core/plural'
import { boughtUntilMs, isHeld, type OwnedReservation } from '../../core/reservation/reservation'
import type { PurchaseRule, ReservationState } from '../../core/reservation/reserving'
import type { HoldState, HoldOutcome } from '../../core/reservation/activities'
import { STALE_MS } from '../../core/reservation/purchase-limits'
import { isExtensionDue } from './extend'
import { BEGIN_NOTICE_MS, earlyEnd, IDLE_WARNING_MS, newsOf, warningAbout } from './news'
import { DAY_MS, formatDuration, formatInstant, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'

/** One observation of a held reservation. */
export interface HoldFacts {
  /** Other reservations with the tags of this request that no workflow watches: a purchase that was considered not made. */
  strays?: readonly OwnedReservation[]
  /** The reservation; missing if the provider does not report it. */
  reservation: OwnedReservation | undefined
  held: HoldState
  /** Id of the reservation in commands. */
  reservationId: string
  rule: PurchaseRule
  /** Since the last look; 0 for the first. */
  elapsedMs: number
  nowMs: number
}

/** Observations without a reservation before it counts as gone, because lists may omit it for a while. */
const MISSES_MAX = 4
const MISSED_LOOK_MS = 10 * MINUTE_MS
const UNPAID_LOOK_MS = 5 * MINUTE_MS
const RETURNED_LOOK_MS = 30 * SECOND_MS
/** Intervals between observations. Hourly capacity is observed more often, because it costs money while it is idle. */
const ACTIVE_LOOK_MS: Readonly<Record<OwnedReservation['kind'], number>> = {
  prepaid: HOUR_MS,
  hourly: 10 * MINUTE_MS,
}
/** Returns the cost of a reservation so far, whether to keep it, and its events. */
export function judgeHold(seen: HoldFacts): HoldOutcome {
  const facts = asCounted(seen)
  const outcome = judged(facts)
  const news = newsOf(facts, outcome)
  if (news.length === 0) return outcome
  const hasBegin = news.some(({ event }) => event === 'begins')
  return { ...outcome, news, ...(hasBegin && { held: { ...outcome.held, isBeginTold: true as const } }) }
}

/** A clock that is set back brings no money back, and a price that cannot be read is the last known one: unknown is not free. */
function asCounted(facts: HoldFacts): HoldFacts {
  const { reservation, held, elapsedMs } = facts
  const { idleMicroUsdPerHour } = held.reservation ?? {}
  return {
    ...facts,
    elapsedMs: Math.max(0, elapsedMs),
    reservation: reservation && {
      ...reservation,
      idleMicroUsdPerHour: isAmount(reservation.idleMicroUsdPerHour)
        ? reservation.idleMicroUsdPerHour
        : idleMicroUsdPerHour,
    },
  }
}

function judged(facts: HoldFacts): HoldOutcome {
  const { reservation, held, nowMs } = facts
  if (reservation === undefined) return missing(facts)
  if (isLate(facts)) return returned(facts)
  const idleMicroUsd = held.idleMicroUsd + idleCost(facts)
  // Unused at both looks: the time before it was active does not count.
  const isStillIdle = held.reservation !== undefined && isIdle(held.reservation)
  const idleMs = !isIdle(reservation) ? 0 : isStillIdle ? held.idleMs + facts.elapsedMs : held.idleMs
  const state = stateOf(reservation)
  const next: HoldState = {
    ...unlistedOf(paidOf(held, reservation), reservation),
    state,
    reservation,
    idleMicroUsd,
    idleMs,
    misses: 0,
  }
  delete next.releasedForMs
  const message = earlyEnd(facts) ?? messageOf(reservation)
  if (!isHeld(reservation.phase))
    return { held: next, message, next: 'over', lookInMs: 0, ...warningAbout(facts) }
  const why = whyRelease(facts, next)
  if (why !== undefined) return { held: next, message: why, next: 'release', lookInMs: MINUTE_MS }
  return {
    held: next,
    message,
    next: 'hold',
    lookInMs: lookInMs(reservation, nowMs),
    ...(warningAbout(facts) ?? strayWarning(facts) ?? idleWarning(next)),
    isEndNear:
      isExtensionDue(reservation, facts) && next.extending === undefined ? (true as const) : undefined,
  }
}

/** Whether a reservation was released but is still listed as held, so that it is neither in use nor idle. */
function isLate({ reservation, held: { releasedForMs = Infinity }, elapsedMs }: HoldFacts): boolean {
  return isHeld(reservation!.phase) && releasedForMs + elapsedMs < STALE_MS
}

function returned(facts: HoldFacts): HoldOutcome {
  const { reservation, held, elapsedMs } = facts
  const message = `${reservation!.id} is released; the provider still lists it.`
  const idleMicroUsd = held.idleMicroUsd + idleCost({ ...facts, reservation: undefined })
  const releasedForMs = held.releasedForMs! + elapsedMs
  return {
    held: { ...held, state: 'releasing', idleMicroUsd, releasedForMs },
    message,
    next: 'hold',
    lookInMs: RETURNED_LOOK_MS,
  }
}

/** Returns the paid amount, including an extension once its payment is certain. Lists may not show the extension for a while. */
function paidOf(held: HoldState, { endsAtMs = 0, extension }: OwnedReservation): HoldState {
  const { extending, ...rest } = held
  if (extending === undefined) return held
  const isShown = extension?.endsAtMs === extending.endsAtMs && extension.boughtAtMs === extending.boughtAtMs
  if (endsAtMs >= extending.endsAtMs || (isShown && extension.phase === 'paid')) return rest
  if (!isShown || extension.phase !== 'failed') return held
  const { upfrontMicroUsd, extendedMicroUsd = 0 } = held
  return {
    ...without(rest, ['extendedToMs']),
    upfrontMicroUsd: upfrontMicroUsd - extending.microUsd,
    extendedMicroUsd: Math.max(0, extendedMicroUsd - extending.microUsd),
  }
}

/** Forgets the end of an extension that the list shows now. */
function unlistedOf({ extendedToMs, ...held }: HoldState, reservation: OwnedReservation): HoldState {
  const isListed = (boughtUntilMs(reservation) ?? 0) >= (extendedToMs ?? 0)
  return isListed ? held : { ...held, extendedToMs }
}

function missing(facts: HoldFacts): HoldOutcome {
  const { nowMs } = facts
  const held = { ...facts.held, idleMicroUsd: facts.held.idleMicroUsd + idleCost(facts) }
  const { reservation } = held
  // A look soon after the last one proves nothing: lists are late.
  const misses = held.misses + (facts.elapsedMs >= MISSED_LOOK_MS ? 1 : 0)
  const hasEnded = reservation?.endsAtMs !== undefined && nowMs >= reservation.endsAtMs
  if (hasEnded || held.releasedForMs !== undefined) {
    const message = 'The reservation has ended.'
    return { held: { ...held, misses, state: 'ended' }, message, next: 'over', lookInMs: 0 }
  }
  if (misses >= MISSES_MAX) {
    const message = `The provider no longer reports ${reservation?.id ?? 'the reservation'}, although it should exist.`
    return { held: { ...held, misses, state: 'failed' }, message, next: 'over', lookInMs: 0 }
  }
  const message = 'The provider does not list the reservation at the moment.'
  return { held: { ...held, misses }, message, next: 'hold', lookInMs: MISSED_LOOK_MS }
}

const STATES: Readonly<Record<OwnedReservation['phase'], ReservationState>> = {
  unpaid: 'unpaid',
  assessing: 'scheduled',
  scheduled: 'scheduled',
  delayed: 'scheduled',
  active: 'active',
  ending: 'ended',
  ended: 'ended',
  failed: 'failed',
}

function stateOf({ phase }: OwnedReservation): ReservationState {
  return STATES[phase]
}

function isIdle({ phase, free, total }: OwnedReservation): boolean {
  return phase === 'active' && free >= total
}

/** The free places since the last look: the more of then and now. A used place is part of its job's cost. */
function idleCost(facts: HoldFacts): MicroUsd {
  const { held, reservation = held.reservation } = facts
  if (reservation?.kind !== 'hourly' || held.reservation?.phase !== 'active') return 0
  const free = Math.max(reservation.free, held.reservation.free)
  return Math.ceil((free * (reservation.idleMicroUsdPerHour ?? 0) * billedMs(facts)) / HOUR_MS)
}

/** Returns the billed time: nothing after its release, unless the release had no effect. */
function billedMs({ reservation, held: { releasedForMs }, elapsedMs }: HoldFacts): number {
  if (releasedForMs === undefined) return elapsedMs
  const beforeMs = Math.max(0, -releasedForMs)
  const hasNoEffect = reservation !== undefined && isHeld(reservation.phase)
  return hasNoEffect ? beforeMs + releasedForMs + elapsedMs : beforeMs
}

function whyRelease({ rule, reservation }: HoldFacts, next: HoldState): string | undefined {
  if (reservation?.kind !== 'hourly' || reservation.phase !== 'active') return undefined
  const { spendMaxMicroUsd, idleMaxMs } = rule
  if (idleMaxMs !== undefined && next.idleMs >= idleMaxMs)
    return `It was unused for ${formatDuration(next.idleMs)}: it is released.`
  // All of its places may become free until the next observation.
  const perLook =
    (reservation.total * (reservation.idleMicroUsdPerHour ?? 0) * ACTIVE_LOOK_MS.hourly) / HOUR_MS
  const costs = next.upfrontMicroUsd + next.idleMicroUsd
  if (spendMaxMicroUsd !== undefined && costs + perLook > spendMaxMicroUsd)
    return `Its unused time has cost ${formatUsd(costs)} of at most ${formatUsd(spendMaxMicroUsd)}: it is released.`
  return undefined
}

function messageOf(reservation: OwnedReservation): string {
  const { id, phase, state, startsAtMs, endsAtMs, free, total } = reservation
  switch (phase) {
    case 'unpaid':
      return `${id} is bought; the payment is not confirmed yet.`
    case 'assessing':
      return `The provider is checking whether it can hold ${id}.`
    case 'scheduled':
      return `${id} is held${startsAtMs === undefined ? '' : ` and begins ${formatInstant(startsAtMs)}`}.`
    case 'delayed':
      return `${id} should have begun${startsAtMs === undefined ? '' : ` ${formatInstant(startsAtMs)}`}; the provider is late.`
    case 'active':
      return `${id} is active: ${free} of ${plural(total, 'place')} ${free === 1 ? 'is' : 'are'} free${endsAtMs === undefined ? '' : `; it ends ${formatInstant(endsAtMs)}`}.`
    case 'ending':
    case 'ended':
      return `${id} has ended.`
    case 'failed':
      return `${id} failed: the provider reports ${state}.`
  }
}

function strayWarning({ strays = [], reservationId }: HoldFacts): { warning: string } | undefined {
  const [first] = strays
  if (first === undefined) return undefined
  const what = strays.map(({ id, total, type }) => `${id} (${total} × ${type})`).join(', ')
  const how =
    first.kind === 'hourly'
      ? 'It costs money until it is released: cancel it at the provider.'
      : 'It is paid for: jobs can use it.'
  return { warning: `${what} was bought for ${reservationId}, too, in addition to its own. ${how}` }
}

function idleWarning({ idleMs, idleMicroUsd, reservation }: HoldState): { warning: string } | undefined {
  if (idleMs < IDLE_WARNING_MS || reservation === undefined) return undefined
  const { total, idleMicroUsdPerHour = 0, kind } = reservation
  const cost =
    kind === 'hourly'
      ? `It costs ${formatUsd(total * idleMicroUsdPerHour)} per hour, ${formatUsd(idleMicroUsd)} so far.`
      : 'It is paid for.'
  return { warning: `No machine has run in ${reservation.id} for ${formatDuration(idleMs)}. ${cost}` }
}

/** Exactly at the start and at the end, otherwise at intervals. */
function lookInMs({ phase, kind, startsAtMs, endsAtMs, extension }: OwnedReservation, nowMs: number): number {
  const until = (atMs: number | undefined): number =>
    atMs === undefined || atMs <= nowMs ? Infinity : atMs - nowMs
  if (extension?.phase === 'unpaid') return UNPAID_LOOK_MS
  switch (phase) {
    case 'unpaid':
      return UNPAID_LOOK_MS
    case 'assessing':
      return HOUR_MS
    case 'scheduled':
    case 'delayed':
      return startsAtMs === undefined || startsAtMs <= nowMs
        ? lateLookMs(nowMs - (startsAtMs ?? 0))
        : Math.min(DAY_MS, until(startsAtMs), until(startsAtMs - BEGIN_NOTICE_MS))
    case 'active':
    case 'ending':
    case 'ended':
    case 'failed':
      return Math.max(SECOND_MS, Math.min(ACTIVE_LOOK_MS[kind], until(endsAtMs)))
  }
}

/** Returns the interval of observations for a reservation that is due but not active: most are late by seconds, and some by days. */
function lateLookMs(lateMs: number): number {
  return Math.max(5 * SECOND_MS, Math.min(10 * MINUTE_MS, lateMs))
}
