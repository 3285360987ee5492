import { ActivityFailure, sleep, TimeoutFailure } from '@temporalio/workflow'
import { failureFrom, type Failure } from '../../core/failure'
import type { OwnedReservation } from '../../core/reservation/reservation'
import { LOOK_PAUSES_MS } from '../../core/reservation/purchase-limits'
import type { BuyCapacityTask, ReservingActivities } from '../../core/reservation/activities'
import { formatDuration, formatInstant } from '../../core/time/time'
import { buying, looking } from './activities'

/** Input of `buyCapacity`: one purchase. It uses up to `PURCHASE_ENTRIES` numbers of the record. */
export interface BuyCapacityInput extends BuyCapacityTask {
  /** Pauses between searches for a purchase with an unknown outcome; `LOOK_PAUSES_MS` if missing. */
  lookPausesMs?: readonly number[]
}

/** Number of record entries for a purchase, more than it and its searches need. */
export const PURCHASE_ENTRIES = 20

/** Result of a purchase. */
export type BuyCapacityResult =
  | { kind: 'reserved'; reservation: OwnedReservation }
  | { kind: 'refused'; failure: Failure }
  /** It was sent, and no list shows it. */
  | { kind: 'undecided'; sentAtMs: number; account: string[]; candidates: OwnedReservation[] }

/**
 * Buys once. Its workflow id names the account and the Region, so that only one purchase runs at a time; the mark in the store ensures that
 * it happens at most once. It never repeats a purchase: an unknown outcome is searched for until it is certain, or becomes a question for a
 * person.
 */
export async function buyCapacity({ lookPausesMs, ...task }: BuyCapacityInput): Promise<BuyCapacityResult> {
  const account: string[] = []
  const outcome = await send(task)
  switch (outcome.kind) {
    case 'reserved':
    case 'refused':
      return outcome
    case 'unconfirmed':
      account.push(
        `${formatInstant(Date.now())}: no certain answer to the purchase: ${outcome.failure.message}`,
      )
  }
  return find(task, account, lookPausesMs ?? LOOK_PAUSES_MS)
}

/** Sends the purchase. A lost answer is not an error, but an unknown outcome. */
async function send(task: BuyCapacityTask): ReturnType<ReservingActivities['buyCapacity']> {
  try {
    return await buying(task.order.backend).buyCapacity(task)
  } catch (error) {
    return { kind: 'unconfirmed', failure: reasonOf(error) }
  }
}

async function find(
  task: BuyCapacityTask,
  account: string[],
  pausesMs: readonly number[],
): Promise<BuyCapacityResult> {
  let last: Extract<BuyCapacityResult, { kind: 'undecided' }> | undefined
  for (const [at, pauseMs] of pausesMs.entries()) {
    if (pauseMs > 0) await sleep(pauseMs, { summary: 'until the purchase can be looked up again' })
    // Retried by Temporal for as long as the provider does not answer.
    const found = await looking(task.order.backend).findPurchase({
      ...task,
      recordSeq: task.recordSeq + 1 + at,
    })
    switch (found.kind) {
      case 'found':
        return { kind: 'reserved', reservation: found.reservation }
      case 'no-effect':
        return { kind: 'refused', failure: found.failure }
      case 'absent':
        account.push(found.saw)
        last = { kind: 'undecided', sentAtMs: found.sentAtMs, account, candidates: found.candidates }
    }
  }
  const lookedForMs = pausesMs.reduce((sum, one) => sum + one, 0)
  account.push(`Looked ${pausesMs.length} times in ${formatDuration(lookedForMs)}.`)
  return last!
}

function reasonOf(error: unknown): Failure {
  if (!(error instanceof ActivityFailure) || !(error.cause instanceof TimeoutFailure))
    return failureFrom(error)
  const message =
    error.cause.timeoutType === 'SCHEDULE_TO_START'
      ? 'No worker took the purchase in time.'
      : 'The worker that sent the purchase was lost, or took too long.'
  return { class: 'unclassified', message }
}
