import { HOUR_MS } from './time/time'

/** How long before its run a message may have been signed, because of clocks that differ. */
export const STAMP_SLACK_MS = HOUR_MS

/** Ids of messages with the times at which they were signed. */
type ReceivedIds = readonly (readonly [id: string, atMs: number])[]

/** Messages of a workflow that its next run must recognize. */
export interface CarriedMessages {
  received?: ReceivedIds | undefined
  /** No message of an earlier run whose id is missing was signed later. Runs of an older version leave it out. */
  forgottenUntilMs?: number | undefined
}

/**
 * The signals and updates that a workflow has received, so that a copy of one is no second command. Later runs of the workflow need only the
 * newest ids of earlier runs, because they refuse what was signed before the newest id that is left out. The first run refuses no message by
 * its date: the server's clock may have been set back since its start, and clients date by that.
 */
export class Received {
  private readonly earlier: ReadonlyMap<string, number>
  private readonly own = new Map<string, number>()
  private readonly forgottenUntilMs: number | undefined

  /** @param carried what earlier runs of the workflow have received; missing for a first run */
  constructor(carried?: CarriedMessages) {
    this.earlier = new Map(carried?.received)
    this.forgottenUntilMs = carried === undefined ? -Infinity : carried.forgottenUntilMs
  }

  isFromEarlierRun(id: string): boolean {
    return this.earlier.has(id)
  }

  has(id: string): boolean {
    return this.earlier.has(id) || this.own.has(id)
  }

  /** Whether an earlier run may have received a message of this date, although its id is not carried. */
  isForgotten(atMs: number, runStartedAtMs: number): boolean {
    return this.forgottenUntilMs === undefined
      ? isBeforeRun(atMs, runStartedAtMs)
      : atMs <= this.forgottenUntilMs
  }

  /** Notes a message, with the time at which it was signed or received, whichever is later. */
  add(id: string, atMs: number): void {
    this.own.set(id, atMs)
  }

  carry(nowMs: number): CarriedMessages {
    const sinceMs = nowMs - 2 * STAMP_SLACK_MS
    const all = [...this.earlier, ...this.own]
    const received = all.filter(([, atMs]) => atMs >= sinceMs)
    const forgotten = all.map(([, atMs]) => atMs).filter((atMs) => atMs < sinceMs)
    return {
      received: received.length === 0 ? undefined : received,
      forgottenUntilMs: Math.max(0, this.forgottenUntilMs ?? sinceMs, ...forgotten),
    }
  }
}

/** Whether a message was signed more than the slack before the start of a run: it was sent to another one, unless a clock was set back. */
export function isBeforeRun(atMs: number, runStartedAtMs: number): boolean {
  return atMs < runStartedAtMs - STAMP_SLACK_MS
}
