import type { Drain, IssuedRunnerOrder, Lease, Limits, ResultReason } from '../../../core/documents'
import { paidForMs } from '../../../core/money/budget'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../../core/time/time'
import type { Behaviour } from './behaviour'

/** Beats with a known sending time, so that a late lease can still be counted. */
const BEATS_REMEMBERED = 1_000
/** Of what a notice leaves, the share for the result, and its most. */
const RESULT_SHARE = 0.1
const RESULT_MAX_MS = SECOND_MS

/** Why the workload must stop, and by when it must have saved. */
export interface Stop {
  reason: ResultReason
  untilMs: number
}

/** What bounds a runner's life: its lease, its limits, the provider's notice, and `drain.json`. */
export class RunnerTerms {
  limits: Limits
  leaseSeq = 0
  #leaseUntilMs: number
  #usableUntilMs: number
  readonly #sentAtMs = new Map<number, number>()
  /** At most, as far as it was reported. */
  #spent: { atMs: number; microUsd: number }
  #asked: Stop | undefined
  #noticed: Stop | undefined

  readonly startedAtMs: number
  /** The workload may be started until then. */
  readonly startsUntilMs: number

  constructor(
    readonly order: IssuedRunnerOrder,
    { startedAtMs, beganAtMs }: { startedAtMs: number; beganAtMs: number },
    { ignoresExpiry = false }: Pick<Behaviour, 'ignoresExpiry'> = {},
  ) {
    const { issuedAtMs, queueMs, startWithinMs, runMsMax = Infinity, usableUntilMs = Infinity } = order
    this.startedAtMs = startedAtMs
    this.limits = order.limits
    // A machine that may have been queued counts from its own beginning.
    const fromAtMs = queueMs === undefined ? issuedAtMs : Math.max(issuedAtMs, beganAtMs)
    this.startsUntilMs = Math.min(fromAtMs, issuedAtMs + (queueMs ?? 0)) + startWithinMs
    this.#spent = { atMs: Math.min(startedAtMs, fromAtMs), microUsd: 0 }
    this.#leaseUntilMs = startedAtMs + order.leaseMs
    this.#usableUntilMs = ignoresExpiry ? Infinity : Math.min(usableUntilMs, fromAtMs + runMsMax)
  }

  beatSent(seq: number, nowMs: number): void {
    this.#sentAtMs.set(seq, nowMs)
    this.#sentAtMs.delete(seq - BEATS_REMEMBERED)
  }

  /** Counts from the time when the answered beat was sent; one that answers no known beat is ignored. */
  obeyLease({ seq, answersBeat, ttlMs, usableUntilMs, spentMicroUsd }: Lease): void {
    this.#usableUntilMs = usableUntilMs ?? this.#usableUntilMs
    const sentAtMs = this.#sentAtMs.get(answersBeat)
    if (sentAtMs === undefined) return
    this.leaseSeq = Math.max(this.leaseSeq, seq)
    this.#leaseUntilMs = Math.max(this.#leaseUntilMs, sentAtMs + ttlMs)
    if (spentMicroUsd !== undefined && sentAtMs > this.#spent.atMs)
      this.#spent = { atMs: sentAtMs, microUsd: spentMicroUsd }
  }

  obeyLimits(limits: Limits): void {
    if (limits.seq > this.limits.seq) this.limits = limits
  }

  obeyDrain({ reason, windowMs }: Drain, nowMs: number): void {
    const untilMs = nowMs + Math.min(this.order.drainMs, windowMs)
    this.#asked = {
      reason: this.#asked?.reason ?? reason,
      untilMs: Math.min(this.#asked?.untilMs ?? Infinity, untilMs),
    }
  }

  obeyNotice(terminateAtMs: number, nowMs: number): void {
    const leftMs = Math.max(0, terminateAtMs - nowMs)
    const usableMs = leftMs - Math.min(RESULT_MAX_MS, leftMs * RESULT_SHARE)
    this.#noticed = { reason: 'interrupted', untilMs: nowMs + Math.min(this.order.drainMs, usableMs) }
  }

  get isDrainAsked(): boolean {
    return this.#asked !== undefined
  }

  /** When `stop` will have something to say, as far as is known. */
  get stopsAtMs(): number {
    if (this.#asked !== undefined || this.#noticed !== undefined) return -Infinity
    const { drainMs } = this.order
    return Math.min(this.#hardStop().untilMs - drainMs, this.#expiry().untilMs - drainMs, this.#leaseUntilMs)
  }

  /** The weightiest reason to stop now with the shortest time that any reason leaves, or `undefined` without a reason. */
  stop(nowMs: number, isDraining: boolean): Stop | undefined {
    const { drainMs } = this.order
    const [hard, expiry] = [this.#hardStop(), this.#expiry()]
    const reasons = [
      this.#asked,
      this.#noticed,
      isDraining || nowMs >= hard.untilMs - drainMs ? hard : undefined,
      isDraining || nowMs >= expiry.untilMs - drainMs ? expiry : undefined,
      nowMs >= this.#leaseUntilMs
        ? { reason: 'lease' as const, untilMs: this.#leaseUntilMs + drainMs }
        : undefined,
    ].filter((reason) => reason !== undefined)
    const [first] = reasons
    return first && { reason: first.reason, untilMs: Math.min(...reasons.map((reason) => reason.untilMs)) }
  }

  /** By when the machine must be left because its reservation ends. */
  #expiry(): Stop {
    return { reason: 'expired', untilMs: this.#usableUntilMs - CLOCK_SLACK_MS - this.order.powerOffMs }
  }

  /** The earlier of the two limits, less what the result and the power-off take. */
  #hardStop(): Stop {
    const { deadlineAtMs, budget } = this.limits
    const deadlineMs = deadlineAtMs ?? Infinity
    const { atMs, microUsd } = this.#spent
    const budgetMs = atMs + paidForMs(budget, microUsd)
    const reason = deadlineMs <= budgetMs ? 'deadline' : 'budget'
    return { reason, untilMs: Math.min(deadlineMs, budgetMs) - this.order.powerOffMs }
  }
}
