import { defined } from '../../../core/defined'
import type { Failure } from '../../../core/failure'
import type { CapacityQuote, ReservationOrder, ReserveOutcome } from '../../../core/reservation/reservation'
import { CLOCK_SLACK_MS } from '../../../core/time/time'
import type { TimedContext } from '../../backend'
import { throwIfLate } from '../../calls'
import { BackendError } from '../../errors'
import { whyForeign } from '../check/buyer'
import { ec2Error, hasCode, mayHaveHappened } from '../errors'
import type { Host } from '../host'
import { meaningOf } from '../meanings'
import { AwsError, type Reservation } from '../sdk/api'
import type { BoughtExtension } from '../sdk/api-reserving'
import { extensionAnew, offeringAnew } from './blocks'
import { priceNow } from './hourly'
import { factsFor, ownedOf } from './owned'
import { purchaseTags, tokenOf } from './tags'

/** Buys a quote. See `docs/decisions/0054-a-purchase-is-sent-once.md`. */
export async function reserve(
  host: Host,
  order: ReservationOrder,
  ctx: TimedContext,
): Promise<ReserveOutcome> {
  const { quote } = order
  const { signal } = ctx
  const { buyerRole } = host.config
  const foreign = buyerRole && whyForeign(buyerRole, await host.account(signal))
  if (foreign) return refused(meant({ class: 'auth', message: `nothing is bought: ${foreign}` }))
  if (quote.kind === 'hourly') return hold(host, order, ctx)
  const sale = quote.extends === undefined ? blockSale(host, order) : extensionSale(host, quote)
  const anew = await sale.read(signal)
  if (anew === undefined) return refused(GONE)
  const denied = await whyDenied((within) => sale.send(anew, { isTrial: true }, within), signal)
  if (denied !== undefined) return denied
  // From here on the request is never repeated.
  throwIfLate(ctx)
  try {
    return await sale.send(anew, { isTrial: false }, signal)
  } catch (error) {
    return outcomeOf(error, { isSold: mayBeSold })
  }
}

/** A way to buy without a token. */
interface Sale {
  /** Reads the quote as it is for sale now. */
  read(signal: AbortSignal): Promise<CapacityQuote | undefined>
  send(anew: CapacityQuote, how: { isTrial: boolean }, signal: AbortSignal): Promise<ReserveOutcome>
}

function blockSale(host: Host, order: ReservationOrder): Sale {
  return {
    read: (signal) => offeringAnew(host, order.quote, signal),
    send: async (anew, { isTrial }, signal) => {
      const tags = purchaseTags({ ...order, quote: anew }, host.config.tags)
      const told = await host.api.reserving.buyBlock({ offering: anew.id, tags, isTrial }, signal)
      return reserved(host, { told }, signal)
    },
  }
}

function extensionSale(host: Host, quote: CapacityQuote): Sale {
  const id = quote.extends!
  let block: Reservation | undefined
  return {
    read: async (signal) => {
      block = await host.reservations.anew(id, signal)
      return block && extensionAnew(host, quote, signal)
    },
    send: async ({ id: offering }, { isTrial }, signal) => {
      const bought = await host.api.reserving.buyExtension({ offering, reservation: id, isTrial }, signal)
      return reserved(host, { told: block!, extensions: [bought] }, signal)
    },
  }
}

/**
 * Asks whether the purchase is permitted, without an effect. An answer other than the error that says so is a refusal; success would mean that
 * the provider has ignored the question, and has sold.
 */
async function whyDenied(
  ask: (signal: AbortSignal) => Promise<ReserveOutcome>,
  signal: AbortSignal,
): Promise<ReserveOutcome | undefined> {
  try {
    await ask(signal)
  } catch (error) {
    if (hasCode(error, 'DryRunOperation')) return undefined
    const { failure } = ec2Error(error)
    if (failure.class === 'transient' || failure.class === 'throttled') throw ec2Error(error)
    return refused(meant(failure))
  }
  return unconfirmed({
    class: 'unclassified',
    message: 'EC2 answered a trial of the purchase as if it had been made, and nothing more was sent',
    hint: 'Check in the account whether it was bought.',
  })
}

/** Buys an hourly reservation, which has a token: the same order makes the same reservation, regardless of repetitions. */
async function hold(host: Host, order: ReservationOrder, ctx: TimedContext): Promise<ReserveOutcome> {
  const { signal } = ctx
  const { intent, send, deployment, quote } = order
  const { type, count, zone, startsAtMs, endsAtMs, committedMs } = quote
  const price = await priceNow(host, type, signal)
  if (price === undefined || price.microUsdPerHour * count !== quote.perHourMicro) return refused(GONE)
  const isOver = endsAtMs !== undefined && endsAtMs <= host.deps.clock()
  const isPast = committedMs !== undefined && startsAtMs <= host.deps.clock() + CLOCK_SLACK_MS
  if (isOver || isPast) return refused(GONE)
  const request = {
    token: tokenOf('reserve', deployment, intent, String(send)),
    type,
    count,
    zone,
    endsAtMs,
    later: committedMs !== undefined ? { startsAtMs, committedMs } : undefined,
    tags: purchaseTags(order, host.config.tags),
  }
  throwIfLate(ctx)
  try {
    const told = await host.api.reserving.create(request, signal)
    return await reserved(host, { told }, signal)
  } catch (error) {
    return outcomeOf(error, { isSold: mayHaveHappened })
  }
}

async function reserved(
  host: Host,
  { told, extensions = [] }: { told: Reservation; extensions?: BoughtExtension[] },
  signal: AbortSignal,
): Promise<ReserveOutcome> {
  // The reservation is bought, so an unreadable fact for its description must not look like a failure.
  const facts = await factsFor(host, signal).catch(() => ({
    account: told.owner ?? '',
    region: host.config.region,
    priceOf: () => undefined,
    whyTypeUnfit: () => undefined,
  }))
  return { kind: 'reserved', reservation: ownedOf(told, { ...facts, extensions }) }
}

/**
 * Whether a purchase without a token may have been made: unless it never reached the provider, or the provider certainly refused it. A
 * server error does not exclude it, whatever its code; only throttling happens before any work.
 */
function mayBeSold(error: AwsError): boolean {
  if (error.reach !== 'answered') return error.reach === 'unanswered'
  const known = meaningOf(error.code, error.message)
  if (known?.isUncertain === true) return true
  const { httpStatus = 500 } = error
  return httpStatus >= 500 ? known?.class !== 'throttled' : httpStatus < 400
}

function outcomeOf(error: unknown, { isSold }: { isSold: (error: AwsError) => boolean }): ReserveOutcome {
  const { failure } = ec2Error(error)
  if (error instanceof BackendError) throw error
  if (!(error instanceof AwsError) || isSold(error)) return unconfirmed(failure)
  return refused(meant(failure))
}

const GONE: Failure = {
  class: 'capacity',
  message: 'this capacity is no longer for sale at this price',
  hint: 'Look for another offer.',
}

/** Interprets a refusal. EC2 does not document how it reports that an offering is gone; a refusal that names the offering means that. */
function meant(failure: Failure): Failure {
  const isAboutOffering = /offering(?!IdMalformed)/i.test(`${failure.code} ${failure.message}`)
  if (['invalid', 'unclassified'].includes(failure.class) && isAboutOffering)
    return { ...GONE, ...defined({ code: failure.code, message: failure.message }) }
  if (failure.class !== 'auth') return failure
  return {
    ...failure,
    hint: 'Set CRUCIBLE_EC2_BUYER_ROLE to a role that may buy; `crucible setup aws --buyer` makes one.',
  }
}

const refused = (failure: Failure): ReserveOutcome => ({ kind: 'refused', failure })
const unconfirmed = (failure: Failure): ReserveOutcome => ({ kind: 'unconfirmed', failure })
