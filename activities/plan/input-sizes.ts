import type { JobSpec } from '../../core/job'
import type { BackendAnswer } from '../../core/plan'
import { MINUTE_MS, SECOND_MS } from '../../core/time'
import type { InputSize } from '../../planner/input-transfer'

/** Measures one source; throws where that cannot be done before the signal aborts. */
export type MeasureInput = (
  source: string,
  signal: AbortSignal,
) => Promise<{ sizeBytes: number; region?: string }>

/** What is known of a job's inputs, where an answer says that moving data costs. */
export type InputSizes = (spec: JobSpec, answers: readonly BackendAnswer[]) => Promise<InputSize[]>

/** A plan does without what takes longer: a job is planned again and again while it waits. */
const PATIENCE_MS = 4 * SECOND_MS
/** Data sets change seldom; what cannot be read is asked for as seldom. */
const FRESH_MS = 30 * MINUTE_MS
/** Sources that are remembered, the newest ones. */
const KEPT_MAX = 1_000

/** The environment by which a job reads its inputs from a server of its own. */
const OWN_SERVER = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']

/**
 * What is known of a job's inputs in S3, for plans that can move data between Regions; other plans measure nothing. Sizes are read with the
 * permissions of this worker, which are not those of the job: what it may not read is not known.
 */
export function createInputSizes({ measure, now }: { measure: MeasureInput; now: () => number }): InputSizes {
  const known = new Map<string, { atMs: number; size: Promise<InputSize | undefined> }>()
  const sizeOf = (source: string): Promise<InputSize | undefined> => {
    const kept = known.get(source)
    if (kept !== undefined && now() - kept.atMs < FRESH_MS) return kept.size
    const size = measure(source, AbortSignal.timeout(PATIENCE_MS)).then(
      (found) => ({ source, ...found }),
      () => undefined,
    )
    known.delete(source)
    known.set(source, { atMs: now(), size })
    const [oldest] = known.keys()
    if (known.size > KEPT_MAX && oldest !== undefined) known.delete(oldest)
    return size
  }
  return async (spec, answers) => {
    const isFar = answers.some(({ offers }) => offers.some(({ transfer }) => transfer !== undefined))
    if (!isFar || OWN_SERVER.some((name) => spec.env[name] !== undefined)) return []
    const sources = spec.inputs.map(({ source }) => source).filter((source) => source.startsWith('s3://'))
    const sizes = await Promise.all(sources.map(sizeOf))
    return sizes.filter((size) => size !== undefined)
  }
}
