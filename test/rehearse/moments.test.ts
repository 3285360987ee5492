import { describe, expect, it } from '@jest/globals'
import {
  habitsOf,
  hasCome,
  mayGiveUp,
  patienceMs,
  strikeOf,
  trainingSinceMs,
  type Habits,
  type Situation,
} from '../../rehearse/moments'
import type { RehearsedCheckpoint } from '../../rehearse/seen'

const HABITS: Habits = {
  intervalMs: 2_000,
  saveMs: 100,
  firstSaveMs: 2_000,
  loadMs: null,
  isProven: true,
}

/** An attempt elsewhere whose first step was seen at 0. */
function elsewhere(nowMs: number, savedAtMs: readonly number[], habits = HABITS): Situation {
  return { nowMs, firstStepAtMs: 0, runningSinceMs: 0, savedAtMs, changes: [], habits, sight: 'store' }
}

describe('an interruption on another machine', () => {
  it('never waits for what only a look into its folders tells', () => {
    const moments = [0, 1, 2, 3, 4, 5].map((index) => strikeOf(index, 'store').moment)
    expect(moments).not.toContain('during-save')
    expect(moments.slice(0, 3)).toEqual(['after-save', 'before-first-save', 'between-saves'])
  })

  it('comes after the second save: a program that loads its first checkpoint differs only then', () => {
    expect(hasCome('after-save', elsewhere(9_000, [4_000]))).toBe(false)
    expect(hasCome('after-save', elsewhere(9_000, [4_000, 8_000]))).toBe(true)
  })

  it.each(['before-first-save', 'after-save', 'between-saves'] as const)(
    'comes not %s while too few beats were seen',
    (moment) => {
      expect(hasCome(moment, elsewhere(4_900, [1_000, 2_000]))).toBe(false)
      expect(hasCome(moment, elsewhere(5_000, [1_000, 2_000]))).toBe(true)
    },
  )

  it('is waited for as long as two saves take', () => {
    const seldom = { ...HABITS, intervalMs: 60_000 }
    expect(patienceMs('after-save', seldom, 'store')).toBeGreaterThan(4 * 60_000)
    expect(patienceMs('after-save', seldom, 'folder')).toBeLessThan(3 * 60_000)
  })
})

/** Checkpoints saved at these times; only this matters here. */
function savedAt(...times: number[]): RehearsedCheckpoint[] {
  return times.map((savedAtMs) => ({
    id: `00000000000${savedAtMs}-1`,
    step: savedAtMs,
    attempt: 1,
    revision: 1,
    state: 'complete',
    evidence: { kind: 'next', text: 'the next checkpoint started' },
    savedAtMs,
    totalBytes: 1,
    files: [],
  }))
}

/** An attempt on this machine whose command runs since 0. */
function here(nowMs: number, habits: Habits, at: Partial<Situation> = {}): Situation {
  const blank = { firstStepAtMs: null, runningSinceMs: 0, savedAtMs: [], changes: [] }
  return { ...blank, nowMs, habits, sight: 'folder', ...at }
}

describe('the training of a program that loads for ten seconds', () => {
  const saves = savedAt(12_000, 14_000, 16_000)

  it('starts with its first step if it shows steps', () => {
    const habits = habitsOf(saves, { runningSinceMs: 0, firstStepAtMs: 10_000 })
    expect(habits).toMatchObject({ loadMs: null, firstSaveMs: 2_000, intervalMs: 2_000 })
    expect(trainingSinceMs(here(30_000, habits))).toBeNull()
    expect(trainingSinceMs(here(30_000, habits, { firstStepAtMs: 25_000 }))).toBe(25_000)
    expect(trainingSinceMs(here(30_000, habits, { savedAtMs: [27_000] }))).toBe(27_000)
  })

  it.each([
    ['shows no step', null],
    ['shows its first step after its first save', 13_000],
  ])('starts one interval before its first save if it %s', (_, firstStepAtMs) => {
    const habits = habitsOf(saves, { runningSinceMs: 0, firstStepAtMs })
    expect(habits).toMatchObject({ loadMs: 10_000, firstSaveMs: 2_000, intervalMs: 2_000 })
    expect(hasCome('before-first-save', here(9_000, habits))).toBe(false)
    expect(hasCome('before-first-save', here(11_500, habits))).toBe(true)
  })

  it('is awaited for as long as its only save took', () => {
    const habits = habitsOf(savedAt(12_000), { runningSinceMs: 0, firstStepAtMs: null })
    expect(habits).toMatchObject({ loadMs: 0, firstSaveMs: 12_000, intervalMs: null })
    expect(hasCome('before-first-save', here(5_000, habits))).toBe(false)
    expect(patienceMs('during-save', habits, 'folder')).toBeGreaterThan(4 * 12_000)
  })

  it('is not confused with files that it writes while it loads', () => {
    const habits = habitsOf(saves, { runningSinceMs: 0, firstStepAtMs: 10_000 })
    const at = { firstStepAtMs: 10_000, changes: [3_000] }
    expect(hasCome('after-save', here(11_000, habits, at))).toBe(false)
    expect(hasCome('after-save', here(12_500, habits, { ...at, changes: [3_000, 12_000] }))).toBe(true)
  })
})

describe('patience with a moment that does not come', () => {
  const habits = habitsOf(savedAt(2_000, 4_000), { runningSinceMs: 0, firstStepAtMs: 0 })

  it('does not end before the attempt has a complete checkpoint', () => {
    expect(mayGiveUp('during-save', habits, [])).toBe(false)
    expect(mayGiveUp('during-save', habits, [{ state: 'quiet' }])).toBe(false)
    expect(mayGiveUp('during-save', habits, [{ state: 'complete' }])).toBe(true)
  })

  it('ends with a provisional checkpoint if none was ever proven complete', () => {
    expect(mayGiveUp('during-save', { ...habits, isProven: false }, [{ state: 'quiet' }])).toBe(true)
  })

  it('ends without a checkpoint if the program saves none, or the moment is before the first', () => {
    expect(mayGiveUp('before-first-save', habits, [])).toBe(true)
    const none = habitsOf([], { runningSinceMs: 0, firstStepAtMs: 0 })
    expect(mayGiveUp('during-save', none, [])).toBe(true)
  })
})
