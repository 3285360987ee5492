import type { BootTime, Capabilities } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import { isInterruptible, type Offer } from '../../core/offer'
import { ASSUMED_UPLOAD_BYTES_PER_SECOND, savingOf, type Saving } from '../../core/job/saving'
import { SECOND_MS } from '../../core/time/time'
import {
  ASSUMED_CHECKPOINT_EVERY_MS,
  ASSUMED_DURATION,
  ASSUMED_SPOT_INTERRUPTIONS,
  BOOT,
  IMAGE_PULL,
  LAUNCH_WAIT,
  NEAR_BYTES_PER_SECOND,
  OLD_PRICE,
  QUEUE_WAIT,
  RELAUNCH_WAIT,
  SET_UP,
  SHAKY_INTERRUPTIONS,
  SPOT_PRICE,
  STATED_DURATION,
  STATED_INTERRUPTIONS,
  STATIC_PRICE_OLD_MS,
  STOP,
  STORE_CHARGES,
  TRANSFER_SPREAD,
  UNKNOWN_INPUTS,
  UNKNOWN_RESTORE,
  UNKNOWN_SPEED,
  WRITE_BYTES_PER_SECOND,
} from '../plan/assumptions'
import { inputTrafficOf } from '../plan/input-transfer'
import type { PlanRequest } from '../plan/request'
import { isResumable } from '../plan/run-limit'
import { jobsInWords, workOn, type Work } from '../plan/work'
import { exactly, scaled, type Range } from './range'

/** The parts of a forecast, each with its range: times in milliseconds, factors, and a rate. */
export interface Parts {
  wait: Range
  /** Wait after an interruption, or for a planned change of machines. */
  waitAgain: Range
  boot: Range
  image: Range
  setup: Range
  fetch: Range
  /** Restore time of each machine that resumes; `isResumed` is true if the first one does. */
  restore: Range
  isResumed: boolean
  work: Work
  /** Training time without interruptions at the middle of `duration` and `speed`. */
  workMs: number
  /** Factors on it. */
  duration: Range
  speed: Range
  /** The program's time for one checkpoint, and the interval between two, which is infinite without checkpoints. */
  saving: Range
  everyMs: number
  /** Interruptions per hour that a machine is on; `shakyRate` instead where the job lost a machine recently. */
  rate: Range
  shakyRate: Range
  stop: Range
  /** Factor on the price. */
  price: Range
  /** Factor on the charges of the store. */
  store: Range
}

const BYTES_PER_MIB = 2 ** 20
const NONE = exactly(0, 'not needed')
const NEVER_INTERRUPTED = exactly(0, 'its provider takes no machine back')
const NO_GPU = exactly(1, 'no GPU trains')
const CONSTANT_PRICE = exactly(1, 'its price is constant')

export function partsOf(
  offer: Offer,
  capabilities: Capabilities,
  { request, isShaky }: { request: PlanRequest; isShaky: boolean },
): Parts {
  const { spec, savedBefore, isFirst = false } = request
  const saving = savingOf(spec, savedBefore)
  const work = workOn(offer, request)
  const rate = rateOf(offer)
  return {
    wait: capabilities.queues === true ? QUEUE_WAIT : LAUNCH_WAIT,
    waitAgain: RELAUNCH_WAIT,
    boot: bootOf(offer, capabilities),
    image: spec.image !== undefined && capabilities.imageRunner === 'runner' ? IMAGE_PULL : NONE,
    setup: spec.setup === undefined ? NONE : SET_UP,
    fetch: fetchOf(offer, request),
    restore: restoreOf(offer, spec, saving),
    isResumed: !isFirst && savedBefore !== undefined,
    work,
    workMs: work.ms,
    duration: spec.durationMs === undefined ? ASSUMED_DURATION : STATED_DURATION,
    speed: speedOf(work),
    saving: writingOf(request, saving),
    everyMs: isResumable(spec) ? (spec.checkpoint.everyMs ?? ASSUMED_CHECKPOINT_EVERY_MS) : Infinity,
    rate,
    shakyRate: isShaky && rate.middle < SHAKY_INTERRUPTIONS.middle ? SHAKY_INTERRUPTIONS : rate,
    stop: stopOf(offer, saving),
    price: priceOf(offer, request.nowMs),
    store: STORE_CHARGES,
  }
}

function bootOf({ shape }: Offer, { boot }: Capabilities): Range {
  if (boot === undefined) return BOOT
  const { lowMs, middleMs, highMs, perGiB, source } = boot
  const gib = perGiB === undefined ? 0 : Math.max(0, shape.memoryGiB - perGiB.aboveGiB)
  const ranges = BOOTS.get(boot) ?? new Map<number, Range>()
  BOOTS.set(boot, ranges)
  let range = ranges.get(gib)
  if (range === undefined) {
    const longer = (ms: number, more = 0): number => ms + gib * more
    range = {
      low: longer(lowMs, perGiB?.lowMs),
      middle: longer(middleMs, perGiB?.middleMs),
      high: longer(highMs, perGiB?.highMs),
      source: gib === 0 ? source : `${source}; more for its ${Math.round(shape.memoryGiB)} GiB of memory`,
    }
    ranges.set(gib, range)
  }
  return range
}

/** Ranges of boot times, one object for all equal ones of a backend, so that its values are computed once. */
const BOOTS = new WeakMap<BootTime, Map<number, Range>>()

/** Returns the speed as a factor on the training time. */
function speedOf({ ms, fastMs, slowMs, speed, reference }: Work): Range {
  if (reference === undefined || ms === 0) return NO_GPU
  if (speed === undefined) return UNKNOWN_SPEED
  const published = speed.basis === 'measured' ? 'published measurements' : 'data sheets'
  const source = speed.jobs === undefined ? published : `${published} and ${jobsInWords(speed.jobs)}`
  return { low: fastMs / ms, middle: 1, high: slowMs / ms, source }
}

function rateOf(offer: Offer): Range {
  if (!isInterruptible(offer)) return NEVER_INTERRUPTED
  const { interruptionsPerHour } = offer
  return interruptionsPerHour === undefined
    ? ASSUMED_SPOT_INTERRUPTIONS
    : scaled(STATED_INTERRUPTIONS, interruptionsPerHour)
}

/** The code and inputs that each machine reads. */
function fetchOf(offer: Offer, request: PlanRequest): Range {
  const { spec, bundleBytes = 0, inputSizes = [] } = request
  const inputs = spec.inputs.filter(({ source }) => !source.startsWith('file://'))
  const sizes = inputs.map(({ source }) => inputSizes.find((one) => one.source === source)?.sizeBytes)
  if (sizes.includes(undefined)) return UNKNOWN_INPUTS
  const far = inputTrafficOf(offer, request, 1)
  const nearBytes = sizes.reduce<number>((sum, each) => sum + (each ?? 0), 0) - far.bytes
  const ms =
    movingMs(bundleBytes, offer, offer.transfer?.bytesPerSecond) +
    movingMs(nearBytes, offer) +
    movingMs(far.bytes, offer, far.bytesPerSecond)
  return spreadOf(ms, 'the sizes of code and inputs')
}

function restoreOf(offer: Offer, spec: JobSpec, saving: Saving | undefined): Range {
  if (!isResumable(spec)) return NONE
  if (saving === undefined) return UNKNOWN_RESTORE
  const ms = movingMs(saving.restoredBytes, offer, offer.transfer?.bytesPerSecond)
  return spreadOf(ms, 'the size of a checkpoint')
}

/** The program waits while it writes; the runner uploads while it trains. */
function writingOf({ spec, savedBefore }: PlanRequest, saving: Saving | undefined): Range {
  if (saving === undefined || !isResumable(spec)) return NONE
  const measuredMs = savedBefore?.saveMs
  if (measuredMs !== undefined && measuredMs > 0)
    return { ...spread(measuredMs, 1.5), source: 'measured by the runner' }
  const { low, middle, high, source } = WRITE_BYTES_PER_SECOND
  const msAt = (bytesPerSecond: number): number => (saving.sizeBytes / bytesPerSecond) * SECOND_MS
  return { low: msAt(high), middle: msAt(middle), high: msAt(low), source }
}

/** The last checkpoint is uploaded before the machine is off. */
function stopOf(offer: Offer, saving: Saving | undefined): Range {
  if (saving === undefined) return STOP
  const { transfer } = offer
  const isMeasured = transfer === undefined && saving.isMeasured
  const uploadMs = isMeasured
    ? saving.durationMs
    : movingMs(saving.sizeBytes, offer, transfer?.bytesPerSecond)
  const upload = spread(uploadMs, TRANSFER_SPREAD)
  const { low, middle, high, source } = STOP
  return { low: low + upload.low, middle: middle + upload.middle, high: high + upload.high, source }
}

function priceOf({ capacityType, priceMaxMicroUsdPerHour, priceSource }: Offer, nowMs: number): Range {
  const { kind, observedAtMs } = priceSource
  if (kind === 'static' && nowMs - observedAtMs > STATIC_PRICE_OLD_MS) return OLD_PRICE
  return capacityType === 'spot' && priceMaxMicroUsdPerHour !== undefined ? SPOT_PRICE : CONSTANT_PRICE
}

function transferMs(bytes: number, bytesPerSecond = ASSUMED_UPLOAD_BYTES_PER_SECOND): number {
  return (bytes / bytesPerSecond) * SECOND_MS
}

/** Time to move data between a store and the disk of a machine: as fast as both can. A disk of unknown speed is not the slower one. */
function movingMs(
  bytes: number,
  { shape: { diskMibPerSecond } }: Offer,
  farBytesPerSecond: number | undefined = undefined,
): number {
  if (diskMibPerSecond === undefined) return transferMs(bytes, farBytesPerSecond)
  const storeBytesPerSecond = farBytesPerSecond ?? NEAR_BYTES_PER_SECOND
  return transferMs(bytes, Math.min(storeBytesPerSecond, diskMibPerSecond * BYTES_PER_MIB))
}

function spreadOf(ms: number, source: string): Range {
  return ms === 0 ? NONE : { ...spread(ms, TRANSFER_SPREAD), source }
}

function spread(middle: number, factor: number): Omit<Range, 'source'> {
  return { low: middle / factor, middle, high: middle * factor }
}
