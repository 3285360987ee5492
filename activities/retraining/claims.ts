import { WorkflowNotFoundError } from '@temporalio/client'
import { BackendError } from '../../backends/errors'
import type { PromotionTask, RetrainingActivities } from '../../core/retraining/run'
import type { PromotedModel } from '../../core/retraining/retraining'
import { isOpenStatus } from '../../core/workflow-status'
import { olderThanProduction, otherThanJudged } from '../../planner/retraining/gate'
import {
  putPromotionClaim,
  readChain,
  readPromotionClaim,
  readRun,
  type PromotionClaim,
} from '../../storage/schedules'
import type { RetrainingDeps } from './activities'

/** Throws if the model of a run must not replace the one in production. */
export function checkReplaces(
  { run, isApproved, judgedAgainst }: PromotionTask,
  current: PromotedModel | undefined,
): void {
  if (isApproved === true) return
  const message = olderThanProduction(run.dates.window, current) ?? otherThanJudged(judgedAgainst, current)
  if (message !== undefined) throw new BackendError({ class: 'invalid', message })
}

/**
 * Claims the promotion. Until this run has promoted or is over, no other run moves the pointer, so the published model and the pointer
 * agree.
 */
export async function claimPromotion(
  deps: RetrainingDeps,
  task: Parameters<RetrainingActivities['claimPromotion']>[0],
): ReturnType<RetrainingActivities['claimPromotion']> {
  const { store, now } = deps
  const { input, run, name, workflowId } = task
  const isOwn = (other: { schedule: string; run: string }): boolean =>
    other.schedule === input.schedule && other.run === run.id
  for (;;) {
    const newest = await readPromotionClaim(store, name)
    const isClaimed = newest !== undefined && isOwn(newest)
    if (newest !== undefined && !isClaimed && !(await isOver(deps, newest))) throw taken(name, newest)
    const chain = await readChain(store, name)
    const current = chain.at(-1)
    if (!chain.some(isOwn)) checkReplaces(task, current)
    const claim: PromotionClaim = {
      number: (newest?.number ?? 0) + 1,
      atMs: now(),
      workflowId,
      schedule: input.schedule,
      run: run.id,
    }
    if (isClaimed || (await putPromotionClaim(store, name, claim))) return { production: current ?? null }
  }
}

function taken(name: string, { schedule, run }: PromotionClaim): BackendError {
  const message = `The run ${run} of ${schedule} is putting its model into production as ${name}: waiting for it.`
  return new BackendError({ class: 'transient', message })
}

/** Whether the claiming run has promoted, has ended, or was terminated by hand. */
async function isOver(
  { store, client }: RetrainingDeps,
  { schedule, run, workflowId }: PromotionClaim,
): Promise<boolean> {
  const entries = await readRun(store, schedule, run)
  if (entries.some(({ kind }) => kind === 'promoted' || kind === 'finished')) return true
  try {
    return !isOpenStatus((await client.workflow.getHandle(workflowId).describe()).status.name)
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return true
    throw error
  }
}
