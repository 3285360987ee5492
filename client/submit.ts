import { randomBytes, randomInt } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { TypedSearchAttributes } from '@temporalio/common'
import { makeDeploymentId, makeJobId } from '../core/ids'
import { secretsNeeded, type JobSpec } from '../core/job'
import type { JobInput, JobSource } from '../core/messages'
import { JOB_ID_PATTERN, jobWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../core/queues'
import { ensureDeployment } from '../storage/deployment'
import { layout } from '../storage/layout'
import { putRecord, readRecords } from '../storage/record'
import { noteSubmission } from '../storage/submissions'
import { attemptKey, ensureDeploymentKey, sealSecrets, type SecretValues } from '../storage/secrets'
import { ATTRIBUTE_KEYS } from './attributes'
import { codeFrom, codeOf, NO_CODE, type Code } from './bundle'
import { checkpointAdvice } from './checkpoint-advice'
import type { Context } from './context'
import { checkSameDeployment } from './deployment'
import { CrucibleError, GRPC, grpcCodeOf, isTemporals, messageOf } from './errors'
import { sourceOf } from './go-on'
import { submissionOf } from './history'
import { uiUrlOf } from './look'
import { unsetSecrets } from './preflight'
import { warningsFor } from './saved'
import { detailsOf, summaryInMarkdown, summaryOf } from './submit-words'
import { isQueueServed } from './workers'

/** What to submit. `intake` makes a spec of a job file or of flags. */
export interface Submission {
  spec: JobSpec
  /** Absolute path of the folder to send along; null for none. Missing: the code of the job named by `from`. */
  directory?: string | null
  /** Makes the submission repeatable: the same id with the same content is the same job. Made at random when missing. */
  id?: string
  /** The job that this one goes on from, at its newest good checkpoint; or that it repeats, if it is `isFresh`. */
  from?: string
  /** Starts over, without a checkpoint. */
  isFresh?: boolean
  /** A job of a rehearsal: `interruptRehearsal` may take its machines back. */
  isRehearsal?: boolean
}

export interface Submitted {
  id: string
  workflowId: string
  /** False when the job was there already. */
  isNew: boolean
  /** False when no worker polls for jobs now: it waits until one is started. */
  isServed: boolean
  /** The job's page in Temporal's Web UI, where that is known. */
  uiUrl: string | null
  /** The checkpoint that it begins with; null where it starts over. */
  source: JobSource | null
  /** What its owner should know beforehand, in sentences. */
  warnings: string[]
}

/**
 * Starts a job, once. What was sent survives a crash at any point: the same call with the same id goes on where it stopped. Throws
 * `usage` for what cannot be sent, `permission` for keys that cannot be used, `unavailable` when store or server do not answer.
 */
export async function submit(context: Context, submission: Submission): Promise<Submitted> {
  const { store, config } = context
  const { spec, from, isFresh = false } = submission
  if (submission.id !== undefined) checkId(submission.id)
  const secrets = secretsOf(context, spec)
  // Asked for before anything is left behind anywhere.
  await checkSameDeployment(context, await context.temporal())
  const source = from === undefined || isFresh ? undefined : await sourceOf(context, from)
  const id = submission.id ?? (await freshId(context, spec.name))
  const code = await codeFor(context, submission)
  try {
    const input: JobInput = {
      jobId: id,
      spec,
      bundle: code.ref,
      owner: config.owner,
      deployment: await ensureDeployment(store, () => makeDeploymentId(randomInt)),
      submittedAtMs: context.now(),
      ...(from === undefined ? {} : { from }),
      ...(source === undefined ? {} : { source }),
      ...(submission.isRehearsal === true ? { isRehearsal: true } : {}),
    }
    const standing = await enter(context, input)
    if (standing.isStarted) return await answer(context, standing.input)
    const warnings = [...(await checkpointAdvice(submission)), ...(await warningsFor(context, spec, from))]
    await code.upload(id)
    await seal(context, id, secrets)
    return { ...(await answer(context, standing.input, await start(context, standing.input))), warnings }
  } finally {
    await code.remove()
  }
}

/** An id that no job of this store has. */
async function freshId({ store }: Context, name: string): Promise<string> {
  for (;;) {
    const id = makeJobId(name, randomInt)
    if ((await store.head(layout.record(id, 0))) === undefined) return id
  }
}

function checkId(id: string): void {
  if (JOB_ID_PATTERN.test(id)) return
  throw new CrucibleError('usage', `"${id}" is not an id of a job.`, {
    hint: 'Begin with a letter and write at most 40 of a-z, 0-9 and inner dashes, such as nightly-2027-01-31.',
  })
}

/** The values of a job's secrets, from the caller's environment; all that are missing are named at once. */
export function secretsOf(context: Context, spec: JobSpec): SecretValues {
  const [unset] = unsetSecrets(context, spec)
  if (unset !== undefined) throw new CrucibleError('usage', unset)
  const secrets = secretsNeeded(spec)
  return Object.fromEntries(secrets.map((name) => [name, context.config.environment[name]!]))
}

async function codeFor({ store }: Context, { directory, from, spec }: Submission): Promise<Code> {
  if (directory === null) return NO_CODE
  if (directory !== undefined) return codeOf(store, directory, spec.checkpoint.directory)
  return from === undefined ? NO_CODE : codeFrom(store, from)
}

/** Takes the id: puts the record's first entry, or finds the same content there. */
async function enter({ store }: Context, input: JobInput): Promise<{ isStarted: boolean; input: JobInput }> {
  const { jobId, spec, bundle, source, submittedAtMs } = input
  const entry = await putRecord(store, jobId, {
    seq: 0,
    atMs: submittedAtMs,
    kind: 'submitted',
    summary: summaryOf(spec),
    data: input,
  })
  const standing = submissionOf([entry])!
  await noteSubmission(store, standing)
  // Through JSON, as the other one went.
  const written = JSON.parse(JSON.stringify(spec)) as JobSpec
  const isSame =
    isDeepStrictEqual(standing.spec, written) &&
    standing.bundle?.sha256 === bundle?.sha256 &&
    isDeepStrictEqual(standing.source, source) &&
    standing.isRehearsal === input.isRehearsal
  if (!isSame) {
    throw new CrucibleError('usage', `There is a job ${jobId} already, and it is another one.`, {
      hint: 'An id is never used again: choose another, or leave it out and get a new one.',
    })
  }
  // What only the workflow writes tells that it was started, also when Temporal has long forgotten it.
  const isStarted = (await readRecords(store, jobId, { afterSeq: 0, last: 1 })).length > 0
  return { isStarted, input: standing }
}

async function seal({ store, config }: Context, jobId: string, values: SecretValues): Promise<void> {
  if (Object.keys(values).length === 0) return
  const key = attemptKey(await ensureDeploymentKey(config.home.secretKeyFile), jobId)
  await store.put(layout.secrets(jobId), sealSecrets(key, values, randomBytes(NONCE_BYTES)))
}

const NONCE_BYTES = 16

/** Answers the workflow's run; nothing when an earlier call has started it. */
async function start(context: Context, input: JobInput): Promise<string | undefined> {
  const client = await context.temporal()
  const { spec, owner } = input
  try {
    const { firstExecutionRunId } = await client.workflow.start(WORKFLOW_TYPES.job, {
      workflowId: jobWorkflowId(input.jobId),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
      typedSearchAttributes: new TypedSearchAttributes([
        { key: ATTRIBUTE_KEYS.name, value: spec.name },
        { key: ATTRIBUTE_KEYS.owner, value: owner },
        { key: ATTRIBUTE_KEYS.state, value: 'pending' },
        { key: ATTRIBUTE_KEYS.reason, value: 'submitted' },
        { key: ATTRIBUTE_KEYS.backend, value: '' },
      ]),
      staticSummary: summaryInMarkdown(spec),
      staticDetails: detailsOf(input),
    })
    return firstExecutionRunId
  } catch (error) {
    if (isTemporals(error, 'WorkflowExecutionAlreadyStartedError')) return undefined
    if (grpcCodeOf(error) !== GRPC.invalidArgument || !/search attribute/i.test(causesOf(error))) throw error
    throw new CrucibleError('unavailable', 'This Temporal server has never met a Crucible worker.', {
      hint: 'Start one, which makes the server ready (`crucible worker`), then submit again.',
      cause: error,
    })
  }
}

function causesOf(error: unknown): string {
  const { cause } = error as { cause?: unknown }
  return `${messageOf(error)} ${cause === undefined ? '' : messageOf(cause)}`
}

async function answer(context: Context, { jobId: id, source }: JobInput, runId?: string): Promise<Submitted> {
  const workflowId = jobWorkflowId(id)
  return {
    id,
    workflowId,
    isNew: runId !== undefined,
    isServed: await isQueueServed(context, ORCHESTRATOR_QUEUE),
    uiUrl: uiUrlOf(context.config, workflowId, runId) ?? null,
    source: source ?? null,
    warnings: [],
  }
}
