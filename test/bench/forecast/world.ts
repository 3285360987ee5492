/**
 * A job whose true length, speed, starts, interruptions and prices are hidden from the planner, and what it finally costs. The job is lived
 * through machine by machine; nothing of the forecast's arithmetic is used, and bills are counted here.
 */
import type { Capabilities } from '../../../core/capabilities'
import type { JobSpec } from '../../../core/job/job'
import type { Offer } from '../../../core/offer'
import type { BackendAnswer } from '../../../core/job/plan'
import { speedOf } from '../../../core/speed'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import {
  ASSUMED_DURATION,
  ASSUMED_SPOT_INTERRUPTIONS,
  IMAGE_PULL,
  LAUNCH_WAIT,
  OLD_PRICE,
  RELAUNCH_WAIT,
  SET_UP,
  STATED_DURATION,
  STATED_INTERRUPTIONS,
  STOP,
} from '../../../planner/plan/assumptions'
import type { PlanRequest } from '../../../planner/plan/request'
import { storePriceOf } from '../../../storage/store-price'
import { Dice } from '../../kit/dice'
import { SPEC } from '../../support/spec'

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000
const NOW_MS = Date.UTC(2026, 10, 25)

export const CLASSES = ['on-demand', 'spot', 'reserved'] as const
export type Class = (typeof CLASSES)[number]

export interface HiddenJob {
  class: Class
  request: PlanRequest
  /** What the class of the job tells alone: how it is bought, and about how long it is. */
  classKey: string
  finalMicroUsd: number
  finalMs: number
}

interface Spread {
  low: number
  middle: number
  high: number
}

const TYPES: readonly (readonly [string, number])[] = [
  ['T4', 0.53],
  ['A10G', 1.01],
  ['V100', 3.06],
  ['L4', 0.8],
  ['A100', 4.1],
  ['H100', 6.88],
]
const LENGTHS_H = [0.25, 0.5, 1, 2, 4, 8, 16, 30]
/** Backends like EC2, Modal and Lambda: how they boot, round and limit. */
const BACKENDS: readonly { boot: Spread; stepMs: number; leastMs: number; limitMs?: number }[] = [
  { boot: { low: 60, middle: 105, high: 240 }, stepMs: SECOND, leastMs: MINUTE },
  { boot: { low: 3, middle: 20, high: 300 }, stepMs: SECOND, leastMs: 0, limitMs: 24 * HOUR },
  { boot: { low: 180, middle: 300, high: 900 }, stepMs: MINUTE, leastMs: 0 },
  { boot: { low: 60, middle: 120, high: 720 }, stepMs: HOUR, leastMs: HOUR },
]

/** One job of a class. */
export function hiddenJob(seed: number, kind: Class): HiddenJob {
  const dice = new Dice(seed)
  const [accelerator, dollars] = dice.oneOf(TYPES)
  const backend = kind === 'on-demand' ? dice.oneOf(BACKENDS) : BACKENDS[0]!
  const hours = dice.chance(0.25) ? undefined : dice.oneOf(LENGTHS_H)
  const everyMs = dice.oneOf([10, 20, 30, 60]) * MINUTE
  const isOld = kind === 'on-demand' && dice.chance(0.3)
  const told = kind === 'spot' && dice.chance(0.5) ? dice.oneOf([0.05, 0.1, 0.3]) : undefined
  const spec: JobSpec = {
    ...SPEC,
    resources: { gpus: { min: 1 } },
    checkpoint: { directory: 'checkpoints', everyMs, sizeBytes: seed % 2 === 0 ? 1e9 : undefined },
    ...(dice.chance(0.5) && { setup: 'pip install -r requirements.txt' }),
    ...(dice.chance(0.5) && { image: 'pytorch/pytorch' }),
    ...(hours !== undefined && { durationMs: hours * HOUR, durationOn: 'A100' }),
  }
  const price = Math.round(dollars * (kind === 'spot' ? 0.35 : 1) * 1e6)
  const offer: Offer = {
    backend: 'somewhere',
    capacityType: kind,
    type: accelerator,
    place: 'a',
    shape: { cpus: 8, memoryGiB: 60, gpus: 1, accelerator, gpuMemoryGiB: 40 },
    priceMicroUsdPerHour: price,
    priceSource: { kind: isOld ? 'static' : 'live', observedAtMs: isOld ? NOW_MS - 90 * 24 * HOUR : NOW_MS },
    availability: 'available',
    billedInStepsOfMs: backend.stepMs,
    billedAtLeastMs: backend.leastMs,
    runMsMax: backend.limitMs,
    priceMaxMicroUsdPerHour: kind === 'spot' ? Math.round(dollars * 1e6) : undefined,
    interruptionsPerHour: told,
    ...(kind === 'reserved' && {
      reservationId: 'r-1',
      reservation: { free: 1, total: 1, idleMicroUsdPerHour: price },
      usableUntilMs: NOW_MS + dice.oneOf([24, 72, 336]) * HOUR,
    }),
  }
  const { low, middle, high } = backend.boot
  const boot = { lowMs: low * SECOND, middleMs: middle * SECOND, highMs: high * SECOND, source: 'the world' }
  const capabilities: Capabilities = {
    capacityTypes: [kind],
    imageRunner: 'runner',
    runnerStart: 'with-launch',
    idempotency: 'token',
    billsUntil: 'exit',
    price: 'live',
    boot,
  }
  const answers: BackendAnswer[] = [{ backend: 'somewhere', capabilities, offers: [offer] }]
  const bucket = hours === undefined ? 'unknown' : hours <= 1 ? 'short' : hours <= 8 ? 'medium' : 'long'
  const request: PlanRequest = {
    spec,
    timing: DEFAULT_TIMING,
    answers,
    silentBackends: [],
    avoid: [],
    nowMs: NOW_MS,
    isFirst: true,
    storePrice: storePriceOf('s3://jobs')!,
  }
  const { onMs, finalMicroUsd, finalMs } = live(dice, { spec, offer, boot: backend.boot, told, isOld })
  return {
    class: kind,
    request,
    classKey: `${kind}, ${bucket}`,
    finalMs,
    finalMicroUsd: Math.round(finalMicroUsd + storeBillOf(dice, spec, onMs)),
  }
}

interface Facts {
  spec: JobSpec
  offer: Offer
  /** Seconds. */
  boot: Spread
  told: number | undefined
  isOld: boolean
}

/** Half of the spread of a start is the job's own (its image, its packages), half is that of each machine. */
class Start {
  private readonly own: number

  constructor(
    private readonly dice: Dice,
    private readonly spread: Spread,
  ) {
    this.own = normal(dice)
  }

  next(): number {
    return at(this.spread, Math.SQRT1_2 * (this.own + normal(this.dice)))
  }
}

function live(
  dice: Dice,
  { spec, offer, boot, told, isOld }: Facts,
): { finalMicroUsd: number; finalMs: number; onMs: number } {
  const speed = speedOf(offer.shape.accelerator!, 'A100')!
  const factor = at({ low: speed.low, middle: speed.factor, high: speed.high }, normal(dice))
  const length = at(spec.durationMs === undefined ? ASSUMED_DURATION : STATED_DURATION, normal(dice))
  const trainingMs = ((spec.durationMs ?? HOUR) * length) / factor
  const rate =
    offer.capacityType !== 'spot'
      ? 0
      : told === undefined
        ? at(ASSUMED_SPOT_INTERRUPTIONS, normal(dice))
        : told * at(STATED_INTERRUPTIONS, normal(dice))
  const starts = [
    new Start(dice, { low: boot.low * SECOND, middle: boot.middle * SECOND, high: boot.high * SECOND }),
    ...(spec.setup === undefined ? [] : [new Start(dice, SET_UP)]),
    ...(spec.image === undefined ? [] : [new Start(dice, IMAGE_PULL)]),
  ]
  const priceFactor = isOld ? at(OLD_PRICE, normal(dice)) : 1
  const everyMs = spec.checkpoint.everyMs!
  let clockMs = 0
  let allOnMs = 0
  let savedMs = 0
  let bill = 0
  let drift = 0
  for (let machine = 0; ; machine += 1) {
    clockMs += at(machine === 0 ? LAUNCH_WAIT : RELAUNCH_WAIT, normal(dice))
    const startMs = starts.reduce((sum, each) => sum + each.next(), 0)
    const restoreMs =
      machine === 0 ? 0 : at({ low: SECOND, middle: 10 * SECOND, high: 3 * MINUTE }, normal(dice))
    const stopMs = at(STOP, normal(dice))
    const lifeMs = rate === 0 ? Infinity : -Math.log(1 - dice.next()) * (HOUR / rate)
    const reservedMs = machine === 0 ? (offer.usableUntilMs ?? Infinity) - NOW_MS - clockMs : Infinity
    const limitMs = Math.min(offer.runMsMax ?? Infinity, reservedMs)
    const readyMs = startMs + restoreMs
    const neededMs = readyMs + (trainingMs - savedMs) + stopMs
    const onMs = Math.min(neededMs, lifeMs, limitMs)
    if (offer.capacityType === 'spot') drift += normal(dice) * 0.003 * Math.sqrt(Math.min(48, onMs / HOUR))
    bill += billOf(onMs, offer, priceFactor * Math.exp(drift))
    clockMs += onMs
    allOnMs += onMs
    if (onMs === neededMs) return { finalMicroUsd: bill, finalMs: clockMs, onMs: allOnMs }
    const trainedMs = Math.max(0, onMs - readyMs - (onMs === limitMs ? stopMs : 0))
    // Planned changes save; an interruption loses what was trained since the last full interval.
    savedMs += onMs === limitMs ? trainedMs : Math.floor(trainedMs / everyMs) * everyMs
  }
}

/**
 * What S3 charges in a hidden Region: a beat and a list every five seconds, a chunk of the log at least every minute and at most every two
 * seconds, and three kept checkpoints that are uploaded in parts.
 */
function storeBillOf(dice: Dice, { checkpoint }: JobSpec, onMs: number): number {
  const regional = dice.oneOf([1, 1, 1, 1.07, 1.09, 1.76])
  const logEveryMs = 2 * SECOND * 30 ** dice.next()
  const { sizeBytes = 0, everyMs = HOUR } = checkpoint
  const parts = Math.ceil(sizeBytes / 2 ** 24) + 3
  const beats = onMs / (5 * SECOND)
  const writes =
    2 * beats + onMs / logEveryMs + (Math.floor(onMs / everyMs) + 1) * (sizeBytes > 0 ? parts : 0)
  const keptGbMonths = ((3 * sizeBytes) / 1e9) * (onMs / (730 * HOUR))
  return regional * (writes * 5 + 3 * beats * 0.4 + keptGbMonths * 23_000)
}

/** Steps of billing, each begun one in full. */
function billOf(onMs: number, offer: Offer, factor: number): number {
  const step = offer.billedInStepsOfMs ?? SECOND
  const steps = Math.ceil(Math.max(onMs, offer.billedAtLeastMs ?? 0) / step)
  return (steps * step * offer.priceMicroUsdPerHour * factor) / HOUR
}

/** A lognormal value on each side of the middle, by its 5 % and 95 % points. */
function at({ low, middle, high }: Spread, z: number): number {
  const end = z < 0 ? low : high
  return middle * (end / middle) ** (Math.abs(z) / 1.645)
}

/** By Box and Muller. */
function normal(dice: Dice): number {
  return Math.sqrt(-2 * Math.log(1 - dice.next())) * Math.cos(2 * Math.PI * dice.next())
}
