import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowFailure,
  condition,
  executeChild,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  type ChildWorkflowOptions,
} from '@temporalio/workflow'
import { WorkflowExecutionAlreadyStartedError, type WithWorkflowArgs } from '@temporalio/common'
import { defined } from '../../core/defined'
import { failureFrom } from '../../core/failure'
import type { JobInput, JobResult, JobSource } from '../../core/messages'
import { runJobId, type PrepareJobTask, type RunJob, type RunPlacement } from '../../core/retraining/run'
import type { ModelRef } from '../../core/retraining/retraining'
import { jobWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { plainInMarkdown } from '../../core/markdown'
import type { job } from '../job/job'
import { attributesOf } from '../attributes'
import { forever, kept } from '../forever'
import { awaited, retraining } from './activities'
import type { RetrainRun } from './run'

export interface PartRequest {
  part: RunJob['part']
  placement?: RunPlacement
  source?: JobSource
  model?: ModelRef
  production?: ModelRef
  /** Number of the training in the run; each continues the previous one. */
  number?: number
}

/** How a job of a run ended; without a result, it never began. */
export interface PartEnd {
  jobId: string
  isSucceeded: boolean
  /** Why it did not succeed, in a sentence. */
  message: string
  result?: JobResult
}

/** Copies code and secrets to a job, so that it starts at once when its time has come. */
export async function prepare(run: RetrainRun, wish: PartRequest): Promise<JobInput | PartEnd> {
  const jobId = runJobId(run.run, wish)
  const { part, placement, source, model, production } = wish
  const task: PrepareJobTask = {
    ...run.task(),
    part,
    jobId,
    placement,
    source,
    model,
    production,
    budgetMicroUsd: run.leftMicroUsd,
  }
  return forever(async () => {
    try {
      return await retraining.prepareJob(task)
    } catch (error) {
      const { class: failureClass, message } = failureFrom(error)
      if (failureClass !== 'invalid' && failureClass !== 'auth') throw error
      return { jobId, isSucceeded: false, message }
    }
  }, run)
}

/** Runs a job to its end. `until` ends it early: the job saves and stops. */
export async function runPart(
  run: RetrainRun,
  wish: PartRequest,
  { prepared, until }: { prepared?: JobInput; until?: (isOver: () => boolean) => Promise<void> } = {},
): Promise<PartEnd> {
  const input = prepared ?? (run.stop === undefined ? await prepare(run, wish) : unbegun(run, wish))
  if ('isSucceeded' in input) return input
  if (run.stop !== undefined) return unbegun(run, wish)
  const started: RunJob = { part: wish.part, jobId: input.jobId, startedAtMs: Date.now() }
  run.update({ jobs: [...run.status.jobs, started] })
  const life = { isOver: false }
  const scope = new CancellationScope({ cancellable: true })
  const ending = kept(
    scope
      .run(() => executeChild<typeof job>(WORKFLOW_TYPES.job, optionsOf(run, input)))
      .then((result): PartEnd => ({ jobId: input.jobId, isSucceeded: true, message: result.message, result }))
      .catch((error: unknown) =>
        error instanceof WorkflowExecutionAlreadyStartedError
          ? scope.run(() => adopted(run, input.jobId))
          : endOf(input.jobId, error),
      )
      .finally(() => (life.isOver = true)),
  )
  const early = [kept(condition(() => run.stop !== undefined))]
  if (until !== undefined) early.push(kept(until(() => life.isOver)))
  await Promise.race([ending, ...early])
  if (!life.isOver) scope.cancel()
  const end = await withResult(run, await ending)
  const ended: RunJob = {
    ...started,
    endedAtMs: Date.now(),
    state: end.result?.state ?? 'failed',
    ...defined({ costMicroUsd: end.result?.costMicroUsd }),
  }
  run.update({ jobs: run.status.jobs.map((each) => (each.jobId === ended.jobId ? ended : each)) })
  return end
}

/** The run was stopped first. */
function unbegun(run: RetrainRun, wish: PartRequest): PartEnd {
  return { jobId: runJobId(run.run, wish), isSucceeded: false, message: run.stop!.message }
}

const TAKEN = 'It was terminated by hand, or somebody had taken its workflow id.'

/** Follows a job that a reset history of this run started, to its end, like a child of this one. */
async function adopted(run: RetrainRun, jobId: string): Promise<PartEnd> {
  const scope = CancellationScope.current()
  return CancellationScope.nonCancellable(async () => {
    const cancel = (): Promise<void> => getExternalWorkflowHandle(jobWorkflowId(jobId)).cancel()
    scope.cancelRequested.catch(() => CancellationScope.nonCancellable(cancel)).catch(() => undefined)
    const result = await forever(() => awaited.endOfJob({ jobId }), run)
    if (result === null) return { jobId, isSucceeded: false, message: TAKEN }
    return { jobId, isSucceeded: result.state === 'succeeded', message: result.message, result }
  })
}

/** A cancelled job closes without its result. */
async function withResult(run: RetrainRun, end: PartEnd): Promise<PartEnd> {
  if (end.result !== undefined) return end
  const result = await forever(() => retraining.resultOf({ jobId: end.jobId }), run)
  return result === null ? end : { ...end, result, message: result.message }
}

function optionsOf(run: RetrainRun, input: JobInput): WithWorkflowArgs<typeof job, ChildWorkflowOptions> {
  const { name } = input.spec
  return {
    workflowId: jobWorkflowId(input.jobId),
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    typedSearchAttributes: attributesOf({
      name,
      owner: run.input.owner,
      state: 'pending',
      reason: 'submitted',
      backend: '',
    }),
    staticSummary: plainInMarkdown(`${name}: ${input.spec.run}`.slice(0, SUMMARY_MAX)),
  }
}

/** The server keeps 400 bytes. */
const SUMMARY_MAX = 90

/** A job that failed or was cancelled carries its result in its failure. */
function endOf(jobId: string, error: unknown): PartEnd {
  const cause = error instanceof ChildWorkflowFailure ? error.cause : error
  const isTold = cause instanceof ApplicationFailure || cause instanceof CancelledFailure
  const [result] = (isTold ? (cause.details ?? []) : []) as [JobResult?]
  const message = result?.message ?? failureFrom(error).message
  return { jobId, isSucceeded: false, message, result }
}
