/** The invariants of jobs. Each returns its breaches in words, and nothing where it holds. */
import { parseCheckpointId } from '../../core/job/checkpoint'
import type { Beat, LogLine, RunnerResult } from '../../core/documents'
import type { JobReason } from '../../core/job/job'
import type { AttemptRecord } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import type { RecordEntry, RecordKind } from '../../core/job/record'
import { parseLogLine } from '../../intake/documents'
import { readArtifact } from '../../storage/artifacts'
import { layout } from '../../storage/layout'
import { readLines } from '../../storage/logs'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { isDamaged, weightsAfter } from '../backends/scripted/checkpoints'
import { WEIGHTS_ARTIFACT } from '../backends/scripted/scripted-runner'
import { unlikeReplays } from './replays'

export interface Span {
  fromMs: number
  toMs: number
}

/** When the workload of an attempt ran on a machine. */
export interface Stretch extends Span {
  attempt: number
}

/** How much of a span is covered by others, which may overlap. */
export function coveredMs(span: Span, by: readonly Span[]): number {
  let untilMs = span.fromMs
  let coveredMs = 0
  for (const { fromMs, toMs } of [...by].sort((a, b) => a.fromMs - b.fromMs)) {
    const ms = Math.min(toMs, span.toMs) - Math.max(fromMs, untilMs)
    if (ms <= 0) continue
    coveredMs += ms
    untilMs = toMs
  }
  return coveredMs
}

/** A machine of an attempt, and when its workload ran there. */
export interface AtWork {
  attempt: number
  /** Missing where no workload began. */
  workedFromMs: number | undefined
  /** Missing while it works. */
  workedToMs: number | undefined
}

/** No workload of a job runs while another one does. */
export function oneAtWork(machines: readonly AtWork[]): string[] {
  return overlaps(
    machines.flatMap(({ attempt, workedFromMs, workedToMs = Infinity }) =>
      workedFromMs === undefined ? [] : [{ attempt, fromMs: workedFromMs, toMs: workedToMs }],
    ),
  )
}

const FINAL_STATES: readonly string[] = ['succeeded', 'cancelled', 'failed']

/** A job ends, and for a reason that it was given. */
export function endedAs({ state, reason, message }: JobStatus, mayEnd: readonly JobReason[]): string[] {
  if (!FINAL_STATES.includes(state)) return [`the job is ${state}`]
  return mayEnd.includes(reason) ? [] : [`the job ended as ${state} (${reason}): ${message}`]
}

/** Two machines of a job may both be paid for a moment, but only one may ever run its workload. */
export function overlaps(stretches: readonly Stretch[]): string[] {
  const worked = [...stretches].sort((a, b) => a.fromMs - b.fromMs)
  return worked.slice(1).flatMap((next, index) => {
    const before = worked[index]!
    return next.fromMs < before.toMs
      ? [`attempts ${before.attempt} and ${next.attempt} ran at once for ${before.toMs - next.fromMs} ms`]
      : []
  })
}

/** What is known of a job's attempts in the order of their numbers. */
interface Ended {
  number: number
  state: string
  reason: string
}

/**
 * What EC2 says when it ends a machine for most often, but not only, a key that the account may not use. The product takes it for no
 * class on purpose: a job may try again a few times.
 */
const OPEN_ON_PURPOSE = /\(Client\.InternalError: /

/**
 * Every fault of a harness is one that the product knows: an end that it cannot class is a fault of the product, or a fault that the
 * harness does not know.
 */
export function classified(
  job: { state: string; reason: string; message?: string },
  attempts: readonly Ended[],
): string[] {
  return [
    ...(job.state === 'failed' && job.reason === 'unclassified'
      ? [`the job failed (unclassified): ${job.message ?? ''}`]
      : []),
    ...attempts
      .filter(({ state, reason }) => state === 'failed' && reason.startsWith('unclassified'))
      .filter(({ reason }) => !OPEN_ON_PURPOSE.test(reason))
      .map(({ number, reason }) => `attempt ${number} failed (${reason})`),
  ]
}

/** Where an attempt began, and what was saved before. */
export interface Resume {
  attempt: number
  /** Null where its workload never began. */
  fromStep: number | null
  /** Of its own newest checkpoint; 0 where it put none. */
  savedStep: number
}

/** Each attempt continues from the newest checkpoint of all before it: not from an older one, and not from nothing. */
export function resumedFromNewest(resumes: readonly Resume[]): string[] {
  let newest = 0
  return resumes.flatMap(({ attempt, fromStep, savedStep }) => {
    const saved = newest
    newest = Math.max(newest, savedStep, fromStep ?? 0)
    return fromStep !== null && fromStep < saved
      ? [`attempt ${attempt} began at ${fromStep} though ${saved} was saved`]
      : []
  })
}

interface JudgedLog {
  jobId: string
  attempt: number
  mayHaveGaps?: boolean
  /** How many lines there were, where that is certain. */
  linesTotal?: number
}

/** No line of an attempt's log comes twice or out of order, none is lost unless `mayHaveGaps`, and the log reaches its last line. */
export async function wholeLog(
  store: ObjectStore,
  { jobId, attempt, mayHaveGaps = false, linesTotal = 0 }: JudgedLog,
  onLine: (line: LogLine) => void = () => undefined,
): Promise<string[]> {
  const wrong: string[] = []
  let last = 0
  const range = { jobId, attempt, afterLine: 0, isOver: true }
  for await (const line of readLines(store, range, parseLogLine)) {
    const { n, s, m } = line
    if (n <= last || (s !== 'gap' && n !== last + 1))
      wrong.push(`attempt ${attempt}: line ${n} follows ${last}`)
    if (s === 'gap' && !mayHaveGaps) wrong.push(`attempt ${attempt}: ${m} after line ${last}`)
    last = n
    onLine(line)
  }
  if (last < linesTotal) wrong.push(`attempt ${attempt}: the log ends at line ${last} of ${linesTotal}`)
  return wrong
}

/** A job that succeeded leaves the weights of an undisturbed run. */
export async function sameWeights(
  store: ObjectStore,
  { jobId, state, artifact }: { jobId: string; state: string | undefined; artifact: string },
  expected: Buffer,
): Promise<string[]> {
  if (state !== 'succeeded') return []
  const weights = await readArtifact(store, jobId, artifact)
  if (weights === undefined) return ['the job succeeded and left no weights']
  return weights.equals(expected) ? [] : ['the weights are not those of an undisturbed run']
}

/** How an attempt was planned, settled and decided upon can be read afterwards. */
export function explained(
  records: readonly Pick<RecordEntry, 'kind' | 'attempt'>[],
  attempts: readonly { number: number }[],
): string[] {
  const kinds: readonly RecordKind[] = ['planned', 'settled', 'decided']
  const known = new Set(records.map(({ kind, attempt }) => `${kind} ${attempt}`))
  return attempts.flatMap(({ number }) =>
    kinds
      .filter((kind) => !known.has(`${kind} ${number}`))
      .map((kind) => `attempt ${number}: nothing on record of how it was ${kind}`),
  )
}

/** What store and status show on their own, whatever provider the machines came from. */
export async function breachesOnRecord(
  store: ObjectStore,
  status: JobStatus,
  stepsTotal: number,
): Promise<string[]> {
  const { id: jobId, state, attempts } = status
  const artifact = WEIGHTS_ARTIFACT
  const records = await readRecords(store, jobId)
  return [
    ...classified(status, attempts),
    ...(await resumedAsSaved(store, status)),
    ...bothTypesOnRecord(attempts),
    ...(await sameWeights(store, { jobId, state, artifact }, weightsAfter(stepsTotal))),
    ...(await wholeLogs(store, status)),
    ...explained(records, attempts),
    ...rawWords(records),
    ...(await unlikeReplays(store, [jobId])),
  ]
}

/** Words of an error that only a programmer understands. */
export const RAW_WORDS = /undefined|Cannot read|is not a function|not iterable|\[object/

function rawWords(records: readonly RecordEntry[]): string[] {
  return records
    .filter(({ summary }) => RAW_WORDS.test(summary))
    .map(({ kind, summary }) => `on record is, as ${kind}: ${summary}`)
}

async function resumedAsSaved(store: ObjectStore, { id, attempts }: JobStatus): Promise<string[]> {
  const wrong: string[] = []
  const resumes: Resume[] = []
  for (const { number: attempt, restoredFrom, phases = [] } of attempts) {
    if (restoredFrom !== undefined && parseCheckpointId(restoredFrom.id) === undefined)
      wrong.push(`${restoredFrom.id} is no checkpoint`)
    // A machine that was lost has left no result, and its last beat tells.
    const last =
      (await readDocument<RunnerResult>(store, layout.result(id, attempt))) ??
      (await readDocument<Beat>(store, layout.beat(id, attempt)))
    // Of a machine that was lost no phases may be on record.
    const hasBegun = phases.some(({ name }) => name === 'running') || (last?.progress ?? null) !== null
    const own = last?.checkpoint?.attempt === attempt ? last.checkpoint : undefined
    // A runner cannot know that what it uploaded was damaged on the way.
    const isSaved = own !== undefined && !(await isDamaged(store, id, own))
    // What the runner did counts, not what the job has on record of it.
    const from = last === undefined ? restoredFrom : last.restoredFrom
    const fromStep = hasBegun ? (from?.step ?? 0) : null
    if (hasBegun && last !== undefined && from?.id !== restoredFrom?.id)
      wrong.push(
        `attempt ${attempt} began at ${from?.id ?? 'nothing'}, and on record is ${restoredFrom?.id ?? 'nothing'}`,
      )
    resumes.push({ attempt, fromStep, savedStep: isSaved ? own.step : 0 })
  }
  return [...wrong, ...resumedFromNewest(resumes)]
}

/** A JSON document of the store, if it exists. */
export async function readDocument<T>(store: ObjectStore, key: string): Promise<T | undefined> {
  const body = await store.get(key)
  return body && (JSON.parse(body.toString()) as T)
}

function bothTypesOnRecord(attempts: AttemptRecord[]): string[] {
  return attempts
    .filter(
      ({ launchedAtMs, realised, capacityType }) =>
        launchedAtMs !== undefined && realised?.capacityType !== capacityType,
    )
    .map(
      ({ number, capacityType, realised }) =>
        `attempt ${number} asked for ${capacityType} and got ${realised?.capacityType ?? 'nothing known'}`,
    )
}

async function wholeLogs(store: ObjectStore, { id: jobId, attempts }: JobStatus): Promise<string[]> {
  const wrong = await Promise.all(
    attempts.map(async ({ number: attempt }) => {
      // A result is put after the last line; of a machine that was lost the end of the log is lost too.
      const result = await readDocument<RunnerResult>(store, layout.result(jobId, attempt))
      return wholeLog(store, { jobId, attempt, linesTotal: result?.logLines ?? 0 })
    }),
  )
  return wrong.flat()
}
