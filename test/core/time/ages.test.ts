import { describe, expect, it } from '@jest/globals'
import { Ages } from '../../../core/time/ages'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../core/time/time'

describe('the age of a dated thing', () => {
  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'grows with time when the wall clock is set by %d ms',
    (stepMs) => {
      let [wallMs, monotonicMs] = [1_000 * DAY_MS, 0]
      const ages = new Ages({ now: () => wallMs, monotonicMs: () => monotonicMs })
      const sinceMs = wallMs - 10 * SECOND_MS
      expect(ages.of('machine', sinceMs)).toBe(10 * SECOND_MS)
      wallMs += stepMs
      monotonicMs += SECOND_MS
      expect(ages.of('machine', sinceMs)).toBe(11 * SECOND_MS)
    },
  )

  it('is zero for a date that is to come, and counts from there', () => {
    let monotonicMs = 0
    const ages = new Ages({ now: () => 0, monotonicMs: () => monotonicMs })
    expect(ages.of('machine', HOUR_MS)).toBe(0)
    monotonicMs = SECOND_MS
    expect(ages.of('machine', HOUR_MS)).toBe(SECOND_MS)
  })

  it('begins anew with another date of the same name', () => {
    const ages = new Ages({ now: () => HOUR_MS, monotonicMs: () => 0 })
    expect([ages.of('lease', 0), ages.of('lease', HOUR_MS)]).toEqual([HOUR_MS, 0])
  })
})
