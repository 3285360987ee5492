import { allHandlersFinished, CancellationScope, condition, continueAsNew } from '@temporalio/workflow'
import type { MicroUsd } from '../../core/money/money'
import type { CapacityQuote, OwnedReservation, ReservationOrder } from '../../core/reservation/reservation'
import type { ReservationInput, ReservationResult } from '../../core/reservation/reserving'
import type { CapacityVerdict } from '../../core/reservation/activities'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type { BuyCapacityResult } from './buy-capacity'
import { forever } from '../forever'
import { holdReservation } from './hold'
import { decision, send } from './purchasing'
import { reservationDocuments, reservingOn } from './activities'
import { ReservationRun } from './run'

/** Interval of searches while an offer waits for approval, because it may be sold meanwhile. */
const APPROVAL_LOOK_MS = HOUR_MS
/** Pause after a refused purchase, because the capacity for sale has changed. */
const REFUSED_LOOK_MS = MINUTE_MS

/**
 * Manages capacity from request to end: search, approval, one purchase, hold, and end. It ends as `unavailable` or `rejected` if nothing
 * was bought.
 */
export async function reserveCapacity(input: ReservationInput): Promise<ReservationResult> {
  const run = new ReservationRun(input)
  return CancellationScope.nonCancellable(async () => {
    for (;;) {
      if (run.held === undefined) {
        const reservation = await acquire(run)
        if (reservation === undefined) break
        const { isAdopted, quote } = run.page.status
        const upfrontMicroUsd =
          isAdopted === true ? 0 : (reservation.upfrontMicroUsd ?? quote?.quote.upfrontMicro ?? 0)
        run.lookedAtMs = undefined
        run.held = {
          state: ['scheduled', 'active'].includes(reservation.phase) ? 'scheduled' : 'unpaid',
          reservation: {
            ...reservation,
            idleMicroUsdPerHour: reservation.idleMicroUsdPerHour ?? priceOf(quote?.quote),
          },
          upfrontMicroUsd,
          idleMicroUsd: 0,
          idleMs: 0,
          misses: 0,
        }
      }
      const next = await holdReservation(run)
      if (next === 'over') break
      if (next === 'fresh') await continueFresh(run)
      else run.held = undefined
    }
    return finish(run)
  })
}

/** Hourly price of an unused machine, for a provider that does not report it at the sale. */
function priceOf(quote: CapacityQuote | undefined): MicroUsd | undefined {
  return quote?.kind === 'hourly' ? Math.ceil(quote.perHourMicro / quote.count) : undefined
}

/** Searches until capacity is held; `undefined` once the search is over. */
async function acquire(run: ReservationRun): Promise<OwnedReservation | undefined> {
  const { page, requests } = run
  for (;;) {
    // The first look shows whether an earlier history has bought something.
    if (requests.rejected !== undefined && !run.isFirstLook()) {
      const { by, reason } = requests.rejected
      const message = `Rejected by ${by}${reason === undefined ? '' : `: ${reason}`}. Nothing was bought.`
      page.move('rejected', message, {
        decision: { kind: 'rejected', by, atMs: Date.now(), reason },
      })
      return undefined
    }
    const verdict = await look(run)
    page.update({ alternatives: verdict.alternatives })
    // An approval ends when its offer is no longer for sale.
    if (['ask', 'wait'].includes(verdict.kind) && requests.approved === undefined) page.forget('decision')
    switch (verdict.kind) {
      case 'resume': {
        const { order } = verdict
        page.move('buying', verdict.message)
        run.tookPlace(order, order.quote.upfrontMicro)
        const found = await settled(run, order, await send(run, order, verdict.account))
        if (found !== undefined) return found
        break
      }
      case 'adopt': {
        const { send, month, reservation, message } = verdict
        page.move(send === undefined ? 'scheduled' : 'unpaid', message, {
          reservation,
          isAdopted: send === undefined ? (true as const) : undefined,
        })
        if (send !== undefined) run.tookPlace({ send, month }, reservation.upfrontMicroUsd ?? 0)
        return reservation
      }
      case 'give-up':
        page.move(verdict.isInvalid === true ? 'failed' : 'unavailable', verdict.message)
        return undefined
      case 'wait':
        page.forget('quote')
        page.move('searching', verdict.message)
        await run.pause(verdict.lookInMs, 'until the next search for capacity')
        break
      case 'ask':
        run.ask(verdict.judged, verdict.message)
        await run.pause(Math.min(verdict.lookInMs, APPROVAL_LOOK_MS), 'waiting for approval')
        break
      case 'buy': {
        const bought = await buy(run, verdict)
        if (bought !== undefined) return bought
      }
    }
    await continueFresh(run)
  }
}

/** Searches once. A person's approval counts for one search: if that offer is gone, another one needs another approval. */
async function look(run: ReservationRun): Promise<CapacityVerdict> {
  const { page, requests, input } = run
  const { approved } = requests
  const { wish, rule } = input
  const task = {
    isFirst: run.isFirstLook(),
    ...run.task(),
    wish,
    rule,
    sends: run.sends,
    approved,
    earlierMicroUsd: run.earlierMicroUsd || undefined,
  }
  const verdict = await forever(
    () => reservingOn(wish.backend, 'look for capacity').lookForCapacity(task),
    page,
  )
  // An approval that came during the search counts for the next.
  if (requests.approved === approved) requests.approved = undefined
  await run.passed(verdict.sends)
  return verdict
}

/** Makes one purchase of the found quote. `undefined`: nothing was bought, and the search continues. */
async function buy(
  run: ReservationRun,
  verdict: Extract<CapacityVerdict, { kind: 'buy' | 'ask' }>,
): Promise<OwnedReservation | undefined> {
  const { page, input } = run
  const { quote } = verdict.judged
  // The number is final once the money is promised, so that the numbers of purchases have no gaps.
  const order = run.order(quote)
  const microUsd = quote.kind === 'hourly' ? (input.rule.spendMaxMicroUsd ?? 0) : quote.upfrontMicro
  const refusal = await run.promiseMoney(order, microUsd)
  if (refusal !== undefined) {
    page.trouble({ class: 'quota', message: refusal })
    page.move('searching', 'An offer was found, and no budget allows it.')
    await run.pause(verdict.lookInMs, 'until the budget may allow it')
    return undefined
  }
  // Rejected since the look: no send was begun, and the next look ends the search.
  if (run.requests.rejected !== undefined) {
    await run.settleMoney(0)
    return undefined
  }
  run.sends = order.send
  page.trouble(undefined)
  page.move('buying', verdict.message, { quote: verdict.judged })
  const result = await send(run, order, verdict.account)
  return settled(run, order, result)
}

async function settled(
  run: ReservationRun,
  order: ReservationOrder,
  result: BuyCapacityResult,
): Promise<OwnedReservation | undefined> {
  const { page } = run
  switch (result.kind) {
    case 'reserved':
      page.forget('undecided')
      page.move('unpaid', `Bought: ${result.reservation.id}.`, { reservation: result.reservation })
      return result.reservation
    case 'refused':
      page.forget('undecided', 'quote', 'decision')
      page.move('searching', `It was not bought: ${result.failure.message}`)
      await run.settleMoney(0)
      await run.pause(REFUSED_LOOK_MS, 'until the next search for capacity')
      return undefined
    case 'undecided': {
      const { sentAtMs, account, candidates } = result
      const decided = await decision(run, { order, sentAtMs, account, candidates })
      return settled(run, order, decided)
    }
  }
}

/** Starts a fresh history for a request that waits for months. Requests of people that arrive meanwhile are completed first. */
async function continueFresh(run: ReservationRun): Promise<void> {
  if (!run.isLong) return
  const isAsked = (): boolean => run.requests.isAny
  await Promise.race([run.told(), condition(isAsked)])
  await condition(() => allHandlersFinished() || isAsked())
  if (isAsked()) return
  await continueAsNew<typeof reserveCapacity>({ ...run.input, carry: run.carry() })
}

async function finish(run: ReservationRun): Promise<ReservationResult> {
  const { page } = run
  page.update({ endedAtMs: Date.now() })
  run.requests.close(`The reservation is over (${page.status.state}).`)
  const { id, state, message, reservation, spentMicroUsd, idleMicroUsd } = page.status
  await forever(
    () => reservationDocuments.endReservation({ ...run.task(), status: page.status, sends: run.sends }),
    page,
  )
  await run.told()
  await condition(allHandlersFinished)
  return {
    id,
    state,
    message,
    spentMicroUsd,
    idleMicroUsd,
    reservation,
  }
}
