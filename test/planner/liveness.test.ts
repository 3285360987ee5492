import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../core/time'
import { DEFAULT_TIMING } from '../../core/timing'
import { judge, leaseOverAtMs, type Evidence } from '../../planner/liveness'

const NOW_MS = 1_000 * HOUR_MS
const timing = DEFAULT_TIMING

function evidence(changes: Partial<Evidence> = {}): Evidence {
  return { timing, watchedSinceMs: NOW_MS, renewedAtMs: NOW_MS, isLeaseFirst: false, ...changes }
}

describe('judging whether an attempt lives', () => {
  it('lets a machine be gone only when two looks, far enough apart, agree', () => {
    const gone = evidence({ goneSinceMs: NOW_MS })
    expect(judge(gone, NOW_MS + timing.goneConfirmMs - 1)).toEqual({ kind: 'alive' })
    expect(judge(gone, NOW_MS + timing.goneConfirmMs)).toEqual({ kind: 'gone' })
    expect(judge(evidence(), NOW_MS + timing.goneConfirmMs)).toEqual({ kind: 'alive' })
  })

  it('takes silence for death no sooner than half an hour, and only if both were asked and answered', () => {
    const silentAt = NOW_MS + timing.silenceMs
    expect(judge(evidence(), silentAt - 1)).toEqual({ kind: 'alive' })
    expect(judge(evidence(), silentAt)).toEqual({ kind: 'silent', silentMs: timing.silenceMs })
    expect(judge(evidence({ beatSeenAtMs: NOW_MS + MINUTE_MS }), silentAt)).toEqual({ kind: 'alive' })
    expect(judge(evidence({ providerFailedAtMs: NOW_MS + MINUTE_MS }), silentAt)).toEqual({ kind: 'alive' })
    expect(judge(evidence({ storeFailedAtMs: NOW_MS + MINUTE_MS }), silentAt)).toEqual({ kind: 'alive' })
    // A watch that has only just begun has heard nothing yet, however old the last beat is.
    const late = evidence({ watchedSinceMs: silentAt, beatSeenAtMs: NOW_MS - HOUR_MS })
    expect(judge(late, silentAt + 1)).toEqual({ kind: 'alive' })
  })

  it('takes nothing of a queued machine for silence or the end of a lease, and counts silence from when it left', () => {
    const queueMs = 15 * MINUTE_MS
    const queued = evidence({ isLeaseFirst: true, isQueued: true, queueMs })
    expect(judge(queued, NOW_MS + 100 * HOUR_MS)).toEqual({ kind: 'alive' })
    const begun = evidence({ queuedAtMs: NOW_MS + HOUR_MS, isQueued: false })
    expect(judge(begun, NOW_MS + HOUR_MS + timing.silenceMs - 1)).toEqual({ kind: 'alive' })
    expect(judge(begun, NOW_MS + HOUR_MS + timing.silenceMs)).toMatchObject({ kind: 'silent' })
    expect(judge({ ...queued, goneSinceMs: NOW_MS }, NOW_MS + timing.goneConfirmMs)).toEqual({ kind: 'gone' })
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
