import type { BackendName } from '../core/offer'
import { MINUTE_MS } from '../core/time/time'
import { ignoreBadDocument, parserOf, putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import type { ObjectStore } from './store'

/** `launches/<backend>/<seq>.json`: the time of one launch. Put if absent, and never changed. */
interface Turn {
  /** Time by the clock of the worker that took the turn. */
  atMs: number
}

/** Older documents are deleted; only the newest one counts. */
const KEPT = 50

/** Limit on the lead of a turn. A turn further ahead comes from clock skew and does not delay the launches of other workers. */
const AHEAD_MAX_MS = 10 * MINUTE_MS
/** Limit on the lead of a turn in gaps: every worker may have taken a turn. */
const AHEAD_GAPS_MAX = 20

export interface TurnClocks {
  /** Wall clock, for the written turns. */
  now: () => number
  /** Never steps: for the gap after this worker's own turns. */
  monotonicMs: () => number
}

/**
 * Spaces the launches of one account over all workers. The rate limit of Temporal's task queues does not: each partition of a queue has a
 * burst of its own (docs/decisions/0043-launches-take-turns.md).
 */
export class LaunchTurns {
  /** This worker's last turn. */
  private own: { seq: number; monotonicMs: number } | undefined

  constructor(
    private readonly store: ObjectStore,
    private readonly at: { backend: BackendName; gapMs: number },
    private readonly clocks: TurnClocks,
  ) {}

  /** Takes the next turn, which is not before a time, and returns its time, which may be now. */
  async take(notBeforeMs: number): Promise<number> {
    const { backend, gapMs } = this.at
    for (;;) {
      const seqs = await this.seqs()
      const lastSeq = seqs.at(-1) ?? 0
      const last = await this.read(lastSeq)
      const nowMs = this.clocks.now()
      const monotonicMs = this.clocks.monotonicMs()
      const atMs = Math.max(nowMs, notBeforeMs, this.lastAtMs(last, lastSeq, nowMs - monotonicMs) + gapMs)
      const turn: Turn = { atMs }
      if (!(await putDocumentIfAbsent(this.store, layout.launch(backend, lastSeq + 1), turn))) continue
      this.own = { seq: lastSeq + 1, monotonicMs: monotonicMs + atMs - nowMs }
      for (const seq of seqs.slice(0, -KEPT)) await this.store.delete(layout.launch(backend, seq))
      return atMs
    }
  }

  /** The last turn's time by our present wall clock, whose lead over the monotonic one is given. */
  private lastAtMs(last: Turn | undefined, lastSeq: number, leadMs: number): number {
    if (this.own?.seq === lastSeq) return this.own.monotonicMs + leadMs
    const aheadMaxMs = Math.max(AHEAD_MAX_MS, AHEAD_GAPS_MAX * this.at.gapMs)
    return last === undefined || last.atMs > this.clocks.now() + aheadMaxMs ? -Infinity : last.atMs
  }

  private async seqs(): Promise<number[]> {
    const seqs: number[] = []
    for await (const { key } of this.store.list(layout.launches(this.at.backend)))
      seqs.push(Number(/(?<!\d)(\d+)\.json$/.exec(key)?.[1] ?? 0))
    return seqs
  }

  /** Reads a turn; an unreadable one has no time, and the next launch takes its place. */
  private read(seq: number): Promise<Turn | undefined> {
    if (seq === 0) return Promise.resolve(undefined)
    return readDocument(this.store, layout.launch(this.at.backend, seq), parseTurn).catch(ignoreBadDocument)
  }
}

const parseTurn = parserOf<Turn>('the turn of a launch', ({ atMs }) => typeof atMs === 'number')
