import { describe, expect, it } from '@jest/globals'
import { paceOf, runningSince, type Paced } from '../../../core/job/pace'

const progress = (step: number | null, atMs: number) => ({ step, stepsTotal: null, loss: null, atMs })
const first = { firstStep: 10, firstStepAtMs: 1_000 }
const phases = [
  { name: 'running' as const, startedAtMs: 1, durationMs: 1 },
  { name: 'running' as const, startedAtMs: 500, durationMs: 1 },
  { name: 'drain' as const, startedAtMs: 9_000, durationMs: 1 },
] as NonNullable<Paced['phases']>

describe('the pace of a training', () => {
  it.each<[string, Paced, ReturnType<typeof paceOf>]>([
    ['from its first step on', { ...first, progress: progress(50, 5_000) }, { steps: 40, ms: 4_000 }],
    [
      'from a later step in the next millisecond',
      { ...first, progress: progress(11, 1_001) },
      { steps: 1, ms: 1 },
    ],
    ['of the first step alone is unknown', { ...first, progress: progress(10, 5_000) }, null],
    ['that went back is unknown', { ...first, progress: progress(9, 5_000) }, null],
    ['without time is unknown', { ...first, progress: progress(50, 1_000) }, null],
    ['of a clock that went back is unknown', { ...first, progress: progress(50, 999) }, null],
    ['without steps is unknown', { ...first, progress: progress(null, 5_000) }, null],
    ['without progress is unknown', first, null],
    ['before its first step is unknown', { phases, progress: progress(50, 5_500) }, null],
  ])('%s', (_, told, pace) => {
    expect(paceOf(told)).toEqual(pace)
  })

  it('begins with the program, the last time', () => {
    expect(runningSince({ phases })).toBe(500)
    expect(runningSince({ phases: phases.slice(2) })).toBeNull()
    expect(runningSince({})).toBeNull()
  })
})
