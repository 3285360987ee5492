import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import { ChildWorkflowFailure, executeChild } from '@temporalio/workflow'
import { defined } from '../../core/defined'
import { formatUsd } from '../../core/money/money'
import { failureFrom, type Failure } from '../../core/failure'
import { buyerWorkflowId, terminateCommand, WORKFLOW_TYPES } from '../../core/queues'
import type { ReservationOrder } from '../../core/reservation/reservation'
import type { UndecidedPurchase } from '../../core/reservation/reserving'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { PURCHASE_ENTRIES, type BuyCapacityInput, type BuyCapacityResult } from './buy-capacity'
import { looking, reservingOn } from './activities'
import type { ReservationRun } from './run'

/**
 * Pauses before the next try while another purchase of the same account and Region is made, or the purchase cannot be seen through. It may
 * last for as long as the provider is silent or credentials have expired, so tries become rare enough for a year in one history.
 */
function buyerPauseMs(tries: number): number {
  if (tries < 30) return 20 * SECOND_MS
  if (tries < 90) return MINUTE_MS
  return tries < 300 ? 10 * MINUTE_MS : 6 * HOUR_MS
}

/** Two minutes: most purchases are made or refused within seconds. */
const TRIES_UNTOLD = 6

/** The end of the other workflow loses no purchase: the next one finds its mark. */
function busy(workflowId: string): Failure {
  const message = `Another workflow has the id ${workflowId}, under which this account buys. If it does not end, nothing is bought until you end it: ${terminateCommand(workflowId)}.`
  return { class: 'transient', message }
}

/** Certain outcome of a purchase. */
type Decided = Exclude<BuyCapacityResult, { kind: 'undecided' }>

/** Sends a purchase through the only buyer of the account in this Region. */
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
          // The purchase continues even if its reservation ends.
          parentClosePolicy: 'ABANDON',
          staticSummary: `purchase ${order.send} for ${order.intent}`,
        },
      )
    } catch (error) {
      // Terminated or failed: the next one finds the mark, and does not send.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError || error instanceof ChildWorkflowFailure))
        throw error
      if (error instanceof ChildWorkflowFailure) page.trouble(failureFrom(error))
      else if (tries >= TRIES_UNTOLD) page.trouble(busy(workflowId))
    }
    await page.retries.pause(buyerPauseMs(tries), {
      summary: 'another purchase in this account is in progress',
    })
    page.trouble(undefined)
  }
}

/** Waits for a person, and looks every day whether the purchase has shown after all. */
export async function decision(run: ReservationRun, undecided: UndecidedPurchase): Promise<Decided> {
  const { page, requests } = run
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
    const result = await lookForUndecided(run, undecided)
    if (result !== undefined) return result
  }
}

/** Searches once for the purchase, or checks a person's decision. Undefined if the outcome is still unknown. */
export async function lookForUndecided(
  run: ReservationRun,
  undecided: UndecidedPurchase,
): Promise<Decided | undefined> {
  const { page, requests, input } = run
  const { order } = undecided
  const { decision: asked } = requests
  const update = asked?.update
  const ownedId = update?.kind === 'bought' ? update.reservationId : null
  try {
    const found =
      update === undefined
        ? await looking(order.backend).findPurchase({ ...run.task(), order, rule: input.rule })
        : await reservingOn(order.backend, 'check the outcome of the purchase').decidePurchase({
            ...run.task(),
            order,
            by: update.by,
            ownedId,
          })
    if (found.kind === 'absent') {
      undecided.account.push(found.saw)
      undecided.candidates = found.candidates
      page.update({ undecided })
      return undefined
    }
    const isExtension = order.quote.extends !== undefined
    const nothing = isExtension ? 'Its end does not change.' : 'The search continues.'
    const words = found.kind === 'found' ? `It is ${found.reservation.id}.` : `Nothing was bought. ${nothing}`
    asked?.done(words)
    // The search found the outcome before the person's decision was needed; decisions that were answered stand.
    requests.decision?.refuse(`The outcome is already known. ${words}`)
    requests.decision = undefined
    return found.kind === 'found'
      ? { kind: 'reserved', reservation: found.reservation }
      : { kind: 'refused', failure: found.failure }
  } catch (error) {
    const failure: Failure = failureFrom(error)
    if (asked === undefined) page.trouble(failure)
    else asked.refuse(failure.message)
    return undefined
  } finally {
    // A decision that came during the search is still to be checked.
    if (requests.decision === asked) requests.decision = undefined
  }
}

export function whatToDecide({ order }: UndecidedPurchase): string {
  const { quote, intent } = order
  return (
    `Purchase ${order.send} of ${quote.count} × ${quote.type} for ${formatUsd(quote.upfrontMicro)} was sent, and it is unknown whether it was made. ` +
    `Nothing else is bought meanwhile. Check the account's reservations and bill, then: crucible reservations decide ${intent} --bought RESERVATION, or --not-bought.`
  )
}
