/** The schemas of the documents between the control plane and the runner (docs/reference/runner-protocol.md); unknown fields are dropped. */
import { z } from 'zod'
import { CodedError, messageOf } from '../core/errors'
import { SAVE_SIGNALS, type Manifest, type Restores } from '../core/job/checkpoint'
import {
  DRAIN_REASONS,
  REBALANCE_ANSWERS,
  RESULT_REASONS,
  RUNNER_PHASES,
  type Beat,
  type Claim,
  type Drain,
  type IssuedRunnerOrder,
  type Lease,
  type Limits,
  type LogLine,
  type Outputs,
  type RunnerResult,
} from '../core/documents'
import type { Sealed } from '../core/grants'
import { checkpoint, checkpointNews, manifest, outputs, restores } from './checkpoint-documents'
import { fromOne, innerPath, lowerCaseWords, sha256, whole } from './document-fields'
import { formatPath } from './problem'

/** A text that is not the expected document; the message names each invalid field. */
class DocumentError extends CodedError<'document'> {
  constructor(kind: string, faults: string, options?: { cause?: unknown }) {
    super('document', `not a valid ${kind}: ${faults}`, options)
  }
}

const limits: z.ZodType<Limits> = z.object({
  seq: whole,
  deadlineAtMs: whole.nullable(),
  budget: z
    .object({
      microUsd: whole,
      priceMaxMicroUsdPerHour: whole,
      billedInStepsOfMs: fromOne.optional(),
    })
    .nullable(),
})

const order: z.ZodType<IssuedRunnerOrder> = z.object({
  version: z.literal(1),
  jobId: z.string(),
  jobName: z.string(),
  attempt: fromOne,
  attemptId: z.string(),
  run: z.string(),
  setup: z.string().nullable(),
  shell: z.string().optional(),
  image: z.string().nullable(),
  imageLogin: z.object({ username: z.string(), secret: z.string() }).optional(),
  shmGiB: z.number().nullable(),
  env: z.record(z.string(), z.string()),
  secrets: z.array(z.string()),
  bundle: z.object({ sha256, sizeBytes: whole }).nullable(),
  inputs: z.array(z.object({ source: z.string(), path: innerPath })),
  outputs: z.array(z.string()),
  requiresOutputs: z.boolean().optional(),
  checkpoint: z.object({
    directory: innerPath.nullable(),
    everyMs: whole,
    quietMs: whole,
    complete: z.array(innerPath).optional(),
    include: z.array(innerPath).optional(),
    exclude: z.array(innerPath).optional(),
    signal: z.enum(SAVE_SIGNALS).optional(),
    keep: fromOne,
  }),
  limits,
  leaseMs: whole,
  drainMs: whole,
  powerOffMs: whole,
  startWithinMs: whole,
  beatMs: fromOne,
  notice: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('none') }),
    z.object({ kind: z.literal('file'), path: z.string() }),
    z.object({ kind: z.literal('instance-metadata') }),
  ]),
  onRebalance: z.enum(REBALANCE_ANSWERS).optional(),
  registryMs: whole.optional(),
  artifactGiBMax: whole.optional(),
  usableUntilMs: whole.optional(),
  queueMs: whole.optional(),
  runMsMax: whole.optional(),
  issuedAtMs: whole,
})

const machineName = z
  .string()
  .regex(/^[!-~]{1,255}$/, 'must be 1 to 255 printable ASCII characters without spaces')

const claim: z.ZodType<Claim> = z.object({ machine: machineName, send: machineName.optional() })

const sealed: z.ZodType<Sealed> = z.object({
  v: z.literal(1),
  nonce: z.string(),
  text: z.string(),
  tag: z.string(),
})

const lease: z.ZodType<Lease> = z.object({
  seq: whole,
  answersBeat: whole,
  ttlMs: whole,
  usableUntilMs: whole.optional(),
  spentMicroUsd: whole.optional(),
  metered: z.object({ toAtMs: whole, costMicroUsd: whole, priceMicroUsdPerHour: whole }).optional(),
  grant: sealed.optional(),
})

const drain: z.ZodType<Drain> = z.object({
  seq: z.int().min(1).optional(),
  reason: z.enum([...DRAIN_REASONS, 'interrupted']),
  windowMs: whole,
  requestedAtMs: whole,
})

const progress = z.object({
  step: whole.nullable(),
  stepsTotal: whole.nullable(),
  loss: z.number().nullable(),
  epoch: z.number().min(0).optional(),
  epochsTotal: whole.optional(),
  batch: whole.optional(),
  batchesTotal: whole.optional(),
  percent: z.number().min(0).max(100).optional(),
  atMs: whole,
})

const gpuUse = z.object({
  index: whole,
  name: z.string(),
  utilizationPercent: z.number(),
  memoryUsedMiB: z.number(),
  memoryTotalMiB: z.number(),
  memoryPeakMiB: z.number().optional(),
})

const phases = z.array(z.object({ name: z.enum(RUNNER_PHASES), startedAtMs: whole, durationMs: whole }))

const times = {
  firstStepAtMs: whole.nullable().optional(),
  firstStep: whole.nullable().optional(),
  noNoticeAtMs: whole.nullable().optional(),
}

const saving = z.object({
  what: z.enum(['artifacts', 'checkpoint']),
  filesDone: whole,
  filesTotal: whole,
  bytesDone: whole,
  bytesTotal: whole,
  bytesRead: whole.optional(),
})

const trackerNews = {
  trackers: z
    .array(
      z.object({
        kind: lowerCaseWords,
        // eslint-disable-next-line no-control-regex -- control characters must not reach a terminal
        runId: z.string().regex(/^[^\s\x00-\x1f\x7f-\x9f]{1,128}$/, 'must be 1 to 128 printable characters'),
        url: z
          .string()
          .regex(/^https?:\/\/[!-~]{1,2000}$/, 'must be an address')
          .optional(),
      }),
    )
    .optional(),
}

const beat: z.ZodType<Beat> = z.object({
  attemptId: z.string(),
  seq: fromOne,
  phase: z.enum(RUNNER_PHASES),
  progress: progress.nullable(),
  gpus: z.array(gpuUse),
  checkpoint: checkpoint.nullable(),
  restoredFrom: checkpoint.nullable(),
  limitsSeq: whole,
  leaseSeq: whole,
  logLines: whole,
  rebalanceAtMs: whole.optional(),
  stalledSinceMs: whole.optional(),
  saving: saving.optional(),
  retrying: z.object({ text: z.string(), sinceMs: whole }).optional(),
  clockMs: whole,
  uptimeMs: whole,
  phases: phases.optional(),
  ...times,
  ...checkpointNews,
  ...trackerNews,
})

const result: z.ZodType<RunnerResult> = z.object({
  version: z.literal(1),
  attemptId: z.string(),
  outcome: z.enum(['succeeded', 'stopped', 'failed']),
  reason: z.enum(RESULT_REASONS),
  message: z.string(),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  progress: progress.nullable(),
  checkpoint: checkpoint.nullable(),
  restoredFrom: checkpoint.nullable(),
  artifacts: z.array(z.object({ path: innerPath, sizeBytes: whole, sha256 })),
  phases,
  logLines: whole,
  finishedAtMs: whole,
  ...times,
  ...checkpointNews,
  ...trackerNews,
})

const line = { n: fromOne, t: whole, m: z.string() }
const logLine: z.ZodType<LogLine> = z.discriminatedUnion('s', [
  z.object({ ...line, s: z.enum(['out', 'err', 'runner']) }),
  z.object({ ...line, s: z.literal('gap'), lost: fromOne }),
])

/** `beat.json`. Throws a `DocumentError`, as all of these do. */
export const parseBeat = (text: string): Beat => parse('beat', beat, text)
/** `result.json` */
export const parseResult = (text: string): RunnerResult => parse('result', result, text)
/** `manifest.json` */
export const parseManifest = (text: string): Manifest => parse('manifest', manifest, text)
/** `outputs.json` */
export const parseOutputs = (text: string): Outputs => parse('outputs document', outputs, text)
/** `restores.json` */
export const parseRestores = (text: string): Restores => parse('restores document', restores, text)
/** One line of a log chunk. */
export const parseLogLine = (text: string): LogLine => parse('log line', logLine, text)
/** `order.json` @internal Tests check what the control plane writes; it trusts its own orders. */
export const parseOrder = (text: string): IssuedRunnerOrder => parse('order', order, text)
/** `claim.json` */
export const parseClaim = (text: string): Claim => parse('claim', claim, text)
/** `lease.json` */
export const parseLease = (text: string): Lease => parse('lease', lease, text)
/** `limits/<seq>.json` */
export const parseLimits = (text: string): Limits => parse('limits document', limits, text)
/** `drain.json` */
export const parseDrain = (text: string): Drain => parse('drain', drain, text)

function parse<T>(kind: string, schema: z.ZodType<T>, text: string): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DocumentError(kind, messageOf(error), { cause: error })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const faults = parsed.error.issues.map(
    ({ path, message }) => `${formatPath(path) || 'the document'}: ${message}`,
  )
  throw new DocumentError(kind, faults.join('; '))
}

/** The readers of checkpoint documents. */
export const CHECKPOINT_PARSERS = { manifest: parseManifest, restores: parseRestores }
