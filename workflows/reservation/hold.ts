import { failureFrom } from '../../core/failure'
import { formatUsd } from '../../core/money/money'
import type { ReservationState } from '../../core/reservation/reserving'
import type { HoldState, HoldOutcome } from '../../core/reservation/activities'
import { resizeOnRequest, splitOnRequest } from './change'
import { checkUndecided, extendByForecast, extendOnRequest } from './extend'
import { forever } from '../forever'
import { reservingOn } from './activities'
import type { ReservationRun } from './run'

/** How a hold ends: `lost` before its time, so that the search begins again; `fresh` only to start a fresh history. */
type HoldEnd = 'over' | 'lost' | 'fresh'

/** Watches a reservation until nothing is held. Money is settled as soon as the payment is certain. */
export async function holdReservation(run: ReservationRun): Promise<HoldEnd> {
  const { page, requests, input } = run
  for (;;) {
    const held = run.held!
    const ref = { id: held.reservation!.id, region: held.reservation!.region }
    const acts = reservingOn(input.wish.backend, 'check the reservation')
    const { rule } = page.status
    const { wish } = input
    const { lookedAtMs } = run
    const elapsed = lookedAtMs === undefined ? {} : { elapsedMs: Date.now() - lookedAtMs }
    const task = { ...run.task(), ref, wish, rule, held, ...elapsed }
    const outcome = await forever(() => acts.holdReservation(task), page)
    run.lookedAtMs = Date.now()
    run.held = outcome.held
    page.trouble(
      outcome.warning === undefined ? undefined : { class: 'unclassified', message: outcome.warning },
    )
    if (outcome.next === 'over') {
      const end = await over(run, held.state, outcome.message)
      tell(run, outcome)
      return end
    }
    // The payment is settled before the reservation is shown as held, because it is certain now.
    if (wish.kind === 'prepaid') await settlePaid(run, held)
    page.move(outcome.held.state, outcome.message, run.figures())
    tell(run, outcome)
    if (outcome.next === 'release') await releaseByRule(run, outcome)
    else {
      if (outcome.isEndNear === true) await extendByForecast(run)
      await run.pause(outcome.lookInMs, 'until the next check of the reservation')
    }
    await checkUndecided(run)
    if (requests.extension !== undefined) await extendOnRequest(run)
    if (requests.resize !== undefined) await resizeOnRequest(run)
    if (requests.split !== undefined) await splitOnRequest(run)
    if (requests.release !== undefined) await releaseOnRequest(run)
    requests.approved = requests.rejected = undefined
    if (run.isLong) return 'fresh'
  }
}

function tell(run: ReservationRun, { news = [] }: HoldOutcome): void {
  for (const { event, text } of news) run.report(event, text)
}

/** Settles the payment of a reservation, or of its extension, once it is certain. */
async function settlePaid(run: ReservationRun, before: HoldState): Promise<void> {
  const { state, extending, upfrontMicroUsd } = run.held!
  // The money that is reserved then is that of an extension in question.
  if (state === 'unpaid' || extending !== undefined || run.page.status.undecided !== undefined) return
  if (before.extending === undefined) return run.settleMoney(upfrontMicroUsd)
  const isPaid = upfrontMicroUsd === before.upfrontMicroUsd
  await run.settleMoney(isPaid ? before.extending.microUsd : 0)
}

/** Payments that may fail before a person must look at them. */
const PAYMENT_FAILURES_MAX = 2

/**
 * Ends the hold. Capacity that was lost before it began is searched for again: its payment failed, or the provider took it back. A
 * reservation that is only no longer listed may still be paid for, so nothing is bought in its place.
 */
async function over(run: ReservationRun, before: ReservationState, message: string): Promise<HoldEnd> {
  const { page } = run
  const question = await lastQuestion(run)
  const { reservation, state, idleMicroUsd, upfrontMicroUsd } = run.held!
  const hasFailed = reservation?.phase === 'failed'
  const isUnpaid = before === 'unpaid' && hasFailed
  const paidMicroUsd = isUnpaid ? 0 : upfrontMicroUsd + idleMicroUsd
  await run.settleMoney(run.held!.extending?.microUsd ?? paidMicroUsd)
  const spentMicroUsd = run.earlierMicroUsd + paidMicroUsd
  if (isUnpaid) run.paymentFailures += 1
  const isLost = hasFailed && (isUnpaid || before === 'scheduled')
  if (isLost && run.paymentFailures < PAYMENT_FAILURES_MAX) {
    run.requests.close(message)
    page.forget('quote', 'decision', 'reservation', 'isAdopted', 'idleSinceMs')
    page.move('searching', `${message} The search begins again.`, { spentMicroUsd })
    run.earlierMicroUsd = spentMicroUsd
    return 'lost'
  }
  const advice = run.paymentFailures < PAYMENT_FAILURES_MAX ? '' : failuresInWords(run)
  page.move(state, `${message}${advice}${question}`, { ...run.figures(), spentMicroUsd })
  return 'over'
}

/** An extension that is in question to the end: its money counts as spent in the month, because it may have been paid. */
async function lastQuestion(run: ReservationRun): Promise<string> {
  await checkUndecided(run, { isLast: true })
  const { undecided } = run.page.status
  if (undecided === undefined) return ''
  const { upfrontMicro } = undecided.order.quote
  await run.settleMoney(upfrontMicro)
  run.page.forget('undecided')
  return ` Whether its extension for ${formatUsd(upfrontMicro)} was bought is unknown: check the bill.`
}

/** Hourly capacity has no payment that could fail: the provider did not have it after all. */
function failuresInWords({ input, paymentFailures }: ReservationRun): string {
  return input.wish.kind === 'hourly'
    ? ` The provider took ${paymentFailures} orders and could not hold them: reserve again later, or elsewhere.`
    : ` ${paymentFailures} payments failed: check the account's means of payment, then reserve again.`
}

async function releaseByRule(run: ReservationRun, { message, lookInMs }: HoldOutcome): Promise<void> {
  try {
    await release(run, { reason: message, chargeMaxMicroUsd: 0 })
    run.report('released', message)
  } catch (error) {
    run.page.trouble(failureFrom(error))
    await run.pause(lookInMs, 'until the reservation may be released')
  }
}

async function releaseOnRequest(run: ReservationRun): Promise<void> {
  const asked = run.requests.release!
  const { by, chargeMaxMicroUsd } = asked.update
  try {
    await release(run, { reason: `${by} asked for it`, chargeMaxMicroUsd })
    asked.done('It is released.')
  } catch (error) {
    asked.refuse(failureFrom(error).message)
  } finally {
    run.requests.release = undefined
  }
}

async function release(
  run: ReservationRun,
  { reason, chargeMaxMicroUsd }: { reason: string; chargeMaxMicroUsd: number },
): Promise<void> {
  const { id, region } = run.held!.reservation!
  const acts = reservingOn(run.input.wish.backend, 'release the reservation')
  run.page.move('releasing', reason)
  await acts.releaseReservation({ ...run.task(), ref: { id, region }, reason, chargeMaxMicroUsd })
  run.held = { ...run.held!, releasedForMs: (run.lookedAtMs ?? Date.now()) - Date.now() }
}
