import { ActivityFailure, sleep, TimeoutFailure } from '@temporalio/workflow'
import type { LaunchOutcome, Settlement } from '../../core/activities'
import { paidForMs, startReserveMs } from '../../core/money/budget'
import { failureFrom, type Failure } from '../../core/failure'
import type { MachineHandle } from '../../core/handle'
import type { AttemptEnd } from '../../core/job/ledger'
import type { AttemptInput } from '../../core/messages'
import { on, orchestrator, starting } from '../activities'
import type { AttemptCommands } from './attempt-commands'
import { launchInTurn } from './launch-in-turn'

/** The outcome of an order. */
export type Launched =
  | { kind: 'machine'; handle: MachineHandle }
  /** No known machine; the settlement makes sure. */
  | { kind: 'nothing'; handle: null; end: AttemptEnd }
  /** The order was never sent: settled already. */
  | { kind: 'untouched'; settlement: Settlement }

type Answer = { kind: 'machine'; handle: MachineHandle } | { kind: 'nothing'; handle: null; end: AttemptEnd }

/**
 * Sends the order and determines its outcome. It contains no policy; an effect with an unknown outcome is looked up.
 * @param commands a request to stop calls off an order that still waits for its turn
 */
export async function launch(
  input: AttemptInput,
  commands: Pick<AttemptCommands, 'drain'>,
): Promise<Launched> {
  const { order, launchSeq } = input
  let outcome: LaunchOutcome
  try {
    const answer = await (order.isPaced === true
      ? launchInTurn(input, commands)
      : on(order.backend).launching.launch({ order, recordSeq: launchSeq }))
    if (answer.kind === 'unserved') return unserved(input)
    if (answer.kind === 'called-off') return withdraw(input, { kind: 'stopped', by: answer.by })
    outcome = answer
  } catch (error) {
    if (isTimeout(error, 'SCHEDULE_TO_START')) return unserved(input)
    // A timed-out effect is unconfirmed, not failed.
    outcome = isTimeout(error)
      ? { kind: 'unconfirmed', findAfterMs: 0 }
      : { kind: 'refused', failure: failureFrom(error) }
  }
  return outcome.kind === 'unconfirmed' ? look(input, outcome.findAfterMs) : answerOf(outcome)
}

/** Returns the outcome of a failed launch; after any error on the way, the settlement finds leftovers. */
export function failedLaunch(error: unknown): Launched {
  return nothing(failureFrom(error))
}

function answerOf(outcome: Exclude<LaunchOutcome, { kind: 'unconfirmed' }>): Answer {
  return outcome.kind === 'launched' ? { kind: 'machine', handle: outcome.handle } : nothing(outcome.failure)
}

function nothing(failure: Failure): Answer {
  return { kind: 'nothing', handle: null, end: { kind: 'failed', isLaunched: false, failure } }
}

/** Finds the machine of an order whose answer is lost. The settlement ends duplicates. */
async function look({ order }: AttemptInput, findAfterMs: number): Promise<Answer> {
  let waitMs = findAfterMs
  for (;;) {
    if (waitMs > 0) await sleep(waitMs, { summary: 'until the launch can be looked up' })
    const found = await on(order.backend).verbs.find({ order })
    switch (found.kind) {
      case 'found':
        return { kind: 'machine', handle: found.handles[0]! }
      case 'absent':
        return nothing({ class: 'transient', message: 'The launch was sent, but produced no machine.' })
      case 'unsettled':
        waitMs = found.againInMs
    }
  }
}

/** No worker of the backend has taken the order: for the job, that is missing capacity. */
function unserved(input: AttemptInput): Promise<Launched> {
  const { backend } = input.order
  const failure: Failure = {
    class: 'capacity',
    message: `No worker of ${backend} has taken the order: none is running, or all are busy.`,
    hint: `Start one: \`crucible worker ${backend}\`.`,
  }
  return withdraw(input, { kind: 'failed', isLaunched: false, failure })
}

/** Takes back an order that was probably not sent; otherwise the settlement finds its machine. */
async function withdraw({ order, settleSeq: recordSeq }: AttemptInput, end: AttemptEnd): Promise<Launched> {
  const { settlement } = await orchestrator.withdraw({ order, end, recordSeq })
  return settlement === null ? { kind: 'nothing', handle: null, end } : { kind: 'untouched', settlement }
}

/**
 * Asks a machine that was launched without its runner to start it, while a runner may still start. No answer is not a refusal: the runner
 * may have started anyway, which the watch shows.
 * @param beganAtMs start of the machine's time: its launch, or the end of its wait in the provider's queue
 * @internal A test starts it outside a workflow.
 */
export async function startRunner(
  { order, timing }: AttemptInput,
  handle: MachineHandle,
  beganAtMs: number,
): Promise<'started' | 'unanswered' | AttemptEnd> {
  const sinceMs = Date.now() - beganAtMs
  const usefulMs = Math.max(timing.startWithinMs - sinceMs, timing.silenceMs)
  // For a machine without a runner, the watch reports when its money is used up.
  const paidMs = paidForMs(order.runner.limits.budget) - startReserveMs(timing)
  const withinMs = Math.min(usefulMs, paidMs - sinceMs)
  if (withinMs <= 0) return 'unanswered'
  try {
    await starting(order.backend, withinMs).start({ order, handle })
    return 'started'
  } catch (error) {
    const isRefused = error instanceof ActivityFailure && error.retryState === 'NON_RETRYABLE_FAILURE'
    return isRefused ? { kind: 'failed', isLaunched: true, failure: failureFrom(error) } : 'unanswered'
  }
}

/** The starts of a machine's runner. Repeated if it never reports: harmless if it runs, and a fix if it never did. */
export class RunnerStarts {
  left: number
  private beganAtMs: number

  constructor(
    private readonly input: AttemptInput,
    private readonly handle: MachineHandle,
  ) {
    this.left = input.order.runnerStart === 'with-launch' ? 0 : 2
    this.beganAtMs = handle.launchedAtMs
  }

  /** Starts it, if a start is left. Returns how the attempt ended if it cannot be started. */
  async next(beganAtMs = this.beganAtMs): Promise<AttemptEnd | null> {
    this.beganAtMs = beganAtMs
    if (this.left === 0) return null
    const answer = await startRunner(this.input, this.handle, beganAtMs)
    this.left = answer === 'started' ? this.left - 1 : 0
    return typeof answer === 'string' ? null : answer
  }
}

function isTimeout(error: unknown, type?: TimeoutFailure['timeoutType']): boolean {
  if (!(error instanceof ActivityFailure) || !(error.cause instanceof TimeoutFailure)) return false
  return type === undefined || error.cause.timeoutType === type
}
