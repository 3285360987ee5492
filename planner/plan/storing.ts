import { CHECKPOINT_PART_BYTES, CHECKPOINTS_KEPT } from '../../core/job/checkpoint'
import type { MicroUsd } from '../../core/money/money'
import { formatBytes } from '../../core/resources'
import { savingOf } from '../../core/job/saving'
import type { StorePrice } from '../../core/money/store-price'
import { HOUR_MS } from '../../core/time/time'
import { LOG_CHUNKS_PER_BEAT, REQUESTS_PER_BEAT, REQUESTS_PER_SAVE } from './assumptions'
import type { PlanRequest } from './request'

/** Expected charges of the store for a job, without the transfer of its data. */
export interface Storing {
  /** Cost of saving its last checkpoint. */
  onceMicroUsd: MicroUsd
  /** Cost for each machine after the first one, which restores a checkpoint. */
  perMachineMicroUsd: MicroUsd
  /** While a machine is on: kept checkpoints and code, beats, logs, and saving checkpoints. */
  perHourMicroUsd: MicroUsd
}

/** S3 bills by the hour; this is its average month. */
const HOURS_PER_MONTH = 730
const THOUSAND = 1_000
/** Size of a GB in a GB-month. According to the examples of the S3 FAQ (read November 2026) it is 2^30 bytes, unlike a transferred GB. */
const BYTES_PER_GB_MONTH = 2 ** 30

/**
 * Returns the storage cost; nothing if the store is free or its price is unknown. Checkpoints of unknown size and artifacts are not
 * included.
 */
export function storingFor(request: PlanRequest, everyMs: number): Storing | undefined {
  const { storePrice: price, bundleBytes = 0 } = request
  if (price === undefined || price === 'unknown') return undefined
  const { writes, reads } = requestsPerHour(request)
  const { count, sizeBytes } = keptOf(request, everyMs)
  const keptGb = (count * sizeBytes + bundleBytes) / BYTES_PER_GB_MONTH
  const parts = Math.ceil(sizeBytes / CHECKPOINT_PART_BYTES)
  const perSave = REQUESTS_PER_SAVE
  const saveMicroUsd =
    count === 0 ? 0 : writesCost(parts + perSave.writes, price) + readsCost(perSave.reads, price)
  return {
    onceMicroUsd: saveMicroUsd,
    perMachineMicroUsd: readsCost(parts, price),
    perHourMicroUsd:
      (keptGb * price.microUsdPerGbMonth) / HOURS_PER_MONTH +
      writesCost(writes, price) +
      readsCost(reads, price) +
      (saveMicroUsd * HOUR_MS) / everyMs,
  }
}

function writesCost(count: number, { microUsdPerThousandWrites }: StorePrice): number {
  return (count * microUsdPerThousandWrites) / THOUSAND
}

function readsCost(count: number, { microUsdPerThousandReads }: StorePrice): number {
  return (count * microUsdPerThousandReads) / THOUSAND
}

function requestsPerHour({ timing }: Pick<PlanRequest, 'timing'>): { writes: number; reads: number } {
  const beats = HOUR_MS / timing.beatMs
  const { writes, reads } = REQUESTS_PER_BEAT
  return { writes: (writes + LOG_CHUNKS_PER_BEAT) * beats, reads: reads * beats }
}

/** Returns the number of kept checkpoints, counted from the job's start. `everyMs` is infinite if the job saves none. */
function keptOf({ spec, savedBefore }: PlanRequest, everyMs: number): { count: number; sizeBytes: number } {
  const sizeBytes = savingOf(spec, savedBefore)?.sizeBytes ?? 0
  const isKept = everyMs !== Infinity && sizeBytes > 0
  return isKept ? { count: spec.checkpoint.keep ?? CHECKPOINTS_KEPT, sizeBytes } : { count: 0, sizeBytes: 0 }
}

/** Explains the source of the figure: `3 checkpoints of 10 GB at $0.023 per GB-month, ...`. */
export function storingInWords(request: PlanRequest, everyMs: number): string {
  const { storePrice: price } = request
  if (price === undefined) return 'its store is free'
  if (price === 'unknown') return 'not included: the prices of its store are unknown'
  const { count, sizeBytes } = keptOf(request, everyMs)
  const isUnsized = everyMs !== Infinity && sizeBytes === 0
  const { writes, reads } = requestsPerHour(request)
  const [gbMonth, perWrites, perReads] = [
    price.microUsdPerGbMonth,
    price.microUsdPerThousandWrites,
    price.microUsdPerThousandReads,
  ].map((each) => `$${each / 1e6}`)
  return [
    ...(count === 0 ? [] : [`${count} checkpoints of ${formatBytes(sizeBytes)} at ${gbMonth} per GB-month`]),
    ...(isUnsized ? ['without its checkpoints, whose size is unknown'] : []),
    `about ${Math.round(writes)} writes and ${Math.round(reads)} reads an hour at ${perWrites} and ${perReads} per 1,000`,
    `${price.name}, ${new Date(price.observedAtMs).toISOString().slice(0, 10)}`,
  ].join('; ')
}
