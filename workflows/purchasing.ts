import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import { ChildWorkflowFailure, executeChild } from '@temporalio/workflow'
import { defined } from '../core/defined'
import { formatUsd } from '../core/money'
import { failureFrom, type Failure } from '../core/failure'
import { buyerWorkflowId, WORKFLOW_TYPES } from '../core/queues'
import type { CapacityWish, OwnedReservation, ReservationOrder } from '../core/reservation'
import type { UndecidedPurchase } from '../core/reserving'
import { DAY_MS, formatInstant, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time'
import { PURCHASE_ENTRIES, type BuyCapacityInput, type BuyCapacityResult } from './buy-capacity'
import { looking, reservingOn } from './reservation-activities'
import type { ReservationRun } from './reservation-run'

/**
 * Pauses before the next try while another purchase of the same account and Region is made, or the purchase cannot be seen through. It may
 * last for as long as the provider is silent or credentials have expired, so tries become rare enough for a year in one history.
 */
function buyerPauseMs(tries: number): number {
  if (tries < 30) return 20 * SECOND_MS
  if (tries < 90) return MINUTE_MS
  return tries < 300 ? 10 * MINUTE_MS : 6 * HOUR_MS
}

/** By the only buyer of the account in this Region. */
export async function send(
  run: ReservationRun,
  order: ReservationOrder,
  account: string,
): Promise<BuyCapacityResult> {
  const { page, input } = run
  const { backend, quote } = order
  const workflowId = buyerWorkflowId({ backend, account, region: quote.region })
  const args: BuyCapacityInput = { ...run.task(PURCHASE_ENTRIES), order, rule: input.rule }
  for (let tries = 0; ; tries++) {
    try {
      return await executeChild<(input: BuyCapacityInput) => Promise<BuyCapacityResult>>(
        WORKFLOW_TYPES.buyCapacity,
        {
          workflowId,
          args: [{ ...args, ...defined({ lookPausesMs: input.lookPausesMs }) }],
          // A purchase under way is seen through, whatever becomes of the wish.
          parentClosePolicy: 'ABANDON',
          staticSummary: `purchase ${order.send} for ${order.intent}`,
        },
      )
    } catch (error) {
      // Terminated or failed: the next one finds the mark, and does not send.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError || error instanceof ChildWorkflowFailure))
        throw error
      if (error instanceof ChildWorkflowFailure) page.trouble(failureFrom(error))
    }
    await page.retries.pause(buyerPauseMs(tries), {
      summary: 'another purchase in this account is under way',
    })
    page.trouble(undefined)
  }
}

/** Waits for a person, and looks every day whether the purchase has shown after all. */
export async function decision(
  run: ReservationRun,
  undecided: UndecidedPurchase,
): Promise<BuyCapacityResult> {
  const { page, requests, input } = run
  const { order } = undecided
  page.move(
    'undecided',
    'A purchase was sent, and it is unknown whether it was made. A person must decide.',
    { undecided },
  )
  run.report('undecided', whatToDecide(undecided))
  for (;;) {
    await page.retries.pause(DAY_MS, {
      summary: 'a person must decide',
      isOver: () => requests.decision !== undefined,
    })
    const { decision: asked } = requests
    const update = asked?.update
    const ownedId = update?.kind === 'bought' ? update.reservationId : null
    try {
      const found =
        update === undefined
          ? await looking(order.backend).findPurchase({ ...run.task(), order, rule: input.rule })
          : await reservingOn(order.backend, 'check what became of the purchase').decidePurchase({
              ...run.task(),
              order,
              by: update.by,
              ownedId,
            })
      if (found.kind === 'absent') {
        undecided.account.push(found.saw)
        undecided.candidates = found.candidates
        page.update({ undecided })
        continue
      }
      const words =
        found.kind === 'found'
          ? `It is ${found.reservation.id}.`
          : 'Nothing was bought; the search continues.'
      asked?.done(words)
      // One that came during a look that has found it out itself.
      if (requests.decision !== asked) {
        requests.decision?.refuse(`That is known meanwhile. ${words}`)
        requests.decision = undefined
      }
      return found.kind === 'found'
        ? { kind: 'reserved', reservation: found.reservation }
        : { kind: 'refused', failure: found.failure }
    } catch (error) {
      const failure: Failure = failureFrom(error)
      if (asked === undefined) page.trouble(failure)
      else asked.refuse(failure.message)
    } finally {
      // One that came during the look is still to be checked.
      if (requests.decision === asked) requests.decision = undefined
    }
  }
}

function whatToDecide({ order }: UndecidedPurchase): string {
  const { quote, intent } = order
  return (
    `Purchase ${order.send} of ${quote.count} × ${quote.type} for ${formatUsd(quote.upfrontMicro)} was sent, and it is unknown whether it was made. ` +
    `Nothing else is bought meanwhile. Look at the account's reservations and bill, then: crucible reservations decide ${intent} --bought RESERVATION, or --not-bought.`
  )
}

/** Prolongs what is held, once. Returns a sentence; throws nothing but what Temporal throws. */
export async function extend(
  run: ReservationRun,
  durationMs: number,
  upfrontMaxMicroUsd: number,
): Promise<{ isBought: boolean; message: string }> {
  const { page, input, held } = run
  const { id, region, kind, type, total: count } = held!.reservation!
  if (held!.extending !== undefined)
    return { isBought: false, message: `The last extension of ${id} is not paid yet: ask again then.` }
  const { backend } = input.wish
  // What is held may be larger than what was wished for, and its new end is later than any that was.
  const wish: CapacityWish = { backend, kind, types: [type], count, durationMs, extends: { id, region } }
  const rule = { upfrontMaxMicroUsd, unaskedMaxMicroUsd: upfrontMaxMicroUsd }
  const before = page.status.state
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
    return { isBought: false, message: `${id} was not prolonged: ${why ?? verdict.message}.` }
  }
  // One that an earlier history has sent is seen through instead.
  const order = verdict.kind === 'resume' ? verdict.order : run.order(verdict.judged.quote)
  const { quote } = order
  const refusal = await run.promiseMoney(order.send, quote.upfrontMicro)
  if (refusal !== undefined) return { isBought: false, message: refusal }
  run.sends = order.send
  const result = await send(run, order, verdict.account)
  const bought = result.kind === 'refused' ? undefined : await settledExtension(run, order, result)
  page.move(before, page.status.message)
  if (bought === undefined) {
    await run.settleMoney(0)
    return {
      isBought: false,
      message: result.kind === 'refused' ? result.failure.message : 'It was not bought.',
    }
  }
  const { upfrontMicro: microUsd } = quote
  const { extension } = bought
  const { upfrontMicroUsd, extendedMicroUsd = 0 } = run.held!
  run.held = {
    ...run.held!,
    upfrontMicroUsd: upfrontMicroUsd + microUsd,
    extendedMicroUsd: extendedMicroUsd + microUsd,
  }
  if (extension?.phase === 'unpaid') {
    const { endsAtMs, boughtAtMs } = extension
    run.held.extending = { microUsd, endsAtMs, ...defined({ boughtAtMs }) }
  } else await run.settleMoney(microUsd)
  return {
    isBought: true,
    message: `${id} is prolonged to ${formatInstant(quote.endsAtMs!)}, once ${formatUsd(quote.upfrontMicro)} are paid.`,
  }
}

async function settledExtension(
  run: ReservationRun,
  order: ReservationOrder,
  result: Exclude<BuyCapacityResult, { kind: 'refused' }>,
): Promise<OwnedReservation | undefined> {
  if (result.kind === 'reserved') return result.reservation
  const { sentAtMs, account, candidates } = result
  const decided = await decision(run, { order, sentAtMs, account, candidates })
  run.page.forget('undecided')
  return decided.kind === 'reserved' ? decided.reservation : undefined
}
