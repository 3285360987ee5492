import type { PlanInput, PlanOutcome, PlanWords } from '../../core/activities'
import { inWords } from '../../core/failure'
import type { Decision } from '../../core/job/ledger'
import type { Order } from '../../core/job/plan'
import { decide, plan, waiting } from '../activities'
import { unlessOver } from '../forever'
import type { JobRun } from './run'

export interface Placed {
  kind: 'order'
  /** The oldest limits that it may have been planned with; newer ones are passed on to its attempt. */
  limitsVersion: number
  order: Order
  words: PlanWords
}

type Finish = Extract<Decision, { kind: 'finish' }>

/** Returns the next placement, however long the search takes, or the reason why none exists. */
export async function nextOrder(run: JobRun): Promise<Placed | Finish> {
  if (run.drains.ending !== null) return stopped(run)
  let { limitsVersion } = run
  const outcome = await planOrWait(run, () => (limitsVersion = run.limitsVersion))
  if (outcome === undefined || run.drains.ending !== null) return stopped(run)
  run.drains.forgetMove()
  if (outcome.kind === 'place') {
    const { order, words } = outcome
    run.pin(order)
    return { kind: 'order', limitsVersion, order, words }
  }
  return { kind: 'finish', state: 'failed', reason: outcome.reason, message: inWords(outcome.failure) }
}

/** Plans or waits; returns `undefined` if a request arrived meanwhile. */
async function planOrWait(
  run: JobRun,
  onInput: () => void,
): Promise<Exclude<PlanOutcome, { kind: 'wait' }> | undefined> {
  let input = planInput(run)
  let outcome = await plan(run.page, input)
  if (outcome.kind !== 'place' && input.target !== undefined) {
    // The requested target is unavailable; the job continues wherever it can.
    run.drains.forgetMove()
    input = planInput(run)
    outcome = await plan(run.page, input)
  }
  if (outcome.kind !== 'wait') return outcome
  run.page.move(run.page.status.state, 'waiting-for-capacity', outcome.reason)
  return wait(run, onInput)
}

/** Asks until an answer arrives, unless the job must stop; asks again once its limits have changed. */
async function wait(
  run: JobRun,
  onInput: () => void,
): Promise<Exclude<PlanOutcome, { kind: 'wait' }> | undefined> {
  // All questions share one record number: if two of them are answered, the first answer counts.
  const recordSeq = run.nextSeq()
  onInput()
  for (;;) {
    const { limitsVersion } = run
    const input = planInput(run, recordSeq)
    const outcome = await unlessOver(
      () => run.drains.ending !== null || run.limitsVersion !== limitsVersion,
      () => waiting.planWhenAvailable(input),
    )
    if (outcome !== undefined || run.drains.ending !== null) return outcome
  }
}

function planInput(run: JobRun, recordSeq = run.nextSeq()): PlanInput {
  const { input, page, drains, pause, pins } = run
  const { deadlineAtMs, budgetMicroUsd, spentMicroUsd } = page.status
  return {
    jobId: input.jobId,
    deployment: input.deployment,
    recordSeq,
    attempt: run.nextAttempt,
    resolved: run.resolved,
    bundle: input.bundle,
    ledger: { ...run.ledger, spentMicroUsd },
    avoid: run.avoid(),
    pins,
    target: drains.target,
    startsInMs: pause === undefined ? undefined : pause.forMs,
    deadlineAtMs,
    budgetMicroUsd,
  }
}

/** Ends the job while no attempt runs, by the policy's answer for an attempt that stopped for the same reason. */
async function stopped(run: JobRun): Promise<Finish> {
  const reason = run.drains.ending
  if (reason === null) throw new Error('no request to stop')
  const { decision } = await decide(run.page, {
    jobId: run.input.jobId,
    recordSeq: run.nextSeq(),
    attempt: run.page.status.attemptsTotal,
    end: { kind: 'stopped', by: reason },
    drainReason: reason,
    offerKeys: [],
    ledger: run.ledger,
    policy: run.resolved.policy,
  })
  if (decision.kind !== 'finish') throw new Error(`a job that is stopped (${reason}) must finish`)
  return decision
}
