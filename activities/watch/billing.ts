import type { WatchInput, WatchOutcome } from '../../core/activities'
import type { Observation } from '../../core/observation'
import { formatDuration } from '../../core/time/time'
import { endOfQueue } from '../../planner/policy/ending'
import type { Evidence } from '../../planner/policy/liveness'
import type { AttemptDocuments } from '../documents'
import { monotonicOf, type Moment } from './evidence'

/**
 * Tracks whether a machine waits in its provider's queue, and since when it is billed. Puts both on record (`billing.json`), because the
 * provider may report them only while they are true.
 */
export class BillingWatch {
  private hasRead = false
  /** Recorded start of billing; undefined without a record. */
  private recorded: number | null | undefined
  /** Billing began no earlier than this. */
  private earliestMs: number
  /** Earliest start of the last observation. */
  private lookedAtMs: number
  /** The launch on the monotonic clock. */
  private launchedMs: number | undefined
  isQueued = false
  private isGone = false

  constructor(
    private readonly input: WatchInput,
    private readonly documents: AttemptDocuments,
  ) {
    this.lookedAtMs = this.earliestMs = input.handle.launchedAtMs
  }

  /** Earliest start of billing; undefined while the machine is queued, and before the first observation. */
  get fromAtMs(): number | undefined {
    return this.recorded ?? undefined
  }

  /** Time at which the provider's run limit ends the machine; undefined without such a limit. */
  get limitedUntilMs(): number | undefined {
    const { runMsMax } = this.input.order.runner
    return this.fromAtMs === undefined || runMsMax === undefined ? undefined : this.fromAtMs + runMsMax
  }

  /** Whether the machine is gone without having been billed, as far as is known. */
  isUnbilled({ billedFromAtMs }: Observation): boolean {
    return (this.fromAtMs ?? billedFromAtMs) === undefined
  }

  /** Records the result of an observation. Throws a `StoreError`; the next observation repeats it. */
  async note(evidence: Evidence, observation: Observation, now: Moment): Promise<void> {
    const { state, billedFromAtMs } = observation
    const { id } = this.input.handle
    if (!this.hasRead) this.recorded = (await this.documents.readBilling(id))?.fromAtMs
    this.hasRead = true
    this.isQueued = evidence.isQueued = state === 'queued'
    this.isGone = state === 'gone'
    if (this.isQueued) evidence.queuedAtMs = now.monotonicMs
    // The machine may have left the queue as soon as the provider had answered, and each answer is younger than the look before.
    if (this.isQueued) this.earliestMs = this.lookedAtMs
    this.lookedAtMs = now.wallAtMs
    if (typeof this.recorded === 'number') return
    const fromAtMs = this.isQueued ? null : (billedFromAtMs ?? (this.isGone ? null : this.earliestMs))
    if (fromAtMs === this.recorded) return
    // A machine that is gone without ever having been billed needs no record.
    if (fromAtMs === null && !this.isQueued) return
    await this.documents.putBilling({ machine: id, fromAtMs })
    this.recorded = fromAtMs
  }

  /** Returns a fact that the attempt must learn; undefined if it already knows. */
  outcome(now: Moment): WatchOutcome | undefined {
    const { order, handle, isQueued } = this.input
    // Converted once: a wall clock that is set meanwhile changes no duration.
    this.launchedMs ??= monotonicOf(handle.launchedAtMs, now)
    if (this.isQueued) {
      const waitedMs = now.monotonicMs - this.launchedMs
      const limitMs = order.runner.queueMs ?? Infinity
      if (waitedMs > limitMs)
        return {
          kind: 'over',
          end: endOfQueue(
            `The machine waited in the provider's queue for ${formatDuration(waitedMs)}, longer than ${formatDuration(limitMs)}.`,
          ),
        }
      return isQueued === false ? { kind: 'queued' } : undefined
    }
    const isAwaited = isQueued === true || (isQueued === false && order.runnerStart === 'after-launch')
    return isAwaited && !this.isGone && this.fromAtMs !== undefined
      ? { kind: 'begun', fromAtMs: this.fromAtMs }
      : undefined
  }
}
