import {
  ApplicationFailure,
  condition,
  ParentClosePolicy,
  startChild,
  ChildWorkflowFailure,
  type ChildWorkflowHandle,
} from '@temporalio/workflow'
import type { Settlement } from '../../core/activities'
import type { DrainRequest } from '../../core/job/drain'
import { failureFrom } from '../../core/failure'
import type { AttemptEnd } from '../../core/job/ledger'
import {
  ATTEMPT_FAILED,
  DRAIN_SIGNAL,
  EXTEND_SIGNAL,
  type AttemptInput,
  type AttemptOutcome,
  type ExtendRequest,
} from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { attemptWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import type { attempt } from './attempt'
import { local, on } from '../activities'
import { attributesOf } from '../attributes'
import { kept } from '../forever'
import type { JobRun } from './run'
import { plainInMarkdown } from '../../core/markdown'
import { sentence } from '../markdown'
import type { Placed } from './next-order'
import { settleInWindow } from './settlement'

type Child = ChildWorkflowHandle<typeof attempt>

/**
 * Runs one attempt as a child and returns the facts about it. A child that ends without settling (terminated by hand, failed) is settled
 * here, so that the next attempt starts only when nothing of this one runs.
 */
export async function runAttempt(run: JobRun, placed: Placed): Promise<Settlement> {
  const { order, words } = placed
  const { pause } = run
  const input: AttemptInput = {
    order,
    timing: run.resolved.timing,
    pause,
    launchSeq: run.nextSeq(),
    settleSeq: run.nextSeq(),
  }
  run.page.begin(order, words.reasons, pause)
  const settlement = await runChild(run, input, placed).catch((error: unknown) =>
    settleHere(run, input, endSeenFrom(error)),
  )
  run.page.settled(settlement)
  return settlement
}

async function runChild(
  run: JobRun,
  input: AttemptInput,
  { words: { summary, reasons }, limitsVersion }: Placed,
): Promise<Settlement> {
  const { order } = input
  const child: Child = await startChild<typeof attempt>(WORKFLOW_TYPES.attempt, {
    workflowId: attemptWorkflowId(order.jobId, order.attempt),
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
    // However the job closes, it leaves no attempt without its clean-up.
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    typedSearchAttributes: attributesOf({
      name: run.page.status.name,
      owner: run.input.owner,
      state: 'provisioning',
      reason: 'launching',
      backend: `${order.backend}:${order.capacityType}`,
    }),
    staticSummary: plainInMarkdown(`${run.page.status.name}, attempt ${order.attempt}: ${summary}`),
    staticDetails: reasons.map((reason) => `- ${sentence(reason)}`).join('\n'),
  })
  const life = { isOver: false }
  const result = kept(
    child
      .result()
      .catch(outcomeOf)
      .finally(() => (life.isOver = true)),
  )
  const [outcome] = await Promise.all([result, passOn(run, order, { child, life, limitsVersion })])
  return outcome.settlement
}

/** Passes the owner's requests and new limits on to the attempt while it lives. */
async function passOn(
  run: JobRun,
  order: Order,
  { child, life, limitsVersion }: { child: Child; life: { isOver: boolean }; limitsVersion: number },
): Promise<void> {
  const { drains } = run
  let requestsSeen = 0
  let limitsSeen = limitsVersion
  for (let seq = 1; ;) {
    await condition(
      () =>
        life.isOver ||
        (drains.current !== null && drains.version > requestsSeen) ||
        run.limitsVersion > limitsSeen,
    )
    if (life.isOver) return
    if (run.limitsVersion > limitsSeen) {
      limitsSeen = run.limitsVersion
      const limits = run.limitsFor(order, seq++)
      await tell<ExtendRequest>(child, EXTEND_SIGNAL, { limits })
    }
    if (drains.current !== null && drains.version > requestsSeen) {
      requestsSeen = drains.version
      run.page.stopping(drains.current.reason)
      await askToStop(order, { child, request: drains.current })
    }
  }
}

/** A local activity sends the signal, for one event; a workflow signal costs five, and is used if the local activity fails. */
async function askToStop(
  { jobId, attempt }: Order,
  { child, request }: { child: Child; request: DrainRequest },
): Promise<void> {
  try {
    return await local.stopAttempt({ jobId, attempt, request })
  } catch {
    // It may have arrived anyway: a second one changes nothing.
  }
  await tell<DrainRequest>(child, DRAIN_SIGNAL, request)
}

/** An attempt that has just ended needs no signal. */
async function tell<T>(child: Child, signal: string, request: T): Promise<void> {
  try {
    await child.signal<[T]>(signal, request)
  } catch {
    // Its result, or its loss, is on the way.
  }
}

/** The outcome of a child that closed as failed; throws the error of a child that ended without settling. */
function outcomeOf(error: unknown): AttemptOutcome {
  if (error instanceof ChildWorkflowFailure && error.cause instanceof ApplicationFailure) {
    const { type, details } = error.cause
    if (type === ATTEMPT_FAILED) return details![0] as AttemptOutcome
  }
  throw error
}

/** Returns the end of the attempt from a child's failure; null if it contains none, as after a termination by hand. */
function endSeenFrom(error: unknown): AttemptEnd | null {
  const failure = failureFrom(error)
  return failure.class === 'unclassified' ? null : { kind: 'failed', isLaunched: true, failure }
}

/** Settles an attempt that did not. */
function settleHere(run: JobRun, input: AttemptInput, end: AttemptEnd | null): Promise<Settlement> {
  const { order, timing, settleSeq } = input
  const { drains, page } = run
  const requested = (): DrainRequest | null => drains.current
  const windowMs = (): number => requested()?.windowMs ?? timing.drainMs
  return settleInWindow({
    order,
    requested,
    page,
    windowMs: windowMs(),
    settle: () =>
      on(order.backend).ending.settle({
        order,
        timing,
        handle: null,
        end,
        drainReason: requested()?.reason ?? null,
        windowMs: windowMs(),
        recordSeq: settleSeq,
      }),
  })
}
