import type { MicroUsd } from '../../../core/money/money'
import { makePlan } from '../../../planner/plan/plan'
import { CLASSES, hiddenJob, type Class, type HiddenJob } from './world'

/** How the intervals of one capacity type turn out. */
export interface Verdict {
  class: Class
  jobs: number
  /** Parts of the jobs whose final cost and end are in the interval before the first step. */
  costCoverage: number
  finishCoverage: number
  /** Mean interval scores, as multiples of the mean cost: of the forecast, and of the class average. Smaller is better. */
  score: number
  classScore: number
}

interface Interval {
  low: number
  high: number
}

/** Seeds of the jobs from which the class averages come: none of them is judged. */
const CLASS_SEEDS_FROM = 1_000_000

/** Lives through `count` seeded jobs, spread over the capacity types, and compares the forecasts with what they finally cost. */
export function judge({ from, count }: { from: number; count: number }): Verdict[] {
  return CLASSES.map((kind, index) => {
    const seeds = Array.from({ length: count }, (_, at) => from + at).filter(
      (seed) => seed % CLASSES.length === index,
    )
    const averages = classIntervals(kind)
    const jobs = seeds.map((seed) => hiddenJob(seed, kind))
    const judged = jobs.map((job) => {
      const { cost, finish } = forecastFor(job)
      const average = averages.get(job.classKey)!
      return {
        isCostHeld: holds(cost, job.finalMicroUsd),
        isFinishHeld: holds(finish, job.finalMs),
        score: intervalScore(cost, job.finalMicroUsd),
        classScore: intervalScore(average, job.finalMicroUsd),
      }
    })
    const meanCost = mean(jobs.map(({ finalMicroUsd }) => finalMicroUsd))
    return {
      class: kind,
      jobs: jobs.length,
      costCoverage: mean(judged.map(({ isCostHeld }) => Number(isCostHeld))),
      finishCoverage: mean(judged.map(({ isFinishHeld }) => Number(isFinishHeld))),
      score: mean(judged.map(({ score }) => score)) / meanCost,
      classScore: mean(judged.map(({ classScore }) => classScore)) / meanCost,
    }
  })
}

function forecastFor({ request }: HiddenJob): { cost: Interval; finish: Interval } {
  const { placements, rejections } = makePlan(request)
  const [best] = placements
  if (best === undefined) throw new Error(`no placement: ${rejections[0]?.reason}`)
  const { cost, finish } = best.forecast
  return {
    cost: { low: cost.lowMicroUsd, high: cost.highMicroUsd },
    finish: { low: finish.lowMs, high: finish.highMs },
  }
}

/** What nine of ten other jobs of a class cost. */
function classIntervals(kind: Class): Map<string, Interval> {
  const costs = new Map<string, MicroUsd[]>()
  for (let seed = CLASS_SEEDS_FROM; seed < CLASS_SEEDS_FROM + 2_000; seed += 1) {
    const { classKey, finalMicroUsd } = hiddenJob(seed, kind)
    costs.set(classKey, [...(costs.get(classKey) ?? []), finalMicroUsd])
  }
  return new Map(
    [...costs].map(([key, values]) => {
      const sorted = values.sort((a, b) => a - b)
      const at = (part: number): number => sorted[Math.floor(part * sorted.length)]!
      return [key, { low: at(0.05), high: at(0.95) }]
    }),
  )
}

function holds({ low, high }: Interval, value: number): boolean {
  return value >= low && value <= high
}

/** Width, and twenty times what a value is outside: the score that an honest 90 % interval minimises (Gneiting and Raftery, 2007). */
function intervalScore({ low, high }: Interval, value: number): number {
  return high - low + 20 * (Math.max(0, low - value) + Math.max(0, value - high))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length
}
