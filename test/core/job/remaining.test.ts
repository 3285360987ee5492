import { describe, expect, it } from '@jest/globals'
import type { Beat } from '../../../core/documents'
import { NO_FORECAST, type Expected } from '../../../core/job/forecast'
import { microUsd } from '../../../core/money/money'
import { leftTimeOf, remainingOf, type RunningFacts } from '../../../core/job/remaining'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { beatOf, NOW } from '../../client/world'

/** Ten minutes of start, four hours of training, twenty minutes for interruptions. */
const EXPECTED: Expected = {
  costMicroUsd: microUsd(4.5),
  durationMs: 4.5 * HOUR_MS,
  forecast: { ...NO_FORECAST, startMs: 10 * MINUTE_MS, trainingMs: 4 * HOUR_MS },
}

const facts = (changes: Partial<RunningFacts> = {}): RunningFacts => ({
  expected: EXPECTED,
  priceMicroUsdPerHour: microUsd(1),
  launchedAtMs: NOW,
  beat: undefined,
  nowMs: NOW,
  ...changes,
})
const told = (step: number, atMs: number): NonNullable<Beat['progress']> => ({
  step,
  stepsTotal: 1_000,
  loss: null,
  atMs,
})

describe('what a running attempt still costs', () => {
  it('is what the plan said when it is launched, and before', () => {
    expect(remainingOf(facts())).toEqual({ microUsd: EXPECTED.costMicroUsd, basis: 'forecast' })
    expect(remainingOf(facts({ launchedAtMs: null, priceMicroUsdPerHour: undefined }))?.microUsd).toBe(
      EXPECTED.costMicroUsd,
    )
  })

  it('counts no start as training, however long it takes', () => {
    const after = (minutes: number) => remainingOf(facts({ nowMs: NOW + minutes * MINUTE_MS }))!.microUsd
    expect(after(5)).toBe(Math.round((microUsd(4.5) * 265) / 270))
    expect(after(10)).toBe(Math.round((microUsd(4.5) * 260) / 270))
    expect(after(60)).toBe(after(10))
    const trained = facts({
      beat: beatOf(1, { firstStepAtMs: NOW + HOUR_MS }),
      nowMs: NOW + 2 * HOUR_MS,
    })
    expect(remainingOf(trained)!.microUsd).toBe(Math.round((microUsd(4.5) * 200) / 270))
  })

  it('follows the pace since the first step, with the interruptions that were expected', () => {
    const beat = beatOf(1, {
      firstStep: 100,
      firstStepAtMs: NOW + HOUR_MS,
      progress: told(200, NOW + 2 * HOUR_MS),
    })
    // 800 steps at 100 an hour, and by a twelfth more for interruptions and the end.
    const { microUsd: left, basis } = remainingOf(facts({ beat, nowMs: NOW + 2 * HOUR_MS }))!
    expect(basis).toBe('pace')
    expect(left / microUsd(1)).toBeCloseTo((8 * 260) / 240, 2)
    const later = remainingOf(facts({ beat, nowMs: NOW + 3 * HOUR_MS }))!
    expect(later.microUsd).toBeLessThan(left)
  })

  it('has no pace by the first step alone', () => {
    const beat = beatOf(1, {
      firstStep: 100,
      firstStepAtMs: NOW + HOUR_MS,
      progress: told(100, NOW + HOUR_MS),
    })
    expect(remainingOf(facts({ beat, nowMs: NOW + HOUR_MS }))?.basis).toBe('forecast')
  })

  it('is unknown without forecast and pace, and nothing where nothing is paid', () => {
    expect(remainingOf(facts({ expected: undefined }))).toBeNull()
    expect(remainingOf(facts({ expected: undefined, priceMicroUsdPerHour: 0 }))?.microUsd).toBe(0)
  })
})

describe('the time until a job is done', () => {
  const running = [{ name: 'running' as const, startedAtMs: NOW, durationMs: HOUR_MS }]
  const atPercent = (percent: number, changes: Partial<Beat> = {}): Beat =>
    beatOf(1, {
      phases: running,
      restoredFrom: null,
      progress: { step: null, stepsTotal: null, loss: null, percent, atMs: NOW + HOUR_MS },
      ...changes,
    })
  const timeLeft = (changes: Partial<RunningFacts>) => leftTimeOf(facts({ expected: undefined, ...changes }))

  it('follows the share that is done, less the time since it was reported', () => {
    expect(timeLeft({ beat: atPercent(25), nowMs: NOW + HOUR_MS })).toEqual({
      ms: 3 * HOUR_MS,
      basis: 'pace',
    })
    expect(timeLeft({ beat: atPercent(25), nowMs: NOW + 2 * HOUR_MS })?.ms).toBe(2 * HOUR_MS)
    expect(timeLeft({ beat: atPercent(25), nowMs: NOW + 9 * HOUR_MS })?.ms).toBe(0)
  })

  it('is unknown by a share that is nothing, of a restored attempt, and before the program began', () => {
    const nowMs = NOW + HOUR_MS
    const restoredFrom = { step: 1 } as Beat['restoredFrom']
    for (const beat of [
      atPercent(0),
      atPercent(-1),
      atPercent(25, { restoredFrom }),
      atPercent(25, { phases: [] }),
    ])
      expect(timeLeft({ beat, nowMs })).toBeNull()
  })

  it('is what was expected, less what has passed, and unknown once all of that has', () => {
    const beat = beatOf(1, { firstStepAtMs: NOW })
    const after = (ms: number) => leftTimeOf(facts({ beat, nowMs: NOW + ms }))
    // Of 4.5 hours, ten minutes are the start.
    const trainingMs = 4.5 * HOUR_MS - 10 * MINUTE_MS
    expect(after(trainingMs - 1)).toEqual({ ms: 1, basis: 'forecast' })
    expect(after(trainingMs)).toBeNull()
  })

  it('grows by no interruptions where no training was expected', () => {
    const expected = { ...EXPECTED, forecast: { ...EXPECTED.forecast, trainingMs: 0 } }
    expect(leftTimeOf(facts({ expected, beat: atPercent(50), nowMs: NOW + HOUR_MS }))).toEqual({
      ms: HOUR_MS,
      basis: 'pace',
    })
  })
})
