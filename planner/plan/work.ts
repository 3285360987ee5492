import type { JobSpec } from '../../core/job/job'
import type { Offer } from '../../core/offer'
import { wantsGpu } from '../../core/resources'
import {
  SPEED_REFERENCE,
  speedOf,
  type OwnRatio,
  type RelativeSpeed,
  type WorkFamily,
} from '../../core/speed'
import { ASSUMED_DURATION_MS } from './assumptions'

/** The training time that is left on an offer, without interruptions. */
export interface Work {
  ms: number
  /** Fast end of the range in which nine of ten trainings are expected; `slowMs` is the slow end. */
  fastMs: number
  slowMs: number
  /** Speed as a multiple of the speed of `reference`; missing if no GPU trains or the type is unknown. */
  speed?: RelativeSpeed
  /** The accelerator that the job's duration refers to; missing where no GPU trains. */
  reference?: string
  /** The family of work that `speed` is for; missing for any. */
  family?: WorkFamily
}

/** Terms of a job's work that do not depend on the offer. */
export interface WorkTerms {
  spec: JobSpec
  /** Share of the work that no checkpoint contains yet, from 0 to 1; all of it if missing. */
  leftShare?: number | undefined
  /** Measurements of the deployment's own jobs. */
  ownRatios?: readonly OwnRatio[] | undefined
}

/** The accelerator that a job's duration refers to: as stated, or the first one that the job names, or the reference. */
export function durationOn({ durationOn: stated, resources }: JobSpec): string {
  return stated ?? resources.accelerators?.[0] ?? SPEED_REFERENCE
}

/**
 * Time for the rest of a job's work on an offer. The stated duration is that on one accelerator type; others take longer or shorter. A type
 * of unknown speed counts as that one.
 */
export function workOn({ shape }: Pick<Offer, 'shape'>, { spec, leftShare = 1, ownRatios }: WorkTerms): Work {
  const statedMs = Math.round((spec.durationMs ?? ASSUMED_DURATION_MS) * leftShare)
  const { accelerator } = shape
  if (!wantsGpu(spec.resources) || accelerator === undefined)
    return { ms: statedMs, fastMs: statedMs, slowMs: statedMs }
  const reference = durationOn(spec)
  const { speedFactor = 1 } = shape
  const at = (factor: number): number => Math.round(statedMs / factor)
  const known = speedOf(accelerator, reference, { family: spec.workFamily, own: ownRatios })
  if (known === undefined) {
    const ms = at(speedFactor)
    return { ms, fastMs: ms, slowMs: ms, reference }
  }
  const speed = scaledSpeed(known, speedFactor)
  const family = spec.workFamily
  return {
    ms: at(speed.factor),
    fastMs: at(speed.high),
    slowMs: at(speed.low),
    speed,
    reference,
    family,
  }
}

function scaledSpeed(speed: RelativeSpeed, by: number): RelativeSpeed {
  if (by === 1) return speed
  return { ...speed, factor: speed.factor * by, low: speed.low * by, high: speed.high * by }
}

/** `about 0.26 times the speed of the A100 for a transformer (0.19 to 0.37, from its data sheet)`; nothing for the type that the duration refers to. */
export function speedInWords({ speed, reference, family }: Work): string | undefined {
  if (speed === undefined || (speed.low === 1 && speed.high === 1)) return undefined
  const [factor, low, high] = [speed.factor, speed.low, speed.high].map((each) =>
    String(Number(each.toPrecision(2))),
  )
  const basis = [
    speed.basis === 'measured' ? 'measured' : 'from its data sheet',
    ...(speed.jobs === undefined ? [] : [`and measured on ${jobsInWords(speed.jobs)}`]),
  ].join(' ')
  const work = family === undefined ? 'work of any kind' : FAMILY_IN_WORDS[family]
  return `about ${factor} times the speed of the ${reference} for ${work} (${low} to ${high}, ${basis})`
}

const FAMILY_IN_WORDS: Readonly<Record<WorkFamily, string>> = {
  convolution: 'a convolutional network',
  transformer: 'a transformer',
  recurrent: 'a recurrent or speech model',
  recommendation: 'a recommendation model',
  fp32: 'training in fp32',
  'memory-bound': 'memory-bound work',
}

/** `3 of your jobs` */
export function jobsInWords(jobs: number): string {
  return `${jobs} of your jobs`
}

/** The risk of a type of unknown speed. */
export function unknownSpeedInWords({ shape }: Pick<Offer, 'shape'>, work: Work): string | undefined {
  if (work.reference === undefined || work.speed !== undefined) return undefined
  return `the training speed of ${shape.accelerator ?? 'its GPU'} is unknown; the speed of the ${work.reference} is assumed`
}
