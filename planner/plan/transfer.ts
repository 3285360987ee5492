import type { JobSpec } from '../../core/job/job'
import { formatUsd, type MicroUsd } from '../../core/money/money'
import type { DataTransfer, Offer } from '../../core/offer'
import { formatBytes } from '../../core/resources'
import { savingOf, type SavedBefore } from '../../core/job/saving'
import { ASSUMED_CHECKPOINT_EVERY_MS } from './assumptions'
import { BYTES_PER_GB, inputsInWords, inputTrafficOf, type InputTraffic } from './input-transfer'
import type { PlanRequest } from './request'
import { workOn } from './work'

/** Data that a job transfers between its machines and the store. */
interface Traffic {
  /** Size of the code and, once known, of files sent with it. Each machine reads it. */
  bundleBytes?: number
  /** The newest checkpoint of the job, or of one of its name. */
  savedBefore?: SavedBefore
  /** The first machine starts by restoring a checkpoint. */
  isResumed: boolean
}

/** The cost of transferring a job's data to and from other Regions. */
export interface TransferEstimate {
  /** Bytes to the store; `downBytes` are those from it. */
  upBytes: number
  downBytes: number
  /** Cost of the whole transfer, including inputs. */
  costMicroUsd: MicroUsd
  /** The size of its checkpoints is unknown, so they are not included. */
  isSizeUnknown: boolean
  inputs: InputTraffic
}

/**
 * Returns the transfer with the store. Each machine reads the bundle, and all except a fresh first one read a checkpoint. A checkpoint is
 * saved at every interval and at the end.
 */
function storeTransferOf(
  way: DataTransfer,
  spec: JobSpec,
  { traffic, interruptions, workMs }: { traffic: Traffic; interruptions: number; workMs: number },
): Omit<TransferEstimate, 'inputs'> {
  const { sizeBytes, restoredBytes = 0 } = savingOf(spec, traffic.savedBefore) ?? {}
  const { bundleBytes = 0, isResumed } = traffic
  const saves = Math.floor(workMs / (spec.checkpoint.everyMs ?? ASSUMED_CHECKPOINT_EVERY_MS)) + 1
  const restores = interruptions + (isResumed ? 1 : 0)
  const upBytes = Math.round((sizeBytes ?? 0) * saves)
  const downBytes = Math.round(restoredBytes * restores + bundleBytes * (1 + interruptions))
  const costMicroUsd = Math.ceil(
    (upBytes * way.upMicroUsdPerGb + downBytes * way.downMicroUsdPerGb) / BYTES_PER_GB,
  )
  return { upBytes, downBytes, costMicroUsd, isSizeUnknown: sizeBytes === undefined }
}

/** The store is in the Region of the machine. */
const NOTHING = { upBytes: 0, downBytes: 0, costMicroUsd: 0, isSizeUnknown: false }

/** The cost of moving the data of a plan's job on an offer; `undefined` if store and inputs are in the machine's Region. */
export function transferFor(
  offer: Pick<Offer, 'transfer' | 'region' | 'shape'>,
  request: PlanRequest,
  interruptions: number,
): TransferEstimate | undefined {
  const { spec, savedBefore, bundleBytes, isFirst = false } = request
  const inputs = inputTrafficOf(offer, request, 1 + interruptions)
  if (offer.transfer === undefined && inputs.costMicroUsd === 0) return undefined
  const traffic = {
    isResumed: !isFirst && savedBefore !== undefined,
    savedBefore,
    bundleBytes,
  }
  const store =
    offer.transfer === undefined
      ? NOTHING
      : storeTransferOf(offer.transfer, spec, { traffic, interruptions, workMs: workOn(offer, request).ms })
  return { ...store, costMicroUsd: store.costMicroUsd + inputs.costMicroUsd, inputs }
}

/** The sentences of a plan about it. */
export function transferReasons(
  { transfer: way }: Pick<Offer, 'transfer'>,
  transfer: TransferEstimate,
): string[] {
  const ofInputs = inputsInWords(transfer.inputs)
  return [
    ...(way === undefined ? [] : [storeTransferInWords(way, transfer)]),
    ...(ofInputs === undefined ? [] : [ofInputs]),
  ]
}

/** `including $0.24 for about 12 GB to and from the store in us-east-1, at $0.02 per GB` */
function storeTransferInWords(
  way: DataTransfer,
  { upBytes, downBytes, costMicroUsd, isSizeUnknown, inputs: read }: TransferEstimate,
): string {
  const inputs = read.uncounted > 0 && read.ways.length === 0 ? '; inputs not included' : ''
  const rate = rateInWords(way)
  const where = `to and from the store in ${way.storeRegion}`
  if (isSizeUnknown)
    return `moving checkpoints ${where} costs ${rate}, not included because their size is unknown (set \`checkpoint: { size: ... }\`)${inputs}`
  return `including ${formatUsd(costMicroUsd - read.costMicroUsd)} for about ${formatBytes(upBytes + downBytes)} ${where}, at ${rate}${inputs}`
}

/** Describes a rate: `$0.02 and $0.09 per GB (assumed: the price list has none)`. */
function rateInWords({ upMicroUsdPerGb, downMicroUsdPerGb, priceSource }: DataTransfer): string {
  const prices = [...new Set([upMicroUsdPerGb, downMicroUsdPerGb])].map((each) => formatUsd(each))
  const assumed = priceSource?.kind === 'static' ? ' (assumed: the price list has none)' : ''
  return `${prices.join(' and ')} per GB${assumed}`
}
