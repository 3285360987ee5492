import type { Pace } from '../../core/capabilities'
import { stoppingMs, type Timing } from '../../core/time/timing'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../core/time/time'

/**
 * A watch's facts about one machine. Times are from the monotonic clock of the watching process, because its wall clock may be set in
 * either direction. `renewedAtMs` is converted from a written date when a watch begins, so it may be wrong by any step.
 */
export interface Evidence {
  timing: Timing
  /** Start of this watch: silence counts only while it was watching. */
  watchedSinceMs: number
  /** Time of the last renewal of the lease, or of the order before the first renewal. */
  renewedAtMs: number
  /** True until a lease was renewed: the first one runs from the runner's start, which may be late. */
  isLeaseFirst: boolean
  /** How long the machine may be queued before the time for its start begins; missing for providers without a queue. */
  queueMs?: number | undefined
  /** The last time that the provider reported the machine as queued: until then it could neither beat nor fall silent. */
  queuedAtMs?: number
  isQueued?: boolean
  /** Time at which the newest beat was first seen; missing before the first. */
  beatSeenAtMs?: number
  /** The last time each of the two did not answer. */
  providerFailedAtMs?: number
  storeFailedAtMs?: number
  /**
   * Times of the first and the newest of the consecutive observations without the machine, and whether it was still billed at the newest.
   */
  gone?: { firstAtMs: number; lastAtMs: number; isStillBilled?: boolean }
}

export type Liveness =
  | { kind: 'alive' }
  /** Reported twice by the provider, far enough apart. */
  | { kind: 'gone' }
  /** Everything on the machine has stopped by now. */
  | { kind: 'fenced' }
  | { kind: 'silent'; silentMs: number }

/**
 * Whether an attempt can still be alive. Silence is not death: a missing beat proves nothing before the lease has certainly
 * expired, or after a long silence during which provider and store kept answering.
 */
export function judge(evidence: Evidence, nowMs: number): Liveness {
  const { timing } = evidence
  if (isGone(evidence)) return { kind: 'gone' }
  if (evidence.isQueued === true) return { kind: 'alive' }
  if (nowMs > leaseOverAtMs(evidence) && hasMissedBeats(evidence, nowMs)) return { kind: 'fenced' }
  const quietSince = Math.max(
    evidence.watchedSinceMs,
    evidence.queuedAtMs ?? 0,
    evidence.beatSeenAtMs ?? 0,
    evidence.providerFailedAtMs ?? 0,
    evidence.storeFailedAtMs ?? 0,
  )
  const silentMs = nowMs - quietSince
  return silentMs >= timing.silenceMs ? { kind: 'silent', silentMs } : { kind: 'alive' }
}

/** Whether no beat came for a while. A written date may be wrong, but a machine that beats is not over. */
function hasMissedBeats({ timing, watchedSinceMs, beatSeenAtMs = 0 }: Evidence, nowMs: number): boolean {
  return nowMs - Math.max(watchedSinceMs, beatSeenAtMs) >= BEATS_MISSED * timing.beatMs
}

/**
 * Whether a machine is gone. A machine that its provider has given up but not ended may work, so it is gone only when it misses its beats
 * too.
 */
function isGone({ gone, timing, beatSeenAtMs = 0, storeFailedAtMs = 0 }: Evidence): boolean {
  if (gone === undefined || !isConfirmed(gone, timing)) return false
  if (gone.isStillBilled !== true) return true
  const quietMs = gone.lastAtMs - Math.max(gone.firstAtMs, beatSeenAtMs, storeFailedAtMs)
  return quietMs >= Math.max(timing.goneConfirmMs, BEATS_MISSED * timing.beatMs)
}

/** A lease outlives as many (`readTiming`). */
const BEATS_MISSED = 3

/** Whether two observations without a machine are far enough apart to confirm its end. */
export function isConfirmed(
  { firstAtMs, lastAtMs }: NonNullable<Evidence['gone']>,
  { goneConfirmMs }: Pick<Timing, 'goneConfirmMs'>,
): boolean {
  return lastAtMs - firstAtMs >= goneConfirmMs
}

/** Returns our own pace of observations, or the slower one that a provider needs. */
export function atPace(timing: Timing, { observeMs = 0, goneConfirmMs = 0 }: Pace = {}): Timing {
  return {
    ...timing,
    observeMs: Math.max(timing.observeMs, observeMs),
    goneConfirmMs: Math.max(timing.goneConfirmMs, goneConfirmMs),
  }
}

/** The longest lease, up to the usual one, that leaves time for a drain before the credentials expire. */
export function leaseMsWithin(
  timing: Pick<Timing, 'leaseMs' | 'drainMs' | 'powerOffMs'>,
  credentialsMs: number,
): number {
  return Math.min(timing.leaseMs, Math.floor(credentialsMs - stoppingMs(timing)))
}

/**
 * Returns when a lease has certainly expired, drain and power-off included. A renewal answers a beat sent before it, and the runner counts
 * from that beat, so renewal + ttl is late enough. A first lease runs from a start that may come `startWithinMs` after the order, and after
 * the longest queue.
 */
export function leaseOverAtMs({
  timing,
  renewedAtMs,
  isLeaseFirst,
  queueMs = 0,
}: Pick<Evidence, 'renewedAtMs' | 'isLeaseFirst' | 'queueMs'> & {
  timing: Pick<Timing, 'startWithinMs' | 'leaseMs' | 'drainMs' | 'powerOffMs'>
}): number {
  const startMs = isLeaseFirst ? queueMs + timing.startWithinMs : 0
  return renewedAtMs + startMs + timing.leaseMs + stoppingMs(timing) + CLOCK_SLACK_MS
}

/**
 * Returns the remaining time of a machine whose runner should have begun to drain because its reservation ends; undefined before that.
 * Beats get time to report a drain that has begun.
 */
export function expiringInMs(
  { drainMs, powerOffMs, beatMs }: Pick<Timing, 'drainMs' | 'powerOffMs' | 'beatMs'>,
  usableUntilMs: number,
  nowMs: number,
): number | undefined {
  const leftMs = usableUntilMs - CLOCK_SLACK_MS - powerOffMs - nowMs
  const graceMs = Math.min(2 * beatMs + TOLD_WITHIN_MS, drainMs / 2)
  return leftMs > drainMs - graceMs ? undefined : Math.max(0, leftMs)
}

/** Time until a beat is read, over a slow line. */
const TOLD_WITHIN_MS = 5 * SECOND_MS
