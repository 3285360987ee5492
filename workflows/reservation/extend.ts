import { defined } from '../../core/defined'
import { failureFrom } from '../../core/failure'
import { formatUsd } from '../../core/money/money'
import {
  boughtUntilMs,
  type CapacityQuote,
  type CapacityRequest,
  type OwnedReservation,
} from '../../core/reservation/reservation'
import type { ExtendReservationUpdate, UndecidedPurchase } from '../../core/reservation/reserving'
import { DAY_MS, formatInstant } from '../../core/time/time'
import { lookForUndecided, send, whatToDecide } from './purchasing'
import { reservationDocuments, reservingOn } from './activities'
import type { ReservationRun } from './run'

interface Extended {
  isBought: boolean
  message: string
}

/** Extends for jobs that would not be done in time. A failure is retried at the next observation. */
export async function extendByForecast(run: ReservationRun): Promise<void> {
  const { page, input } = run
  const { reservation, extendedMicroUsd = 0 } = run.held!
  const { rule, undecided } = page.status
  if (undecided !== undefined) return
  const task = { reservation: reservation!, rule }
  try {
    const acts = reservingOn(input.wish.backend, 'look whether the jobs will be done in time')
    const look = await acts.lookForExtension({ ...run.task(), ...task })
    if (look.jobs.length === 0) return
    const decision = await reservationDocuments.decideExtension({
      ...run.task(),
      ...task,
      extendedMicroUsd,
      look,
    })
    if (decision.kind !== 'extend') return page.update({ message: decision.message })
    const { isBought, message } = await extend(run, decision.durationMs, decision.upfrontMaxMicroUsd)
    page.update(run.figures())
    if (isBought) run.report('extended', `${decision.message} ${message}`)
    else page.trouble({ class: 'unclassified', message })
  } catch (error) {
    page.trouble(failureFrom(error))
  }
}

export async function extendOnRequest(run: ReservationRun): Promise<void> {
  const asked = run.requests.extension!
  try {
    const { isBought, message } = await extendAsAsked(run, asked.update)
    run.page.update(run.figures())
    if (isBought) asked.done(message)
    else asked.refuse(message)
  } catch (error) {
    asked.refuse(failureFrom(error).message)
  } finally {
    run.requests.extension = undefined
  }
}

/** Extends on request. A request that was sent a second time finds the later end, and buys nothing. */
async function extendAsAsked(
  run: ReservationRun,
  { durationMs, endsAtMs, seenEndsAtMs = Infinity, upfrontMaxMicroUsd }: ExtendReservationUpdate,
): Promise<Extended> {
  const { reservation, extendedToMs = 0 } = run.held!
  const boughtToMs = Math.max(extendedToMs, boughtUntilMs(reservation!) ?? 0)
  if (boughtToMs > seenEndsAtMs || (endsAtMs ?? Infinity) <= boughtToMs)
    return {
      isBought: true,
      message: `It is already extended: ${reservation!.id} ends ${formatInstant(boughtToMs)}. Nothing more was bought.`,
    }
  return extend(run, endsAtMs === undefined ? durationMs! : endsAtMs - boughtToMs, upfrontMaxMicroUsd)
}

/** Extends a reservation, once. Returns a sentence; throws only errors of Temporal. */
async function extend(
  run: ReservationRun,
  durationMs: number,
  upfrontMaxMicroUsd: number,
): Promise<Extended> {
  const { page, input, held } = run
  const { id, region, kind, type, total: count } = held!.reservation!
  if (held!.extending !== undefined)
    return { isBought: false, message: `The last extension of ${id} is not paid yet: ask again then.` }
  if (page.status.undecided !== undefined)
    return { isBought: false, message: inQuestion(page.status.undecided) }
  const { backend } = input.wish
  // The reservation may be larger than requested, and its new end is later than any requested one.
  const wish: CapacityRequest = { backend, kind, types: [type], count, durationMs, extends: { id, region } }
  const rule = { upfrontMaxMicroUsd, unaskedMaxMicroUsd: upfrontMaxMicroUsd }
  const verdict = await reservingOn(wish.backend, 'look for an extension').lookForCapacity({
    ...run.task(),
    wish,
    rule,
    isFirst: true,
    sends: run.sends,
  })
  await run.passed(verdict.sends)
  if (verdict.kind !== 'buy' && verdict.kind !== 'resume') {
    const [nearest] = verdict.alternatives
    const why = nearest === undefined ? 'none is for sale' : nearest.refusal
    return { isBought: false, message: `${id} was not extended: ${why ?? verdict.message}.` }
  }
  // A purchase of an earlier history is resumed instead.
  const order = verdict.kind === 'resume' ? verdict.order : run.order(verdict.judged.quote)
  const refusal = await run.promiseMoney(order, order.quote.upfrontMicro)
  if (refusal !== undefined) return { isBought: false, message: refusal }
  run.sends = order.send
  const result = await send(run, order, verdict.account)
  switch (result.kind) {
    case 'reserved':
      return bought(run, order.quote, result.reservation)
    case 'refused':
      await run.settleMoney(0)
      return { isBought: false, message: result.failure.message }
    case 'undecided': {
      const { sentAtMs, account, candidates } = result
      const undecided = { order, sentAtMs, account, candidates, lookedAtMs: Date.now() }
      page.update({ undecided })
      run.report('undecided', whatToDecide(undecided))
      return { isBought: false, message: inQuestion(undecided) }
    }
  }
}

function inQuestion({ order: { quote, intent } }: UndecidedPurchase): string {
  return (
    `An extension of ${quote.extends} for ${formatUsd(quote.upfrontMicro)} was sent, and it is unknown whether it was bought. ` +
    `A person must decide: see crucible reservations show ${intent}.`
  )
}

async function bought(
  run: ReservationRun,
  { upfrontMicro: microUsd, endsAtMs: toMs }: CapacityQuote,
  { id, extension }: OwnedReservation,
): Promise<Extended> {
  const { upfrontMicroUsd, extendedMicroUsd = 0 } = run.held!
  run.held = {
    ...run.held!,
    upfrontMicroUsd: upfrontMicroUsd + microUsd,
    extendedMicroUsd: extendedMicroUsd + microUsd,
    ...defined({ extendedToMs: toMs }),
  }
  if (extension?.phase === 'unpaid') {
    const { endsAtMs, boughtAtMs } = extension
    run.held.extending = { microUsd, endsAtMs, boughtAtMs }
  } else await run.settleMoney(microUsd)
  return {
    isBought: true,
    message: `${id} is extended to ${formatInstant(toMs!)}, once ${formatUsd(microUsd)} are paid.`,
  }
}

/**
 * Checks whether an undecided extension was bought: when a person says so, when a list shows its end, and once a day. The hold continues
 * meanwhile.
 */
export async function checkUndecided(run: ReservationRun, { isLast = false } = {}): Promise<void> {
  const { page, requests } = run
  const { undecided } = page.status
  if (undecided === undefined) return
  const { quote } = undecided.order
  const isShown = (boughtUntilMs(run.held!.reservation!) ?? 0) >= quote.endsAtMs!
  const isDue = isLast || isShown || Date.now() - (undecided.lookedAtMs ?? 0) >= DAY_MS
  if (!isDue && requests.decision === undefined) return
  undecided.lookedAtMs = Date.now()
  const result = await lookForUndecided(run, undecided)
  if (result === undefined) return
  page.forget('undecided')
  if (result.kind === 'reserved') await bought(run, quote, result.reservation)
  else await run.settleMoney(0)
  page.update(run.figures())
}
