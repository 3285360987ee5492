import { randomBytes } from 'node:crypto'
import { WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client'
import { BackendError } from '../../backends/errors'
import { defined } from '../../core/defined'
import { secretsNeeded, type JobSpec } from '../../core/job/job'
import type { JobInput, JobResult } from '../../core/messages'
import { jobWorkflowId } from '../../core/queues'
import { dateValues } from '../../core/retraining/run-dates'
import type { PrepareJobTask, RunPlacement } from '../../core/retraining/run'
import type { JobTemplate, ModelRef, RetrainSpec } from '../../core/retraining/retraining'
import { formatProblem } from '../../intake/problem'
import { jobOfTemplate } from '../../intake/retrain'
import { layout } from '../../storage/layout'
import { putRecord, readRecords } from '../../storage/record'
import { attemptKey, openSecrets, scheduleKey, sealSecrets, type SecretValues } from '../../storage/secrets'
import { readRevisions } from '../../storage/schedules'
import { noteSubmission } from '../../storage/submissions'
import { isOfOthers } from '../../storage/workflow-origin'
import type { RetrainingDeps } from './activities'

/** Everything that a submission does before it starts the workflow. Repeating it gives the same job. */
export async function prepareJob(deps: RetrainingDeps, task: PrepareJobTask): Promise<JobInput> {
  const { store, now } = deps
  const { input, jobId, source } = task
  const nowMs = now()
  const spec = specOf(task, nowMs)
  await copyBundle(deps, task)
  await copySecrets(deps, task, secretsNeeded(spec))
  const job: JobInput = {
    jobId,
    spec,
    bundle: input.bundle,
    owner: input.owner,
    deployment: input.deployment,
    submittedAtMs: nowMs,
    ...(source === undefined ? {} : { from: source.jobId, source }),
  }
  const summary = `${task.part} of ${input.schedule}, run ${task.run.id}: ${spec.run}`.slice(0, SUMMARY_MAX)
  const entry = await putRecord(store, jobId, { seq: 0, atMs: nowMs, kind: 'submitted', summary, data: job })
  await noteSubmission(store, entry.data)
  return entry.data
}

const SUMMARY_MAX = 200

/** The last entry of a finished job. */
export async function resultOf(
  { store }: Pick<RetrainingDeps, 'store'>,
  jobId: string,
): Promise<JobResult | null> {
  const [last] = await readRecords(store, jobId, { last: 1 })
  return last?.kind === 'finished' ? last.data.result : null
}

/** Waits for the workflow of a job, and returns the end of the job. Somebody else's workflow with its id is not waited for. */
export async function endOfJob(
  { client, store }: Pick<RetrainingDeps, 'client' | 'store'>,
  jobId: string,
  signal: AbortSignal,
): Promise<JobResult | null> {
  const workflowId = jobWorkflowId(jobId)
  if (await isOfOthers(client, { workflowId })) return resultOf({ store }, jobId)
  try {
    const handle = client.workflow.getHandle(workflowId)
    await client.withAbortSignal(signal, () => handle.result())
  } catch (error) {
    if (!(error instanceof WorkflowFailedError || error instanceof WorkflowNotFoundError)) throw error
  }
  return resultOf({ store }, jobId)
}

/** Returns the job for a part of the run, with its backends and the rest of the budget. */
export function specOf(task: PrepareJobTask, nowMs: number): JobSpec {
  const { input, run, part, placement, model, production, budgetMicroUsd } = task
  const template = templateOf(input.spec, part)
  const values = {
    ...dateValues(run.id, run.dates),
    ...modelValues('model', model),
    ...modelValues('production', production),
  }
  const read = jobOfTemplate(template, { values, name: input.schedule, nowMs })
  if ('problems' in read) {
    const message = `The ${part} is not a valid job with the dates of this run: ${read.problems.map(formatProblem).join(' ')}`
    throw new BackendError({ class: 'invalid', message })
  }
  const { spec } = read
  const most = Math.min(spec.budgetMicroUsd ?? Infinity, budgetMicroUsd ?? Infinity)
  if (most <= 0) {
    throw new BackendError({
      class: 'invalid',
      message: `The budget of the run is used up before its ${part}.`,
    })
  }
  return {
    ...spec,
    name: part === 'training' ? spec.name : `${spec.name.slice(0, PART_NAME_MAX)}-${part}`,
    ...(Number.isFinite(most) ? { budgetMicroUsd: most } : {}),
    ...(placement === undefined ? {} : placed(placement, nowMs)),
  }
}

/** Job names have 40 characters. */
const PART_NAME_MAX = 28

function templateOf(
  { job, rehearsal, evaluation, promotion }: RetrainSpec,
  part: PrepareJobTask['part'],
): JobTemplate {
  switch (part) {
    case 'training':
      return job
    case 'rehearsal':
      return rehearsal!
    case 'evaluation':
    case 'production':
      return evaluation!.job
    case 'promotion':
      return promotion!.job!
  }
}

function modelValues(name: 'model' | 'production', model: ModelRef | undefined): Record<string, string> {
  return {
    [`${name}.job`]: model?.jobId ?? '',
    [`${name}.checkpoint`]: model?.checkpointId ?? '',
    [`${name}.digest`]: model?.digest ?? '',
    [`${name}.artifacts`]: model?.artifactsUrl ?? '',
  }
}

function placed(placement: RunPlacement, nowMs: number): Partial<JobSpec> {
  if (placement.kind === 'reserved') {
    const { backend, reservation } = placement
    return {
      backends: [{ backend, capacityType: 'reserved' }],
      regions: [reservation.region],
      // The reservation that was bought for the run, or the one that was owned before.
      reservation: reservation.intent ?? reservation.id,
    }
  }
  const { backends, regions, deadlineMs } = placement
  return defined({
    backends: backends && [...backends],
    regions: regions && [...regions],
    deadlineAtMs: deadlineMs === undefined ? undefined : nowMs + deadlineMs,
  })
}

async function copyBundle({ store }: RetrainingDeps, { input, jobId }: PrepareJobTask): Promise<void> {
  const { bundle, schedule } = input
  if (bundle === null) return
  if (await store.copy(layout.scheduleBundle(schedule, bundle.sha256), layout.bundle(jobId, bundle.sha256)))
    return
  const message = `The code of ${schedule} is no longer in the object store.`
  throw new BackendError({
    class: 'invalid',
    message,
    hint: 'Store it again with `crucible schedule update FILE`.',
  })
}

/** The newest values count: secrets change while a schedule lives. */
async function copySecrets(
  deps: RetrainingDeps,
  { input, jobId }: PrepareJobTask,
  names: string[],
): Promise<void> {
  if (names.length === 0) return
  const values = await secretsOf(deps, input.schedule)
  const missing = names.filter((name) => values[name] === undefined)
  if (missing.length > 0) throw missingSecrets(input.schedule, missing)
  const own = Object.fromEntries(names.map((name) => [name, values[name]!]))
  await deps.store.put(
    layout.secrets(jobId),
    sealSecrets(attemptKey(deps.key!, jobId), own, randomBytes(NONCE_BYTES)),
  )
}

const NONCE_BYTES = 16

function missingSecrets(schedule: string, names: readonly string[]): BackendError {
  return new BackendError({
    class: 'invalid',
    message: `The secrets ${names.join(', ')} of ${schedule} are not in the object store.`,
    hint: `Store them with \`crucible schedule update ${schedule} --secrets\`.`,
  })
}

/** The stored secrets of a schedule; none if they were never stored, or this worker has no key. */
export async function secretsOf(
  { store, key }: Pick<RetrainingDeps, 'store' | 'key'>,
  schedule: string,
): Promise<SecretValues> {
  const revision = (await readRevisions(store, schedule)).at(-1)?.revision
  if (key === undefined || revision === undefined) return {}
  const sealed = await store.get(layout.scheduleSecrets(schedule, revision))
  return sealed === undefined ? {} : openSecrets(scheduleKey(key, schedule), sealed.toString('utf8'))
}
