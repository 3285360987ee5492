import type { FaultText } from '#small-cloud'
import { drawFault } from '../clouds/faults'
import type { CloudProvider, Company } from '../clouds/provider'
import { COMPANY_CHANCE, durationsOf } from '../clouds/world'
import { Dice } from '../kit/dice'
import { LIFE_NAMES, LIVES, type LifeName } from './lives'
import { MOMENTS, type Death } from './process'

/** Where a process may die: the call, its repetition, and the moment in it. */
export interface Point extends Pick<Death, 'moment'> {
  /** `activity: call`, as `launch: CreateFleet`. */
  call: string
  /** From 1. */
  occurrence: number
  /** The lives in which it comes. */
  lives: LifeName[]
}

/** A process that dies. */
export interface Crash extends Omit<Point, 'lives'>, Death {
  /** The other process dies with it, as where both are on one machine. */
  isOfBoth: boolean
}

export interface CrashPlan {
  name: string
  life: LifeName
  crashes: Crash[]
  /** What the cloud does in addition to the events of the life. */
  faults: FaultText[]
  /** How far the cloud's words are behind. */
  durations: ReturnType<typeof durationsOf>
  /** Garbage is collected while the job lives, too. */
  isSweptMeanwhile: boolean
  /** The account is one of a company. */
  company?: Company
}

/** How often each call was made in an undisturbed life. */
export type Calls = ReadonlyMap<string, number>
export type LivedCalls = ReadonlyMap<LifeName, Calls>

/** Polls come again and again: the third is as the second. */
const OCCURRENCES_MAX = 2

/** Every point of the lives that were seen, in an order that does not hang on how they went. */
export function pointsOf(seen: LivedCalls): Point[] {
  const calls = [...new Set([...seen.values()].flatMap((each) => [...each.keys()]))].sort()
  const occurrences = Array.from({ length: OCCURRENCES_MAX }, (_, index) => index + 1)
  return calls
    .flatMap((call) =>
      occurrences.flatMap((occurrence) => {
        const lives = LIFE_NAMES.filter((life) => (seen.get(life)?.get(call) ?? 0) >= occurrence)
        return MOMENTS.map((moment) => ({ call, occurrence, moment, lives }))
      }),
    )
    .filter(({ lives }) => lives.length > 0)
}

export function nameOf({ call, occurrence, moment }: Omit<Point, 'lives'>): string {
  return `${moment} ${call} ${occurrence}`
}

const SECOND_CRASH_CHANCE = 0.4
const BOTH_CHANCE = 0.2
const FAULT_CHANCE = 0.2
const SWEEP_CHANCE = 0.25
const LATE_MAX_MS = 2_000

/** Trouble of the cloud that takes time and no machine. */
const FAULTS = [
  'error',
  'lost-answer',
  'slow',
  'command-doubled',
  'command-late',
  'command-truncated',
] as const

/** The plan of a seed: any row of seeds goes through the points one after the other, and through the lives of each. */
export function planOf(
  seed: number,
  points: readonly Point[],
  { provider, all = points }: { provider: CloudProvider; all?: readonly Point[] },
): CrashPlan {
  const [turn, index] = [Math.floor((seed - 1) / points.length), (seed - 1) % points.length]
  const point = points[index]!
  return planAt(point, point.lives[turn % point.lives.length]!, { seed, all, provider })
}

/** One crash at the point, often another one of the same life, and now and then trouble of the cloud too. */
export function planAt(
  point: Point,
  life: LifeName,
  { seed, provider, all = [] }: { seed: number; provider: CloudProvider; all?: readonly Point[] },
): CrashPlan {
  const dice = new Dice(seed)
  const crashAt = ({ call, occurrence, moment }: Point): Crash => ({
    call,
    occurrence,
    moment,
    isOfBoth: dice.chance(BOTH_CHANCE),
    lateMs: dice.chance(0.5) ? 0 : dice.between(0, LATE_MAX_MS),
  })
  const crashes = [crashAt(point)]
  const others = all.filter(({ lives }) => lives.includes(life))
  if (others.length > 0 && dice.chance(SECOND_CRASH_CHANCE)) crashes.push(crashAt(dice.oneOf(others)))
  const kinds = FAULTS.filter((kind) => typeof provider.faults[kind] === 'function')
  const faults = dice.chance(FAULT_CHANCE) ? [drawFault(dice, provider.faults, dice.oneOf(kinds))] : []
  const isSweptMeanwhile = dice.chance(SWEEP_CHANCE)
  const name = `seed ${seed}, ${life}, ${nameOf(point)}`
  const durations = durationsOf(dice)
  // Drawn last: the rest of a seed stays what it was.
  const company = dice.chance(COMPANY_CHANCE) ? provider.companyOf?.(dice) : undefined
  return { name, life, crashes, faults, durations, isSweptMeanwhile, ...(company && { company }) }
}

/** A life in which nothing crashes. */
export function undisturbed(life: LifeName): CrashPlan {
  return {
    name: `${life}, undisturbed`,
    life,
    crashes: [],
    faults: [],
    durations: {},
    isSweptMeanwhile: false,
  }
}

export function storyOf({
  life,
  crashes,
  faults,
  durations,
  isSweptMeanwhile,
  company,
}: CrashPlan): string[] {
  return [
    `life: ${LIVES[life].about}`,
    ...crashes.map(
      ({ moment, call, occurrence, lateMs, isOfBoth }) =>
        `dies ${moment} ${call}, ${occurrence}, request late by ${lateMs} ms${isOfBoth ? ', and the other process too' : ''}`,
    ),
    ...faults.map((fault) => JSON.stringify(fault)),
    `durations ${JSON.stringify(durations)}`,
    ...(isSweptMeanwhile ? ['garbage is collected meanwhile'] : []),
    ...(company === undefined ? [] : [`company ${JSON.stringify(company)}`]),
  ]
}
