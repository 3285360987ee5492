import type { Beat } from '../../core/documents'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../core/time/time'
import type { OwnTime } from '../../core/time/machine-age'
import type { Timing } from '../../core/time/timing'
import type { Moment } from './evidence'

/** Beats that a beating machine may miss, and the time in which one is read. */
const BEATS_MISSED = 3
const READ_WITHIN_MS = 5 * SECOND_MS

/**
 * How far our wall clock and the machine's are apart, from its beats. A date alone ends no machine that beats: the two clocks must agree
 * that the date is there, because either may have been set. Without beats, ours alone decides.
 */
export class ClockSkew {
  private seen: (Moment & { beat: Beat }) | undefined
  /** Whether a second beat has shown that the first one was no old one. */
  private isFresh = false

  constructor(
    private readonly timing: Pick<Timing, 'beatMs'>,
    private readonly moment: () => Moment,
  ) {}

  /** Notes a beat that was not seen before. */
  note(beat: Beat): void {
    if (this.seen?.beat.seq === beat.seq) return
    this.isFresh = this.seen !== undefined
    this.seen = { ...this.moment(), beat }
  }

  /** The machine's own time; undefined before it is certain how old its last beat is. */
  get ownTime(): OwnTime | undefined {
    return this.isFresh ? this.timeSeen : undefined
  }

  /** The machine's own time as its first beat tells it, which may be an old one, until another one comes, or should have come. */
  get firstTime(): OwnTime | undefined {
    return this.isFresh || !this.isBeating ? undefined : this.timeSeen
  }

  private get timeSeen(): OwnTime | undefined {
    if (this.seen === undefined) return undefined
    const { beat, monotonicMs } = this.seen
    return { beat, sinceBeatMs: this.moment().monotonicMs - monotonicMs }
  }

  /**
   * Whether our clock may be ahead of the machine's, so that a date may not be there yet. The first beat that a watch sees may be an old
   * one, which another beat or its absence shows soon.
   */
  get isAhead(): boolean {
    return this.isBeating && this.aheadMs > CLOCK_SLACK_MS + this.lookMs
  }

  /** Whether the clocks agree, or the machine's is unknown. */
  get isSmall(): boolean {
    return !this.isBeating || Math.abs(this.aheadMs) <= CLOCK_SLACK_MS + this.lookMs
  }

  private get isBeating(): boolean {
    return this.seen !== undefined && this.moment().monotonicMs - this.seen.monotonicMs <= this.lookMs
  }

  /** The machine's clock is read once with each beat, and continues as time is measured here. */
  private get aheadMs(): number {
    if (this.seen === undefined) return 0
    const { wallAtMs, monotonicMs } = this.moment()
    return wallAtMs - (this.seen.beat.clockMs + monotonicMs - this.seen.monotonicMs)
  }

  private get lookMs(): number {
    return BEATS_MISSED * this.timing.beatMs + READ_WITHIN_MS
  }
}
