import { ActivityFailure, sleep, TimeoutFailure } from '@temporalio/workflow'
import type { LaunchOutcome, Settlement } from '../core/activities'
import { failureFrom, type Failure } from '../core/failure'
import type { MachineHandle } from '../core/handle'
import type { AttemptEnd } from '../core/ledger'
import type { AttemptInput } from '../core/messages'
import { affordableMs } from '../core/meter'
import { CLOCK_SLACK_MS } from '../core/time'
import { budgetReserveMs } from '../core/timing'
import { on, orchestrator, starting } from './activities'

/** What became of an order. */
export type Launched =
  | { kind: 'machine'; handle: MachineHandle }
  /** No machine, as far as anybody knows; the settlement makes sure. */
  | { kind: 'nothing'; handle: null; end: AttemptEnd }
  /** The order never reached anybody: settled already. */
  | { kind: 'untouched'; settlement: Settlement }

type Answer = { kind: 'machine'; handle: MachineHandle } | { kind: 'nothing'; handle: null; end: AttemptEnd }

/** Sends the order and settles what came of it. Nothing here judges; an effect whose outcome is unknown is looked for. */
export async function launch(input: AttemptInput): Promise<Launched> {
  const { order, launchSeq } = input
  let outcome: LaunchOutcome
  try {
    outcome = await on(order.backend).launching.launch({ order, recordSeq: launchSeq })
  } catch (error) {
    if (isTimeout(error, 'SCHEDULE_TO_START')) return unserved(input)
    // A timed-out effect is unconfirmed, not failed.
    outcome = isTimeout(error)
      ? { kind: 'unconfirmed', findAfterMs: 0 }
      : { kind: 'refused', failure: failureFrom(error) }
  }
  return outcome.kind === 'unconfirmed' ? look(input, outcome.findAfterMs) : answerOf(outcome)
}

/** Whatever went wrong on the way: the settlement finds out what it left. */
export function failedLaunch(error: unknown): Launched {
  return nothing(failureFrom(error))
}

function answerOf(outcome: Exclude<LaunchOutcome, { kind: 'unconfirmed' }>): Answer {
  return outcome.kind === 'launched' ? { kind: 'machine', handle: outcome.handle } : nothing(outcome.failure)
}

function nothing(failure: Failure): Answer {
  return { kind: 'nothing', handle: null, end: { kind: 'failed', isLaunched: false, failure } }
}

/** Looks for the machine of an order whose answer is lost. Duplicates are ended by the settlement. */
async function look({ order }: AttemptInput, findAfterMs: number): Promise<Answer> {
  let waitMs = findAfterMs
  for (;;) {
    if (waitMs > 0) await sleep(waitMs, { summary: 'until the launch can be looked for' })
    const found = await on(order.backend).verbs.find({ order })
    switch (found.kind) {
      case 'found':
        return { kind: 'machine', handle: found.handles[0]! }
      case 'absent':
        return nothing({ class: 'transient', message: 'The launch was sent, and came to nothing.' })
      case 'unsettled':
        waitMs = found.againInMs
    }
  }
}

/** Nobody serves the backend: no capacity, as far as the job is concerned. */
async function unserved({ order, settleSeq: recordSeq }: AttemptInput): Promise<Launched> {
  const failure: Failure = {
    class: 'capacity',
    message: `No worker serves ${order.backend}.`,
    hint: `Start one: crucible worker ${order.backend}.`,
  }
  const end: AttemptEnd = { kind: 'failed', isLaunched: false, failure }
  const { settlement } = await orchestrator.withdraw({ order, end, recordSeq })
  return settlement === null ? { kind: 'nothing', handle: null, end } : { kind: 'untouched', settlement }
}

/**
 * Asks a machine that was launched without its runner to start it, for as long as a runner may start at all. Unanswered is not
 * refused: it may have started all the same, and the watch tells.
 */
export async function startRunner(
  { order, timing }: AttemptInput,
  handle: MachineHandle,
): Promise<'started' | 'unanswered' | AttemptEnd> {
  const sinceMs = Date.now() - handle.launchedAtMs
  const usefulMs = Math.max(timing.startWithinMs - sinceMs, timing.silenceMs)
  // Of a machine without a runner the watch tells when its money is used up.
  const withinMs = Math.min(usefulMs, paidForMs({ order, timing }) - sinceMs)
  if (withinMs <= 0) return 'unanswered'
  try {
    await starting(order.backend, withinMs).start({ order, handle })
    return 'started'
  } catch (error) {
    const isRefused = error instanceof ActivityFailure && error.retryState === 'NON_RETRYABLE_FAILURE'
    return isRefused ? { kind: 'failed', isLaunched: true, failure: failureFrom(error) } : 'unanswered'
  }
}

/** How long a machine at the dearest price can go on until it must stop for the sake of its budget. */
function paidForMs({ order, timing }: Pick<AttemptInput, 'order' | 'timing'>): number {
  const { budget } = order.runner.limits
  const paidMs = budget === null ? null : affordableMs(budget.microUsd, budget.priceMaxMicroUsdPerHour)
  return paidMs === null ? Infinity : paidMs - budgetReserveMs(timing) - CLOCK_SLACK_MS
}

function isTimeout(error: unknown, type?: TimeoutFailure['timeoutType']): boolean {
  if (!(error instanceof ActivityFailure) || !(error.cause instanceof TimeoutFailure)) return false
  return type === undefined || error.cause.timeoutType === type
}
