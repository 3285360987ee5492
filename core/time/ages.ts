/** The wall clock, which may be set, and a clock that never steps. Both in milliseconds. */
export interface Clocks {
  now: () => number
  monotonicMs: () => number
}

/** Only the newest are kept, so that a process that runs for long does not keep every job. */
const KEPT_MAX = 10_000

/**
 * Ages of things with a written date. The wall clock counts only when a thing is first asked about; from then on its age grows by the
 * monotonic clock, so that a wall clock that is set makes nothing older or younger.
 */
export class Ages {
  private readonly firsts = new Map<string, { sinceMs: number; ageMs: number; atMs: number }>()

  constructor(private readonly clocks: Clocks) {}

  /** Returns the age in milliseconds of the thing with this name and date, which is not negative. */
  of(name: string, sinceMs: number): number {
    const nowMs = this.clocks.monotonicMs()
    let first = this.firsts.get(name)
    if (first?.sinceMs !== sinceMs) {
      const [oldest] = this.firsts.keys()
      if (this.firsts.size >= KEPT_MAX && oldest !== undefined) this.firsts.delete(oldest)
      first = { sinceMs, ageMs: Math.max(0, this.clocks.now() - sinceMs), atMs: nowMs }
      this.firsts.set(name, first)
    }
    return first.ageMs + nowMs - first.atMs
  }
}
