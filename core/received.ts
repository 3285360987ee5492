import { HOUR_MS } from './time/time'

/** How long before its run a message may have been signed, because of clocks that differ. */
export const STAMP_SLACK_MS = HOUR_MS

/** Ids of messages with the times at which they were signed. */
export type ReceivedIds = readonly (readonly [id: string, atMs: number])[]

/**
 * The signals and updates that a workflow has received, so that a copy of one is no second command. Later runs of the workflow refuse what
 * was signed long before their start, so that they need only the newest ids of earlier runs.
 */
export class Received {
  private readonly earlier: ReadonlyMap<string, number>
  private readonly own = new Map<string, number>()

  /** @param carried what earlier runs of the workflow have received */
  constructor(carried: ReceivedIds = []) {
    this.earlier = new Map(carried)
  }

  isFromEarlierRun(id: string): boolean {
    return this.earlier.has(id)
  }

  has(id: string): boolean {
    return this.earlier.has(id) || this.own.has(id)
  }

  add(id: string, atMs: number): void {
    this.own.set(id, atMs)
  }

  /** What the next run must know; missing if that is nothing. */
  carry(nowMs: number): ReceivedIds | undefined {
    const fresh = [...this.earlier, ...this.own].filter(([, atMs]) => atMs >= nowMs - 2 * STAMP_SLACK_MS)
    return fresh.length === 0 ? undefined : fresh
  }
}
