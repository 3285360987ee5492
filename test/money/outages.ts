import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Dice } from '../kit/dice'

interface Span {
  fromMs: number
  toMs: number
}

interface Frequency {
  perDay: number
  longestMs?: number
}

/** Times in which somebody does not answer. */
export class Outages {
  private constructor(private readonly spans: readonly Span[]) {}

  /** About so many in a day, of minutes to hours; `longestMs` says how long the longest may be. */
  static draw(dice: Dice, startMs: number, { perDay, longestMs = 8 * HOUR_MS }: Frequency): Outages {
    const spans: Span[] = []
    if (perDay === 0) return new Outages(spans)
    for (let atMs = startMs; atMs < startMs + 3 * DAY_MS;) {
      const fromMs = atMs + dice.between(0, (2 * DAY_MS) / perDay)
      const lastsMs = dice.oneOf([2 * MINUTE_MS, 20 * MINUTE_MS, 2 * HOUR_MS, longestMs])
      const toMs = fromMs + dice.between(SECOND_MS, lastsMs)
      spans.push({ fromMs, toMs })
      atMs = toMs
    }
    return new Outages(spans)
  }

  /** Any of them. */
  static union(all: readonly Outages[]): Outages {
    const sorted = all.flatMap(({ spans }) => spans).sort((a, b) => a.fromMs - b.fromMs)
    const spans: Span[] = []
    for (const span of sorted) {
      const last = spans.at(-1)
      if (last !== undefined && span.fromMs <= last.toMs) last.toMs = Math.max(last.toMs, span.toMs)
      else spans.push({ ...span })
    }
    return new Outages(spans)
  }

  /** The end of the present one; now without one. */
  overAtMs(nowMs: number): number {
    return this.spans.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs)?.toMs ?? nowMs
  }

  isNow(nowMs: number): boolean {
    return this.overAtMs(nowMs) > nowMs
  }

  get isNever(): boolean {
    return this.spans.length === 0
  }

  /** How many there are in a time, and how much of it they take. */
  within(fromMs: number, toMs: number): { count: number; lastMs: number } {
    const lasts = this.spans
      .map((span) => Math.min(toMs, span.toMs) - Math.max(fromMs, span.fromMs))
      .filter((ms) => ms > 0)
    return { count: lasts.length, lastMs: lasts.reduce((sum, ms) => sum + ms, 0) }
  }
}
