import { randomBytes, randomInt } from 'node:crypto'
import type { Client } from '@temporalio/client'
import { TypedSearchAttributes } from '@temporalio/common'
import { GRPC } from '../../core/grpc'
import { makeJobId } from '../../core/ids'
import { codeDigest, type JobSpec } from '../../core/job/job'
import type { JobInput, JobSource } from '../../core/messages'
import { jobWorkflowId, ORCHESTRATOR_QUEUE, WORKFLOW_TYPES } from '../../core/queues'
import { isStoredAlike } from '../../storage/json'
import { layout } from '../../storage/layout'
import { putRecord, readRecords } from '../../storage/record'
import { forgetSubmission, noteSubmission } from '../../storage/submissions'
import { attemptKey, ensureDeploymentKey, sealSecrets, type SecretValues } from '../../storage/secrets'
import { ATTRIBUTE_KEYS } from '../attributes'
import { codeFrom, codeOf, NO_CODE, type Code } from './bundle'
import { checkpointAdvice } from './checkpoint-advice'
import { checkCuda } from './cuda'
import type { Context } from '../context'
import { checkSameDeployment, deploymentForWriting } from '../deployment'
import { messageOf } from '../../core/errors'
import { SECOND_MS } from '../../core/time/time'
import { withLimit } from '../deadline'
import { asStanding } from '../repeated'
import { CrucibleError, grpcCodeOf, isTemporals, toCrucibleError } from '../errors'
import { sourceOf } from './go-on'
import { checkJobId } from './find-job'
import { submissionOf } from './history'
import { uiUrlOf } from './read-view'
import { secretsOf, secretWarnings } from './secrets'
import { warningsFor } from './saved'
import { detailsOf, summaryInMarkdown, summaryOf } from './submit-words'
import { refuseTaken } from '../taken-id'
import { isQueueServed } from '../workers'

/** The parameters of a submission. `intake` makes a spec from a job file or from flags. @public */
export interface Submission {
  spec: JobSpec
  /** Absolute path of the folder to send along; null for none. Missing: the code of the job named by `from`. */
  directory?: string | null
  /** Makes the submission repeatable: the same id with the same content is the same job. Random if missing. */
  id?: string
  /** The job from whose newest good checkpoint this one resumes; or that it repeats, if `isFresh`. */
  from?: string
  /** Starts over, without a checkpoint. */
  isFresh?: boolean
  /** Whether a program is read that names an accelerator without CUDA, and refused if it needs CUDA; true if missing. */
  isAnalyzed?: boolean
  /** A job of a rehearsal: `interruptRehearsal` may take its machines back. */
  isRehearsal?: boolean
}

/** @public */
export interface Submitted {
  id: string
  workflowId: string
  /** Whether the job is new; false if it already existed. */
  isNew: boolean
  /** False if no worker polls for jobs now: it waits until one is started. */
  isServed: boolean
  /** The job's page in Temporal's Web UI, if known. */
  uiUrl: string | null
  /** The checkpoint that it starts from; null if it starts over. */
  source: JobSource | null
  /** Warnings for the owner, in sentences. */
  warnings: string[]
}

/**
 * Starts a job, once. A submission survives a crash at any point: the same call with the same id continues where it stopped.
 * Throws `usage` for an invalid submission, `permission` for unusable keys, `unavailable` if store or server do not answer.
 */
export async function submit(context: Context, submission: Submission): Promise<Submitted> {
  const { store, config } = context
  const { spec, from, isFresh = false } = submission
  if (submission.id !== undefined) checkJobId(submission.id)
  if (submission.isAnalyzed !== false) await checkCuda(submission)
  const secrets = secretsOf(context, spec)
  // Requested before anything is written anywhere.
  const client = await context.temporal()
  await withLimit(client, ANSWER_LIMIT_MS, () => checkSameDeployment(context, client))
  await context.compareClocks()
  context.clock.check()
  const source = from === undefined || isFresh ? undefined : await sourceOf(context, from)
  const id = submission.id ?? (await freshId(context, spec.name))
  const code = await codeFor(context, submission)
  try {
    const input: JobInput = {
      jobId: id,
      spec,
      bundle: code.ref,
      owner: config.owner,
      deployment: await deploymentForWriting(store),
      submittedAtMs: context.now(),
      from,
      source,
      isRehearsal: submission.isRehearsal || undefined,
    }
    // A record names the code by the digest of its bytes, and another copy of the same code may have another one.
    if ((await store.head(layout.record(id, 0))) === undefined) await code.upload(id)
    const standing = await enter(context, input)
    if (standing.isStarted) return await answer(context, standing.input)
    const warnings = [
      ...code.warnings,
      ...secretWarnings(context, spec),
      ...(await checkpointAdvice(submission)),
      ...(await warningsFor(context, spec, from)),
    ]
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

async function codeFor({ store }: Context, { directory, from, spec }: Submission): Promise<Code> {
  if (directory === null) return NO_CODE
  if (directory !== undefined) return codeOf(store, directory, spec)
  return from === undefined ? NO_CODE : codeFrom(store, from)
}

/** Claims the id: writes the record's first entry, or finds the same content there. */
async function enter({ store }: Context, input: JobInput): Promise<{ isStarted: boolean; input: JobInput }> {
  const { jobId, spec, submittedAtMs } = input
  const entry = await putRecord(store, jobId, {
    seq: 0,
    atMs: submittedAtMs,
    kind: 'submitted',
    summary: summaryOf(spec),
    data: input,
  })
  const standing = submissionOf([entry])!
  await noteSubmission(store, standing)
  const laterMs = submittedAtMs - standing.submittedAtMs
  const deadlineAtMs = asStanding(standing.spec.deadlineAtMs, spec.deadlineAtMs, laterMs)
  const repeated = { ...input, spec: { ...spec, deadlineAtMs } }
  const isSame = isStoredAlike(contentOf(standing), contentOf(repeated))
  if (!isSame) {
    throw new CrucibleError('usage', `A different job ${jobId} already exists.`, {
      hint: 'Ids are never reused: choose another one, or leave it out for a generated id.',
    })
  }
  // Entries that only the workflow writes prove that it was started, even if Temporal has long forgotten it.
  const isStarted = (await readRecords(store, jobId, { afterSeq: 0, last: 1 })).length > 0
  return { isStarted, input: standing }
}

/** The parts in which a repeated submission must equal the stored one. */
function contentOf({ spec, bundle, source, isRehearsal }: JobInput): unknown {
  return { spec, bundle: bundle === null ? undefined : codeDigest(bundle), source, isRehearsal }
}

async function seal({ store, config }: Context, jobId: string, values: SecretValues): Promise<void> {
  if (Object.keys(values).length === 0) return
  const key = attemptKey(await ensureDeploymentKey(config.home.secretKeyFile), jobId)
  await store.put(layout.secrets(jobId), sealSecrets(key, values, randomBytes(NONCE_BYTES)))
}

const NONCE_BYTES = 16

/** Returns the workflow's run; undefined if an earlier call has started it. */
async function start(context: Context, input: JobInput): Promise<string | undefined> {
  const client = await context.temporal()
  try {
    return await withLimit(client, ANSWER_LIMIT_MS, () => startOn(context, client, input))
  } catch (error) {
    if (toCrucibleError(error).kind !== 'unavailable' || error instanceof CrucibleError) throw error
    throw new CrucibleError(
      'unavailable',
      `The Temporal server does not answer (${messageOf(error)}), so it is unknown whether it started ${input.jobId}.`,
      { hint: `Submit again with --id ${input.jobId}: the job is started once.`, cause: error },
    )
  }
}

/** A server on a full disk answers nothing, or after minutes. */
const ANSWER_LIMIT_MS = 20 * SECOND_MS

async function startOn({ store }: Context, client: Client, input: JobInput): Promise<string | undefined> {
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
    if (isTemporals(error, 'WorkflowExecutionAlreadyStartedError')) {
      await refuseTaken(client, jobWorkflowId(input.jobId), () => forgetSubmission(store, input))
      return undefined
    }
    if (grpcCodeOf(error) !== GRPC.invalidArgument || !/search attribute/i.test(causesOf(error))) throw error
    throw new CrucibleError('unavailable', 'No Crucible worker has ever connected to this Temporal server.', {
      hint: 'Start one with `crucible worker`, which prepares the server, then submit again.',
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
