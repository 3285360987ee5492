import type { JobSpec } from '../../core/job/job'
import type { InputSize } from '../../core/job/input-size'
import type { BackendAnswer } from '../../core/job/plan'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'

/** Measures one source; throws if that cannot be done before the signal aborts. */
type MeasureInput = (source: string, signal: AbortSignal) => Promise<{ sizeBytes: number; region?: string }>

/** Measurers of sources, by URL scheme. */
export interface Measurer {
  measure: MeasureInput
  /** Environment variables with which a job reads such sources from another server, where the worker does not measure. */
  serverEnv: readonly string[]
}

/** The known sizes of a job's inputs; measured only if some offer has a price for moving data. */
export type InputSizes = (spec: JobSpec, answers: readonly BackendAnswer[]) => Promise<InputSize[]>

/** A plan leaves out what takes longer, because a waiting job is planned again and again. */
const PATIENCE_MS = 4 * SECOND_MS
/** Data sets rarely change. A source that cannot be read is not tried again sooner either. */
const FRESH_MS = 30 * MINUTE_MS
/** The number of sources remembered; the oldest are forgotten first. */
const KEPT_MAX = 1_000

interface InputSizesDeps {
  measurers: Readonly<Record<string, Measurer>>
  monotonicMs: () => number
}

/**
 * Measures a job's inputs, each with the measurer of its URL scheme (such as `https:`), for plans that can move data between Regions; other
 * plans measure nothing. Sizes are read with the permissions of this worker, which can differ from the job's: a size that the worker may
 * not read stays unknown.
 */
export function createInputSizes({ measurers, monotonicMs }: InputSizesDeps): InputSizes {
  const known = new Map<string, { atMs: number; size: Promise<InputSize | undefined> }>()
  const sizeOf = (source: string, measure: MeasureInput): Promise<InputSize | undefined> => {
    const kept = known.get(source)
    if (kept !== undefined && monotonicMs() - kept.atMs < FRESH_MS) return kept.size
    const size = measure(source, AbortSignal.timeout(PATIENCE_MS)).then(
      (found) => ({ source, ...found }),
      () => undefined,
    )
    known.delete(source)
    known.set(source, { atMs: monotonicMs(), size })
    const [oldest] = known.keys()
    if (known.size > KEPT_MAX && oldest !== undefined) known.delete(oldest)
    return size
  }
  return async (spec, answers) => {
    const isFar = answers.some(({ offers }) => offers.some(({ transfer }) => transfer !== undefined))
    if (!isFar) return []
    const sizes = await Promise.all(
      spec.inputs.flatMap(({ source }) => {
        const measurer = measurers[source.slice(0, source.indexOf(':') + 1)]
        const isElsewhere = measurer?.serverEnv.some((name) => spec.env[name] !== undefined)
        return measurer === undefined || isElsewhere ? [] : [sizeOf(source, measurer.measure)]
      }),
    )
    return sizes.filter((size) => size !== undefined)
  }
}
