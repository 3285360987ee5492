import { describe, expect, it } from '@jest/globals'
import { attemptIdOf, JOB_ID_PATTERN, parseAttemptId } from '../../core/queues'
import { DEFAULT_TIMING, FILE_STORE_PACE, rehearsalTiming, stoppingMs } from '../../core/time/timing'

describe('an id', () => {
  it('of an attempt has its job and its number', () => {
    expect(parseAttemptId(attemptIdOf('train-7', 12))).toEqual({ jobId: 'train-7', attempt: 12 })
    for (const other of ['train', '-7', 'train-', 'train-7-s1', 'a\ntrain-7'])
      expect([other, parseAttemptId(other)]).toEqual([other, undefined])
  })

  it.each<[string, boolean]>([
    ['a', true],
    ['a-1', true],
    ['a'.repeat(40), true],
    ['a'.repeat(41), false],
    ['a-', false],
    ['1a', false],
    ['aB', false],
    ['', false],
    ['-a', false],
    ['a_b', false],
  ])('%j of a job is legal: %s', (id, isLegal) => {
    expect(JOB_ID_PATTERN.test(id)).toBe(isLegal)
  })
})

describe('the timing of a job', () => {
  it('is in seconds, as the documentation says, unless it is set', () => {
    const seconds = Object.fromEntries(Object.entries(DEFAULT_TIMING).map(([name, ms]) => [name, ms / 1_000]))
    expect(seconds).toEqual({
      leaseMs: 21_600,
      drainMs: 110,
      powerOffMs: 10,
      beatMs: 5,
      checkpointQuietMs: 2,
      startWithinMs: 3_600,
      queueMs: 900,
      registryMs: 600,
      silenceMs: 1_800,
      observeMs: 2,
      goneConfirmMs: 2,
    })
    // The notice of a provider.
    expect(stoppingMs(DEFAULT_TIMING)).toBe(120_000)
  })

  it('is faster with a store on this machine, and in a rehearsal', () => {
    expect(FILE_STORE_PACE).toEqual({
      beatMs: 1_000,
      observeMs: 500,
      checkpointQuietMs: 1_000,
      goneConfirmMs: 1_000,
    })
    expect(rehearsalTiming(DEFAULT_TIMING)).toEqual({ ...DEFAULT_TIMING, beatMs: 1_000 })
    expect(rehearsalTiming({ ...DEFAULT_TIMING, beatMs: 200 }).beatMs).toBe(200)
  })
})
