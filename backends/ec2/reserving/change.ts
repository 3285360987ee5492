import { defined } from '../../../core/defined'
import type { OwnedReservation, ReleaseTerms, ReservationChange } from '../../../core/reservation/reservation'
import { formatInstant, HOUR_MS, SECOND_MS } from '../../../core/time/time'
import { BackendError } from '../../errors'
import { hasCode, invalid, transient } from '../errors'
import type { Host } from '../host'
import { isLive, phaseOf } from '../market/reservations'
import type { Reservation } from '../sdk/api'
import { priceNow } from './hourly'
import { factsFor, ownedOf } from './owned'
import { tagsOfPart, tokenOf } from './tags'

/** Sets the count or the end of an on-demand reservation, or splits it. Every request states the result and may be repeated. */
export async function change(
  host: Host,
  { id, change: wanted }: { id: string; change: ReservationChange },
  signal: AbortSignal,
): Promise<OwnedReservation> {
  const told = await hourlyOf(host, id, signal)
  if (told === undefined || !isLive(told))
    throw new BackendError({
      class: 'expired',
      message: `The reservation ${id} has ended or does not exist.`,
    })
  const facts = await factsFor(host, signal)
  const owned = (one: Reservation): OwnedReservation => ownedOf(one, { ...facts, extensions: [] })
  const { reserving } = host.api
  switch (wanted.kind) {
    case 'count': {
      const { count } = wanted
      if (count !== told.total) await permitted(() => reserving.modify(id, { count }, signal))
      // The provider's list may show the previous count for a while.
      return owned({ ...told, total: count, free: Math.max(0, told.free + count - told.total) })
    }
    case 'end': {
      const { endsAtMs } = wanted
      if ((told.endsAtMs ?? null) !== endsAtMs)
        await permitted(() => reserving.modify(id, { endsAtMs }, signal))
      const changed = { ...told }
      delete changed.endsAtMs
      return owned({ ...changed, ...(endsAtMs !== null && { endsAtMs }) })
    }
    case 'start':
      return owned(await postponed(host, { told, startsAtMs: wanted.startsAtMs }, signal))
    case 'split': {
      const { count, intent, deployment } = wanted
      const token = tokenOf('split', id, deployment, intent)
      const tags = tagsOfPart(wanted, host.config.tags)
      return owned(await reserving.split({ source: id, count, token, tags }, signal))
    }
  }
}

/** Accepts AWS's terms for a later start if they are those that were asked for: the same commitment, just as much later. */
async function postponed(
  host: Host,
  { told, startsAtMs }: { told: Reservation; startsAtMs: number },
  signal: AbortSignal,
): Promise<Reservation> {
  const { id, startsAtMs: beforeMs = startsAtMs, committedUntilMs: committedMs = Infinity } = told
  if (beforeMs === startsAtMs) return told
  const { reserving } = host.api
  // A new quote each hour: one is valid for a day.
  const hour = String(Math.floor(host.deps.clock() / HOUR_MS))
  const token = tokenOf('postpone', id, String(startsAtMs), hour)
  const quote = await reserving.dateChangeQuote({ reservation: id, startsAtMs, token }, signal)
  const { committedUntilMs } = quote
  const isAsAsked =
    quote.state === 'active' &&
    quote.startsAtMs === startsAtMs &&
    committedUntilMs !== undefined &&
    committedUntilMs <= committedMs + startsAtMs - beforeMs
  if (!isAsAsked)
    throw invalid(
      `AWS offers other terms for that start of ${id}: it would begin ${inWords(quote.startsAtMs)} and be committed until ${inWords(committedUntilMs)}`,
      'Accept them in the AWS console, or keep the start.',
    )
  await reserving.modify(id, { start: { startsAtMs, quote: quote.id } }, signal)
  return { ...told, startsAtMs, committedUntilMs }
}

const inWords = (atMs: number | undefined): string =>
  atMs === undefined ? 'at a time unknown' : formatInstant(atMs)

/** Explains a refusal. In other calls, EC2 refuses with this code what a person has protected; here it means a commitment. */
async function permitted(modify: () => Promise<void>): Promise<void> {
  try {
    await modify()
  } catch (error) {
    if (!hasCode(error, 'OperationNotPermitted')) throw error
    throw invalid(
      `EC2 does not allow this change: ${(error as Error).message}`,
      'Wait until the commitment has ended.',
    )
  }
}

/** Returns the cost of a release: the rest of its commitment, which AWS reports in hours. */
export async function releaseTerms(host: Host, id: string, signal: AbortSignal): Promise<ReleaseTerms> {
  const told = await hourlyOf(host, id, signal)
  if (told === undefined || !needsTerms(told, host.deps.clock())) return { chargeMicroUsd: 0 }
  // A new quote each hour: one is valid for a day.
  const token = tokenOf('release', id, String(Math.floor(host.deps.clock() / HOUR_MS)))
  const quote = await host.api.reserving.cancellationQuote({ reservation: id, token }, signal)
  const terms = quote.terms.find(({ type }) => type === 'commitment-wind-down') ?? quote.terms[0]
  if (quote.state === 'pending' || terms === undefined)
    throw transient(`AWS has not yet computed the cost of releasing ${id} back`, 5 * SECOND_MS)
  const price = await priceNow(host, told.type, signal)
  if (price === undefined)
    throw transient(`the price of ${told.type} in ${host.config.region} cannot be read`)
  const { chargedHours, committedCount, chargedUntilMs } = terms
  return {
    chargeMicroUsd: Math.ceil(price.microUsdPerHour * committedCount * chargedHours),
    chargedUntilMs,
    quoteId: quote.id,
  }
}

/** Whether its commitment applies; a reservation that is late, or not accepted yet, can be released free of charge. */
function needsTerms({ state, committedUntilMs = 0 }: Reservation, nowMs: number): boolean {
  return ['scheduled', 'active'].includes(phaseOf({ state })) && committedUntilMs > nowMs
}

/** Releases an on-demand reservation. One that is gone, or over, counts as released. */
export async function release(
  host: Host,
  { id, terms: { quoteId } }: { id: string; terms: ReleaseTerms },
  signal: AbortSignal,
): Promise<void> {
  const told = await hourlyOf(host, id, signal)
  if (told === undefined || !isLive(told)) return
  try {
    await host.api.reserving.cancel(id, defined({ quote: quoteId }), signal)
  } catch (error) {
    if (hasCode(error, 'InvalidCapacityReservationId.NotFound')) return
    throw error
  }
}

/** The reservation; undefined without one. Throws for a block. */
async function hourlyOf(host: Host, id: string, signal: AbortSignal): Promise<Reservation | undefined> {
  const told = await host.reservations.anew(id, signal)
  if (told?.isBlock === true)
    throw invalid(
      `${id} is a Capacity Block: it is paid for, and can be neither changed nor released`,
      'Let it end, or extend it.',
    )
  return told
}
