import { describe, expect, it } from '@jest/globals'
import { hasCome, patienceMs, strikeOf, type Habits, type Situation } from '../../rehearse/moments'

const HABITS: Habits = { intervalMs: 2_000, saveMs: 100, firstSaveMs: 2_000 }

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
