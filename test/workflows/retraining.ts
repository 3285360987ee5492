/** Retraining runs of tests: how they are started, and what their jobs report. */
import type { WorkflowHandle } from '@temporalio/client'
import type { RetrainInput, RetrainResult, RetrainState, RetrainStatus } from '../../core/retraining/run'
import type { RetrainSpec } from '../../core/retraining/retraining'
import { ORCHESTRATOR_QUEUE, retrainScheduleId, WORKFLOW_TYPES } from '../../core/queues'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { putPermit } from '../../storage/schedule-permits'
import { putRevision, readRevisions } from '../../storage/schedules'
import { DEPLOYMENT_ID, type Deployment } from './harness'
import { eventually } from './looks'

export const SCHEDULE = 'ranker'
export const UI_URL = 'http://ui.test/namespaces/n/workflows'

/** On a day that is never this one, so that every run is one by hand. */
export const SPEC_BY_HAND: RetrainSpec = {
  name: SCHEDULE,
  calendar: {
    months: [1],
    day: { kind: 'date', day: 1 },
    hour: 0,
    minute: 0,
    zone: 'UTC',
    blackouts: [],
    onBlackout: 'skip',
  },
  leadMs: 0,
  overlap: 'queue',
  data: { period: 'quarter' },
  overrun: {},
  checkMs: 0,
  notify: {},
  job: { run: 'train --from {{ window.start }}', checkpoint: { directory: 'checkpoints' } },
}

export const GATED: Partial<RetrainSpec> = {
  evaluation: {
    metric: 'loss',
    better: 'lower',
    tolerance: { kind: 'relative', value: 0.1 },
    production: 'recorded',
    job: { run: 'evaluate {{ model.job }}' },
  },
  promotion: { model: SCHEDULE, isAsked: false, askMs: 60_000 },
}

export interface RunHandle extends WorkflowHandle {
  firstExecutionRunId: string
  result(): Promise<RetrainResult>
}

/** The next revision of the schedule, and a run that its owner asks for. */
export async function allowRun(
  { store }: Deployment,
  input: Omit<RetrainInput, 'revision'>,
): Promise<RetrainInput> {
  const nowMs = Date.now()
  const revision = (await readRevisions(store, SCHEDULE)).length + 1
  const revised = { ...input, revision }
  const at = { atMs: nowMs - DAY_MS + revision, by: 'somebody' }
  const kind = revision === 1 ? 'created' : 'updated'
  await putRevision(store, { ...at, revision, kind, input: revised })
  await putPermit(store, SCHEDULE, {
    id: `trigger-${revision}`,
    kind: 'trigger',
    atMs: nowMs,
    by: 'somebody',
  })
  return revised
}

export function inputOf(spec: Partial<RetrainSpec> = {}): Omit<RetrainInput, 'revision'> {
  return {
    schedule: SCHEDULE,
    spec: { ...SPEC_BY_HAND, ...spec },
    bundle: null,
    secrets: [],
    owner: 'somebody',
    deployment: DEPLOYMENT_ID,
    uiUrl: UI_URL,
  }
}

/** Starts a run as the schedule does. */
export async function startRun(
  deployment: Deployment,
  spec: Partial<RetrainSpec> = {},
  id = '1',
): Promise<RunHandle> {
  const input = await allowRun(deployment, inputOf(spec))
  const workflowId = `${retrainScheduleId(SCHEDULE)}-${id}`
  const handle = await deployment.client.workflow.start(WORKFLOW_TYPES.retrain, {
    workflowId,
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
  })
  return handle
}

export const runStatus = (run: WorkflowHandle): Promise<RetrainStatus> => run.query<RetrainStatus>('status')

/** The id of a job of today's run. */
export function jobOfToday(part: string, letter = ''): string {
  const today = new Date().toISOString().slice(0, 10).replaceAll('-', '')
  return `${SCHEDULE}-${today}${letter}-${part}`
}

/** What an evaluation of today's run will have written: its machine is a script that writes nothing itself. */
export async function willMeasure(
  deployment: Deployment,
  loss: unknown,
  jobId = jobOfToday('eval'),
): Promise<void> {
  await deployment.store.put(`${layout.artifactsOf(jobId, 1)}metrics.json`, JSON.stringify({ loss }))
}

/** Rules of a schedule whose run begins now, with a window that opens some days later. */
export function opensIn(days: number): { spec: Partial<RetrainSpec>; opensAtMs: number } {
  const nowMs = Math.ceil(Date.now() / SECOND_MS) * SECOND_MS
  const opensAtMs = Math.floor((nowMs + days * DAY_MS) / MINUTE_MS) * MINUTE_MS
  const date = new Date(opensAtMs)
  const calendar: RetrainSpec['calendar'] = {
    months: [date.getUTCMonth() + 1],
    day: { kind: 'date', day: date.getUTCDate() },
    zone: 'UTC',
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    blackouts: [],
    onBlackout: 'skip',
  }
  return { spec: { calendar, leadMs: opensAtMs - nowMs }, opensAtMs }
}

export function inRunState(run: WorkflowHandle, state: RetrainState): Promise<void> {
  return eventually(async () => (await runStatus(run)).state === state)
}

/** How a run failed, with the result in its failure. */
export async function runFailure(run: RunHandle): Promise<{ message: string; result: RetrainResult }> {
  const error = await run.result().then(
    () => undefined,
    (thrown: { cause?: { message: string; details?: [RetrainResult] } }) => thrown.cause,
  )
  if (error?.details === undefined) throw new Error('the run did not fail with a result')
  return { message: error.message, result: error.details[0] }
}

/** Resets the workflow of a run to before it started its first child. The run that continues. */
export async function resetBeforeChild(
  { client, namespace }: Deployment,
  run: RunHandle,
): Promise<WorkflowHandle> {
  const { events } = await run.fetchHistory()
  const started = events!.find((event) => event.startChildWorkflowExecutionInitiatedEventAttributes)!
  const { workflowTaskCompletedEventId } = started.startChildWorkflowExecutionInitiatedEventAttributes!
  await client.workflowService.resetWorkflowExecution({
    namespace,
    reason: 'a test',
    requestId: 'reset-1',
    workflowExecution: { workflowId: run.workflowId, runId: run.firstExecutionRunId },
    workflowTaskFinishEventId: workflowTaskCompletedEventId!,
  })
  return client.workflow.getHandle(run.workflowId)
}
