import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  log,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow'
import type { DecideInput, Settlement } from '../../core/activities'
import { leftOfBudget } from '../../core/money/budget'
import { failureFrom, inWords, isNotAllowed, isOfOtherHistory } from '../../core/failure'
import type { Decision } from '../../core/job/ledger'
import { JOB_FAILED_LOG, type JobInput, type JobResult } from '../../core/messages'
import { offerKey, placeKey } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { decide, orchestrator } from '../activities'
import { copyCheckpoint } from './copy-checkpoint'
import { runAttempt } from './run-attempt'
import { forever } from '../forever'
import { listen } from './commands'
import { JobRun } from './run'
import { nextOrder } from './next-order'

type Finish = Extract<Decision, { kind: 'finish' }>

/**
 * Runs a job from submission to end: resolve, then plan, attempt, settle and decide until it is finished. Cancellation is a request like
 * the others: the running attempt saves and stops first.
 */
export async function job(input: JobInput): Promise<JobResult> {
  const run = new JobRun(input)
  listen(run)
  return CancellationScope.nonCancellable(async () => {
    const { end, settlement } = await live(run).catch(lastWord)
    return finish(run, end, settlement)
  })
}

/** End of a job, with the settlement of its last attempt if it had one. */
interface Ending {
  end: Finish
  settlement?: Settlement
}

async function live(run: JobRun): Promise<Ending> {
  const refusal = await resolve(run)
  if (refusal !== undefined) return { end: refusal }
  run.armDeadline()
  const end = await copyCheckpoint(run)
  if (end !== undefined) return { end }
  for (;;) {
    const next = await nextOrder(run)
    if (next.kind === 'finish') return { end: next }
    const settlement = await runAttempt(run, next)
    const decision = await decideNext(run, next.order, settlement)
    if (decision.kind === 'finish') return { end: decision, settlement }
    run.goOn(decision)
    await continueFresh(run)
  }
}

/**
 * Errors that would close the workflow silently finish the job instead: its record is completed, its secrets are deleted and its
 * reserved money is released. A bug in our code does not close a workflow: a worker with corrected code continues it. A job that is over
 * already has all that.
 */
function lastWord(error: unknown): Ending {
  if (!(error instanceof TemporalFailure) || isNotAllowed(error)) throw error
  const words = inWords(failureFrom(error))
  const message = isOfOtherHistory(error) ? words : `Internal error: ${words}`
  return { end: { kind: 'finish', state: 'failed', reason: 'unclassified', message } }
}

/** Has a worker check the spec, unless an earlier run has done it. Returns why the job cannot run, if it cannot. */
async function resolve(run: JobRun): Promise<Finish | undefined> {
  if (run.isResolved) return undefined
  return forever(async () => {
    try {
      run.resolved = await orchestrator.resolveJob(run.input)
      return undefined
    } catch (error) {
      if (isNotAllowed(error)) throw error
      const failure = failureFrom(error)
      const reason = REFUSALS.find((known) => known === failure.class)
      if (reason === undefined) throw error
      return { kind: 'finish', state: 'failed', reason, message: inWords(failure) }
    }
  }, run.page)
}

/** Failures that are about the job itself. */
const REFUSALS = ['auth', 'invalid', 'quota'] as const

async function decideNext(run: JobRun, order: Order, settlement: Settlement): Promise<Decision> {
  const { handle } = settlement
  const { decision, ledger } = await decide(run.page, {
    jobId: run.input.jobId,
    recordSeq: run.nextSeq(),
    attempt: order.attempt,
    end: settlement.end,
    drainReason: run.drains.current?.reason ?? null,
    offerKeys: order.offers.map(offerKey),
    machine: handle === null ? undefined : keysOf({ ...handle.realised, backend: order.backend }),
    ledger: { ...run.ledger, spentMicroUsd: run.page.status.spentMicroUsd },
    policy: run.resolved.policy,
    hasSaved: settlement.checkpoint?.attempt === order.attempt,
    ...budgetAfter(run, order, settlement),
  })
  run.ledger = ledger
  return decision
}

function budgetAfter(
  { page }: JobRun,
  { priceMaxMicroUsdPerHour }: Order,
  { costMicroUsd }: Settlement,
): Pick<DecideInput, 'budget'> {
  const leftMicroUsd = leftOfBudget(page.status.budgetMicroUsd, page.status.spentMicroUsd)
  return leftMicroUsd === undefined ? {} : { budget: { leftMicroUsd, priceMaxMicroUsdPerHour, costMicroUsd } }
}

function keysOf(offer: Parameters<typeof offerKey>[0]): NonNullable<DecideInput['machine']> {
  return { offerKey: offerKey(offer), placeKey: placeKey(offer) }
}

/** Starts a fresh history after many attempts, between two of them. */
async function continueFresh(run: JobRun): Promise<void> {
  if (!workflowInfo().continueAsNewSuggested || run.drains.current !== null) return
  await condition(allHandlersFinished)
  await continueAsNew<typeof job>({ ...run.input, carry: run.carry() })
}

function checkpointsKept(run: JobRun): { checkpointsKept?: number } {
  const keep = run.isResolved ? run.resolved.spec.checkpoint.keep : undefined
  return keep === undefined ? {} : { checkpointsKept: keep }
}

async function finish(run: JobRun, end: Finish, settlement?: Settlement): Promise<JobResult> {
  run.drains.disarmDeadline()
  run.page.move(end.state, end.reason, end.message)
  const result = await forever(
    () =>
      orchestrator.finishJob({
        jobId: run.input.jobId,
        recordSeq: run.nextSeq(),
        status: run.page.settledStatus,
        artifacts: settlement?.artifacts ?? [],
        progress: settlement?.progress,
        month: run.isResolved && run.resolved.month !== undefined ? run.resolved.month : undefined,
        ...checkpointsKept(run),
      }),
    run.page,
  )
  await condition(allHandlersFinished)
  switch (end.state) {
    case 'succeeded':
      return result
    case 'cancelled':
      throw new CancelledFailure(end.message, [result])
    case 'failed':
      log.warn(JOB_FAILED_LOG, { reason: end.reason, message: end.message })
      throw ApplicationFailure.create({
        type: end.reason,
        message: end.message,
        nonRetryable: true,
        details: [result],
      })
  }
}
