import type { Capabilities } from '../../core/capabilities'
import { FORECAST_PARTS } from '../../core/job/forecast'
import type { Offer } from '../../core/offer'
import { formatDuration } from '../../core/time/time'
import type { ArithmeticLine, ArithmeticPart } from '../../core/arithmetic'
import type { PlanRequest } from '../plan/request'
import { storingFor, storingInWords, type Storing } from '../plan/storing'
import { speedInWords, unknownSpeedInWords } from '../plan/work'
import { medianOf, movingOf, reservedMsOf } from './forecast'
import { partsOf, type Parts } from './parts'
import { exactly, type Range } from './range'
import { sampleOf, type Moving } from './sample'
import { partInWords } from './words'

/** Figures counted so far. */
interface Counted {
  parts: Parts
  offer: Offer
  moving: Moving
  storing: Storing | undefined
  reservedMs: number | undefined
}

/** The parts that are times, in the order of a life; each is counted by its middle. */
const TIMES = ['wait', 'boot', 'image', 'setup', 'fetch', 'restore', 'saving', 'stop'] as const

/**
 * The expected time and cost of a placement, part by part: the training time alone, then each further part by its middle, and at last the
 * ranges of all. Each line is by how much the median grows, so that the lines sum to `durationMs` and `costMicroUsd` of the forecast.
 */
export function arithmeticOf(
  offer: Offer,
  capabilities: Capabilities,
  { request, isShaky }: { request: PlanRequest; isShaky: boolean },
): ArithmeticLine[] {
  const parts = partsOf(offer, capabilities, { request, isShaky })
  const whole: Counted = {
    parts,
    offer,
    moving: movingOf(offer, request),
    storing: storingFor(request, parts.everyMs),
    reservedMs: reservedMsOf(offer, request),
  }
  const lines: ArithmeticLine[] = []
  let before = { ms: 0, microUsd: 0 }
  for (const { part, counted } of stepsOf(whole)) {
    const after = mediansOf(counted)
    const range = TIMES.find((time) => time === part)
    lines.push({
      part,
      words: wordsOf(part),
      addedMs: after.ms - before.ms,
      addedMicroUsd: after.microUsd - before.microUsd,
      lowMs: range === undefined ? null : Math.round(parts[range].low),
      highMs: range === undefined ? null : Math.round(parts[range].high),
      source: sourceOf(part, whole, request),
    })
    before = after
  }
  return lines.filter(
    ({ part, addedMs, addedMicroUsd }) =>
      part === 'duration' ||
      addedMs !== 0 ||
      addedMicroUsd !== 0 ||
      (part === 'store' && request.storePrice === 'unknown'),
  )
}

/** Yields the steps from the training time alone to all parts. */
function stepsOf(whole: Counted): { part: ArithmeticPart; counted: Counted }[] {
  const { parts, offer } = whole
  let counted = trainingAlone(whole)
  const steps: { part: ArithmeticPart; counted: Counted }[] = [{ part: 'duration', counted }]
  const add = (part: ArithmeticPart, more: Partial<Counted>): void => {
    counted = { ...counted, ...more }
    steps.push({ part, counted })
  }
  for (const part of TIMES) {
    const middle = exactly(parts[part].middle, parts[part].source)
    add(part, { parts: { ...counted.parts, [part]: middle } })
  }
  const { rate, shakyRate, waitAgain } = parts
  const again = exactly(waitAgain.middle, waitAgain.source)
  add('interruptions', { parts: { ...counted.parts, rate, shakyRate, waitAgain: again } })
  add('moves', { offer: billedInSeconds(offer), reservedMs: whole.reservedMs })
  add('billing', { offer })
  add('transfer', { moving: whole.moving })
  add('store', { storing: whole.storing })
  add('ranges', whole)
  return steps
}

function trainingAlone({ parts, offer }: Counted): Counted {
  const none = exactly(0, 'not counted yet')
  const one = exactly(1, 'its middle')
  const times = Object.fromEntries(TIMES.map((part): [string, Range] => [part, none]))
  return {
    parts: {
      ...parts,
      ...times,
      waitAgain: none,
      duration: one,
      speed: one,
      price: one,
      store: one,
      rate: none,
      shakyRate: none,
    },
    offer: withoutRunLimit(billedInSeconds(offer)),
    moving: { onceMicroUsd: 0, perMachineMicroUsd: 0 },
    storing: undefined,
    reservedMs: undefined,
  }
}

function billedInSeconds({ billedInStepsOfMs: _steps, billedAtLeastMs: _least, ...offer }: Offer): Offer {
  return offer
}

function withoutRunLimit({ runMsMax: _most, ...offer }: Offer): Offer {
  return offer
}

function mediansOf({ parts, offer, moving, storing, reservedMs }: Counted): { ms: number; microUsd: number } {
  const { doneMs, cost } = sampleOf(parts, offer, { moving, storing, reservedMs })
  return { ms: medianOf(doneMs), microUsd: medianOf(cost) }
}

function wordsOf(part: ArithmeticPart): string {
  const known = FORECAST_PARTS.find((one) => one === part)
  if (known !== undefined) return partInWords(known)
  return OTHER_WORDS[part as keyof typeof OTHER_WORDS]
}

const OTHER_WORDS = {
  moves: 'planned changes of machines',
  transfer: 'moving its data',
  ranges: 'the ranges of these parts',
} as const

function sourceOf(part: ArithmeticPart, { parts, offer }: Counted, request: PlanRequest): string {
  if (part === 'duration') return trainingOf(offer, parts, request)
  if (part === 'interruptions') return interruptionsOf(parts)
  if (part === 'billing') return billingOf(offer)
  if (part === 'transfer') return 'between its machines and a store in another Region'
  if (part === 'store') return storingInWords(request, parts.everyMs)
  if (part === 'ranges') return 'the median of all combinations, compared with the middle of each part'
  if (part !== 'moves') return parts[part].source
  return offer.runMsMax === undefined
    ? 'its reservation ends before the job does'
    : `its provider ends a machine after ${formatDuration(offer.runMsMax)}`
}

function trainingOf(offer: Offer, { duration, work }: Parts, request: PlanRequest): string {
  const { leftShare } = request
  const left = leftShare === undefined || leftShare === 1 ? [] : [`${percent(leftShare)} of it is left`]
  const speed = speedInWords(work) ?? unknownSpeedInWords(offer, work)
  return [duration.source, ...left, ...(speed === undefined ? [] : [speed])].join('; ')
}

function interruptionsOf({ shakyRate: { low, middle, high, source } }: Parts): string {
  const [least, usual, most] = [low, middle, high].map((each) => String(Number(each.toPrecision(2))))
  return `${usual} in an hour (${least} to ${most}), each with a new start and repeated work; ${source}`
}

function billingOf({ billedInStepsOfMs, billedAtLeastMs }: Offer): string {
  const steps = billedInStepsOfMs === undefined ? [] : [`in steps of ${formatDuration(billedInStepsOfMs)}`]
  const least = billedAtLeastMs === undefined ? [] : [`at least ${formatDuration(billedAtLeastMs)}`]
  return `it is billed ${[...steps, ...least].join(', ')}`
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
