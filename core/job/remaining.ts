import type { Beat } from '../documents'
import type { Expected } from './forecast'
import { spendOver } from '../money/meter'
import type { MicroUsd } from '../money/money'
import { paceOf, runningSince } from './pace'

/** Remaining cost of a running attempt until its job is done. */
export interface Remaining {
  microUsd: MicroUsd
  /**
   * Basis of the estimate. `pace`: the measured pace of the training. `forecast`: the plan's expectation from the job's own duration.
   * `assumed`: the plan's expectation from an assumed duration.
   */
  basis: 'pace' | 'forecast' | 'assumed'
}

/** Facts about a running attempt. */
export interface RunningFacts {
  /** Inputs of the plan of its order; missing while the order is unknown. */
  expected: Expected | undefined
  /** Price of its machine as ordered; missing before the machine exists. */
  priceMicroUsdPerHour: MicroUsd | undefined
  launchedAtMs: number | null
  beat: Beat | undefined
  nowMs: number
}

/**
 * Estimates the remaining cost by the pace since the first step, or by the forecast before that; null if unknown, or if the forecast was
 * too low.
 */
export function remainingOf(facts: RunningFacts): Remaining | null {
  const { expected, priceMicroUsdPerHour } = facts
  const paced = leftByPaceOf(facts)
  if (paced !== null && priceMicroUsdPerHour !== undefined)
    return { microUsd: spendOver(paced.ms, priceMicroUsdPerHour), basis: 'pace' }
  if (expected === undefined) return priceMicroUsdPerHour === 0 ? { microUsd: 0, basis: 'forecast' } : null
  const left = leftByForecast(expected, facts)
  if (left === null) return null
  return { microUsd: Math.round(expected.costMicroUsd * (left.ms / expected.durationMs)), basis: left.basis }
}

/** The time until the job is done, on the same grounds. */
export interface LeftTime extends Pick<Remaining, 'basis'> {
  ms: number
}

export function leftTimeOf(facts: Omit<RunningFacts, 'priceMicroUsdPerHour'>): LeftTime | null {
  return leftByPaceOf(facts) ?? (facts.expected === undefined ? null : leftByForecast(facts.expected, facts))
}

function leftByPaceOf({
  beat,
  expected,
  nowMs,
}: Pick<RunningFacts, 'beat' | 'expected' | 'nowMs'>): LeftTime | null {
  const trainingMs = beat === undefined ? null : leftByPace(beat, nowMs)
  return trainingMs === null ? null : { ms: Math.round(trainingMs * growthOf(expected)), basis: 'pace' }
}

function leftByForecast(
  expected: Expected,
  facts: Pick<RunningFacts, 'launchedAtMs' | 'beat' | 'nowMs'>,
): LeftTime | null {
  const ms = expected.durationMs - spentMs(expected, facts)
  if (ms <= 0) return null
  return { ms, basis: expected.isDurationAssumed === true ? 'assumed' : 'forecast' }
}

/** Factor by which interruptions, new starts and the end are expected to lengthen the training. */
function growthOf(expected: Expected | undefined): number {
  if (expected === undefined || expected.forecast.trainingMs <= 0) return 1
  const { durationMs, forecast } = expected
  return Math.max(1, (durationMs - forecast.startMs) / forecast.trainingMs)
}

/** Elapsed part of the forecast's time. A start that takes longer than expected does not shorten the training. */
function spentMs(
  { forecast }: Expected,
  { launchedAtMs, beat, nowMs }: Pick<RunningFacts, 'launchedAtMs' | 'beat' | 'nowMs'>,
): number {
  if (launchedAtMs === null) return 0
  const trainingSinceMs = beat?.firstStepAtMs ?? null
  const startedMs = Math.max(0, (trainingSinceMs ?? nowMs) - launchedAtMs)
  return trainingSinceMs === null
    ? Math.min(startedMs, forecast.startMs)
    : forecast.startMs + Math.max(0, nowMs - trainingSinceMs)
}

/** Training time that is left at the pace of this attempt; boot, set-up and restore are not training. Null if the pace is unknown. */
function leftByPace(beat: Beat, nowMs: number): number | null {
  const { progress, restoredFrom } = beat
  if (progress === null) return null
  const { step, stepsTotal, percent, atMs } = progress
  const sinceMs = Math.max(0, nowMs - atMs)
  if (step !== null && stepsTotal !== null) {
    const pace = paceOf(beat)
    return pace === null ? null : Math.max(0, (stepsTotal - step) * (pace.ms / pace.steps) - sinceMs)
  }
  // The progress of this attempt alone is only known if it began from scratch.
  const runningSinceMs = runningSince(beat)
  if (restoredFrom !== null || percent === undefined || percent <= 0 || runningSinceMs === null) return null
  return Math.max(0, (100 - percent) * ((atMs - runningSinceMs) / percent) - sinceMs)
}
