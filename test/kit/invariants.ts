/** The invariants that several fault harnesses judge by. Each answers its breaches in words, and nothing where it holds. */
import type { LogLine } from '../../core/documents'
import type { RecordEntry, RecordKind } from '../../core/job/record'
import { parseLogLine } from '../../intake/documents'
import { readArtifact } from '../../storage/artifacts'
import { readLines } from '../../storage/logs'
import type { ObjectStore } from '../../storage/store'

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
