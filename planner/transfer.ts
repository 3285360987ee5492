import type { JobSpec } from '../core/job'
import { formatUsd, type MicroUsd } from '../core/money'
import type { DataTransfer, Offer } from '../core/offer'
import { formatBytes } from '../core/resources'
import { savingOf, type SavedBefore } from '../core/saving'
import { SECOND_MS } from '../core/time'
import { ASSUMED_CHECKPOINT_EVERY_MS, ASSUMED_DURATION_MS } from './assumptions'
import type { PlanRequest } from './request'

/** Providers bill by 10^9 bytes. */
const BYTES_PER_GB = 1e9

/** Data that a job transfers between its machines and the store. */
export interface Traffic {
  /** Code and, once known, files sent with it; read by each machine. */
  bundleBytes?: number
  /** The newest checkpoint of the job, or of one of its name. */
  savedBefore?: SavedBefore
  /** The first machine starts by restoring a checkpoint. */
  isResumed: boolean
}

/** Time and money for transferring a job's data to and from a store in another Region. */
export interface TransferEstimate {
  upBytes: number
  downBytes: number
  costMicroUsd: MicroUsd
  /** Time that the machine waits for reads. It saves while it works. */
  durationMs: number
  /** The size of its checkpoints is unknown, so they are not included. */
  isSizeUnknown: boolean
  /** It downloads inputs, which are not included. */
  hasInputs: boolean
}

/**
 * Each machine reads the bundle, and all but a fresh first one a checkpoint; a checkpoint is saved at every interval and at the
 * end. Inputs downloaded from elsewhere are not included, because their size is unknown beforehand.
 */
export function transferOf(
  way: DataTransfer,
  spec: JobSpec,
  { traffic, workMs, interruptions }: { traffic: Traffic; workMs: number; interruptions: number },
): TransferEstimate {
  const sizeBytes = savingOf(spec, traffic.savedBefore)?.sizeBytes
  const { bundleBytes = 0, isResumed } = traffic
  const saves = Math.floor(workMs / (spec.checkpoint.everyMs ?? ASSUMED_CHECKPOINT_EVERY_MS)) + 1
  const restores = interruptions + (isResumed ? 1 : 0)
  const upBytes = Math.round((sizeBytes ?? 0) * saves)
  const downBytes = Math.round((sizeBytes ?? 0) * restores + bundleBytes * (1 + interruptions))
  const costMicroUsd = Math.ceil(
    (upBytes * way.upMicroUsdPerGb + downBytes * way.downMicroUsdPerGb) / BYTES_PER_GB,
  )
  const durationMs = Math.ceil((downBytes / way.bytesPerSecond) * SECOND_MS)
  const hasInputs = spec.inputs.length > 0
  return { upBytes, downBytes, costMicroUsd, durationMs, isSizeUnknown: sizeBytes === undefined, hasInputs }
}

/** The same for an offer of a plan; `undefined` if the store is in the machine's Region. */
export function transferFor(
  { transfer: way }: Pick<Offer, 'transfer'>,
  { spec, savedBefore, bundleBytes, isFirst = false }: PlanRequest,
  interruptions: number,
): TransferEstimate | undefined {
  if (way === undefined) return undefined
  const traffic = {
    isResumed: !isFirst && savedBefore !== undefined,
    ...(savedBefore === undefined ? {} : { savedBefore }),
    ...(bundleBytes === undefined ? {} : { bundleBytes }),
  }
  const workMs = spec.durationMs ?? ASSUMED_DURATION_MS
  return transferOf(way, spec, { traffic, workMs, interruptions })
}

/** `including $0.24 for about 12 GB to and from the store in us-east-1, at $0.02 per GB` */
export function transferInWords(way: DataTransfer, transfer: TransferEstimate): string {
  const { upBytes, downBytes, costMicroUsd, isSizeUnknown, hasInputs } = transfer
  const inputs = hasInputs ? '; inputs not included' : ''
  const rate = rateInWords(way)
  const where = `to and from the store in ${way.storeRegion}`
  if (isSizeUnknown)
    return `moving checkpoints ${where} costs ${rate}, not included because their size is unknown (set \`checkpoint: { size: ... }\`)${inputs}`
  return `including ${formatUsd(costMicroUsd)} for about ${formatBytes(upBytes + downBytes)} ${where}, at ${rate}${inputs}`
}

/** `$0.02 and $0.09 per GB (assumed: the price list has none)` */
function rateInWords({ upMicroUsdPerGb, downMicroUsdPerGb, priceSource }: DataTransfer): string {
  const prices = [...new Set([upMicroUsdPerGb, downMicroUsdPerGb])].map((each) => formatUsd(each))
  const assumed = priceSource?.kind === 'static' ? ' (assumed: the price list has none)' : ''
  return `${prices.join(' and ')} per GB${assumed}`
}
