import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import {
  atPace,
  expiringInMs,
  judge,
  leaseMsWithin,
  leaseOverAtMs,
  type Evidence,
} from '../../../planner/policy/liveness'

const NOW_MS = 1_000 * HOUR_MS
const timing = DEFAULT_TIMING

function evidence(changes: Partial<Evidence> = {}): Evidence {
  return { timing, watchedSinceMs: NOW_MS, renewedAtMs: NOW_MS, isLeaseFirst: false, ...changes }
}

describe('judging whether an attempt lives', () => {
  it('lets a machine be gone only when two looks, far enough apart, agree', () => {
    const lookedAgainAfter = (ms: number): Evidence =>
      evidence({ gone: { firstAtMs: NOW_MS, lastAtMs: NOW_MS + ms } })
    const laterMs = NOW_MS + 2 * timing.goneConfirmMs
    expect(judge(lookedAgainAfter(timing.goneConfirmMs - 1), laterMs)).toEqual({ kind: 'alive' })
    expect(judge(lookedAgainAfter(timing.goneConfirmMs), laterMs)).toEqual({ kind: 'gone' })
    expect(judge(evidence(), laterMs)).toEqual({ kind: 'alive' })
  })

  it('leaves a machine alone that its provider has given up, and not ended, until it misses its beats', () => {
    const missedMs = 3 * timing.beatMs
    const looked = (lastAtMs: number, changes: Partial<Evidence> = {}): string =>
      judge(evidence({ gone: { firstAtMs: NOW_MS, lastAtMs, isStillBilled: true }, ...changes }), lastAtMs)
        .kind
    expect([looked(NOW_MS + missedMs - 1), looked(NOW_MS + missedMs)]).toEqual(['alive', 'gone'])
    const beatSeenAtMs = NOW_MS + MINUTE_MS
    expect(looked(beatSeenAtMs + missedMs - 1, { beatSeenAtMs })).toBe('alive')
    expect(looked(beatSeenAtMs + missedMs, { beatSeenAtMs })).toBe('gone')
    // Its beats cannot be read.
    expect(looked(beatSeenAtMs + 1, { storeFailedAtMs: beatSeenAtMs })).toBe('alive')
    const slow = { ...timing, goneConfirmMs: MINUTE_MS }
    expect(looked(NOW_MS + MINUTE_MS - 1, { timing: slow })).toBe('alive')
    // Ended by its provider, it beats no more.
    const ended = evidence({
      gone: { firstAtMs: NOW_MS, lastAtMs: NOW_MS + missedMs },
      beatSeenAtMs: NOW_MS + missedMs,
    })
    expect(judge(ended, NOW_MS + missedMs)).toEqual({ kind: 'gone' })
  })

  it('uses the slower of our pace and the pace that the provider needs', () => {
    expect(atPace(timing)).toEqual(timing)
    const pace = { observeMs: 10 * MINUTE_MS, goneConfirmMs: 1 }
    expect(atPace(timing, pace)).toEqual({ ...timing, observeMs: 10 * MINUTE_MS })
    expect(atPace(timing, { goneConfirmMs: MINUTE_MS })).toEqual({ ...timing, goneConfirmMs: MINUTE_MS })
  })

  it('takes silence for death no sooner than half an hour, and only if both were asked and answered', () => {
    const silentAt = NOW_MS + timing.silenceMs
    expect(judge(evidence(), silentAt - 1)).toEqual({ kind: 'alive' })
    expect(judge(evidence(), silentAt)).toEqual({ kind: 'silent', silentMs: timing.silenceMs })
    expect(judge(evidence({ beatSeenAtMs: NOW_MS + MINUTE_MS }), silentAt)).toEqual({ kind: 'alive' })
    expect(judge(evidence({ providerFailedAtMs: NOW_MS + MINUTE_MS }), silentAt)).toEqual({ kind: 'alive' })
    expect(judge(evidence({ storeFailedAtMs: NOW_MS + MINUTE_MS }), silentAt)).toEqual({ kind: 'alive' })
    const answered = evidence({
      providerFailedAtMs: NOW_MS + MINUTE_MS,
      beatSeenAtMs: NOW_MS + 2 * MINUTE_MS,
    })
    expect(judge(answered, silentAt + 2 * MINUTE_MS)).toEqual({ kind: 'silent', silentMs: timing.silenceMs })
    // A watch that has only just begun has heard nothing yet, however old the last beat is.
    const late = evidence({ watchedSinceMs: silentAt, beatSeenAtMs: NOW_MS - HOUR_MS })
    expect(judge(late, silentAt + 1)).toEqual({ kind: 'alive' })
  })

  it('takes nothing of a queued machine for silence or the end of a lease, and counts silence from the time it left', () => {
    const queueMs = 15 * MINUTE_MS
    const queued = evidence({ isLeaseFirst: true, isQueued: true, queueMs })
    expect(judge(queued, NOW_MS + 100 * HOUR_MS)).toEqual({ kind: 'alive' })
    const goneAtMs = NOW_MS + timing.goneConfirmMs
    const begun = evidence({ queuedAtMs: NOW_MS + HOUR_MS, isQueued: false })
    expect(judge(begun, NOW_MS + HOUR_MS + timing.silenceMs - 1)).toEqual({ kind: 'alive' })
    expect(judge(begun, NOW_MS + HOUR_MS + timing.silenceMs)).toMatchObject({ kind: 'silent' })
    expect(judge({ ...queued, gone: { firstAtMs: NOW_MS, lastAtMs: goneAtMs } }, goneAtMs)).toEqual({
      kind: 'gone',
    })
    // Its runner may start after the longest queue.
    expect(leaseOverAtMs({ ...queued, isLeaseFirst: true })).toBe(
      leaseOverAtMs(evidence({ isLeaseFirst: true })) + queueMs,
    )
  })

  it('counts a machine as fenced only when its lease, drain, power-off and the clocks are past', () => {
    const deaf = evidence({
      providerFailedAtMs: NOW_MS + 100 * HOUR_MS,
      storeFailedAtMs: NOW_MS + 100 * HOUR_MS,
    })
    const overMs = NOW_MS + timing.leaseMs + timing.drainMs + timing.powerOffMs + CLOCK_SLACK_MS
    expect(leaseOverAtMs(deaf)).toBe(overMs)
    expect(judge(deaf, overMs)).toEqual({ kind: 'alive' })
    expect(judge(deaf, overMs + 1)).toEqual({ kind: 'fenced' })
    // The first lease runs from a start that may come late.
    expect(leaseOverAtMs({ ...deaf, isLeaseFirst: true })).toBe(overMs + timing.startWithinMs)
  })

  it('never declares a machine ended while a runner that keeps to the protocol could still run', () => {
    // The runner sends a beat, at some time before the renewal that answers it, and lives to the end of its lease and drain.
    const world = fc.record({
      beatBeforeRenewalMs: fc.nat(HOUR_MS),
      leaseMs: fc.integer({ min: 1_000, max: 24 * HOUR_MS }),
      drainMs: fc.nat(10 * MINUTE_MS),
      clockErrorMs: fc.integer({ min: -CLOCK_SLACK_MS, max: CLOCK_SLACK_MS }),
      lookedAfterMs: fc.nat(30 * HOUR_MS),
    })
    fc.assert(
      fc.property(world, ({ beatBeforeRenewalMs, leaseMs, drainMs, clockErrorMs, lookedAfterMs }) => {
        const own = { ...timing, leaseMs, drainMs, silenceMs: Infinity }
        const known = evidence({ timing: own, renewedAtMs: NOW_MS + clockErrorMs })
        const runnerEndsAtMs = NOW_MS - beatBeforeRenewalMs + leaseMs + drainMs + own.powerOffMs
        const lookAtMs = NOW_MS + lookedAfterMs
        if (lookAtMs < runnerEndsAtMs) expect(judge(known, lookAtMs)).toEqual({ kind: 'alive' })
      }),
    )
  })
})

describe('a lease', () => {
  it('ends with a drain before the credentials of its machine do', () => {
    const stopMs = timing.drainMs + timing.powerOffMs
    expect(leaseMsWithin(timing, HOUR_MS)).toBe(HOUR_MS - stopMs)
    expect(leaseMsWithin(timing, HOUR_MS + 0.5)).toBe(HOUR_MS - stopMs)
    expect(leaseMsWithin(timing, timing.leaseMs + stopMs)).toBe(timing.leaseMs)
    expect(leaseMsWithin(timing, 100 * HOUR_MS)).toBe(timing.leaseMs)
  })
})

describe('a machine whose reservation ends', () => {
  const own = { drainMs: MINUTE_MS, powerOffMs: 10 * SECOND_MS, beatMs: SECOND_MS }
  /** When its power-off must begin. */
  const offAtMs = NOW_MS - CLOCK_SLACK_MS - own.powerOffMs

  it('should have begun to drain a drain before its power-off, with time for a beat to tell so', () => {
    // Two beats, and five seconds until the second is read.
    const dueAtMs = offAtMs - own.drainMs + 7 * SECOND_MS
    expect(expiringInMs(own, NOW_MS, dueAtMs - 1)).toBeUndefined()
    expect(expiringInMs(own, NOW_MS, dueAtMs)).toBe(own.drainMs - 7 * SECOND_MS)
  })

  it('waits for a beat no longer than half the drain', () => {
    const slow = { ...own, beatMs: HOUR_MS }
    expect(expiringInMs(slow, NOW_MS, offAtMs - own.drainMs / 2 - 1)).toBeUndefined()
    expect(expiringInMs(slow, NOW_MS, offAtMs - own.drainMs / 2)).toBe(own.drainMs / 2)
  })

  it('has no less than no time left', () => {
    expect(expiringInMs(own, NOW_MS, offAtMs + 1)).toBe(0)
    expect(expiringInMs(own, NOW_MS, NOW_MS + HOUR_MS)).toBe(0)
  })
})
