import { attemptBudget, leftOfBudget } from '../../core/money/budget'
import type { Limits } from '../../core/documents'
import type { Avoidance, Decision, Ledger } from '../../core/job/ledger'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { JobCarry, JobInput, Pause, ResolvedJob } from '../../core/messages'
import type { BackendName, Pins } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { stoppingMs } from '../../core/time/timing'
import { JobPage } from './page'
import { DrainRequests } from './drain-requests'

/** Record numbers 0 and 1 are the submission and the resolved spec. */
const FIRST_FREE_SEQ = 2

/** A temporary value, with the workflow time at which it ends. */
type Until<T> = T & { untilMs: number }

/** Everything that a job carries from one step to the next. */
export class JobRun {
  readonly page: JobPage
  readonly drains = new DrainRequests()
  ledger: Ledger
  /** Incremented with every new deadline or budget. */
  limitsVersion = 0
  /** Pins of the job's orders; missing before the first pin. */
  pins: Record<BackendName, Pins> | undefined
  private held: Until<Pause> | undefined
  private avoided: Until<Avoidance>[]
  private recordSeq: number
  private known: ResolvedJob | undefined

  constructor(readonly input: JobInput) {
    const { carry } = input
    this.page = new JobPage(input)
    this.ledger = carry?.ledger ?? EMPTY_LEDGER
    this.recordSeq = carry?.recordSeq ?? FIRST_FREE_SEQ
    this.known = carry?.resolved
    this.pins = carry?.pins
    this.avoided = (carry?.avoid ?? []).map(until)
    this.held = carry?.pause && until(carry.pause)
  }

  get isResolved(): boolean {
    return this.known !== undefined
  }

  get resolved(): ResolvedJob {
    if (this.known === undefined) throw new Error('the job is not resolved yet')
    return this.known
  }

  set resolved(resolved: ResolvedJob) {
    this.known = resolved
  }

  get nextAttempt(): number {
    return this.page.status.attemptsTotal + 1
  }

  /** Returns the next number of the record; a retried activity gets the same one from history. */
  nextSeq(): number {
    return this.recordSeq++
  }

  /** Returns the avoided offers, with the remaining time. */
  avoid(): Avoidance[] {
    const nowMs = Date.now()
    this.avoided = this.avoided.filter(({ untilMs }) => untilMs > nowMs)
    return this.avoided.map(({ untilMs, offerKey, why }) => ({ offerKey, why, forMs: untilMs - nowMs }))
  }

  /** The remaining pause before the next order. */
  get pause(): Pause | undefined {
    if (this.held === undefined) return undefined
    const { untilMs, reason, message } = this.held
    const forMs = untilMs - Date.now()
    return forMs > 0 ? { forMs, reason, message } : undefined
  }

  /** The first order that pins something pins it permanently, unless a later order had to replace it. */
  pin({ backend, offers: [offer] }: Order): void {
    if (offer?.pins !== undefined)
      this.pins = { ...this.pins, [backend]: { ...this.pins?.[backend], ...offer.pins } }
  }

  /** The deadline's timer, early enough to save and stop before the deadline. */
  armDeadline(): void {
    const { deadlineAtMs } = this.page.status
    if (deadlineAtMs === undefined) return
    const { timing } = this.resolved
    this.drains.armDeadline({
      inMs: deadlineAtMs - stoppingMs(timing) - Date.now(),
      windowMs: timing.drainMs,
    })
  }

  /** The current limits, for the running machine of an order. */
  limitsFor(order: Order, seq: number): Limits {
    const { deadlineAtMs = null, budgetMicroUsd, spentMicroUsd } = this.page.status
    return { seq, deadlineAtMs, budget: attemptBudget(leftOfBudget(budgetMicroUsd, spentMicroUsd), order) }
  }

  goOn({ reason, message, afterMs, avoid }: Extract<Decision, { kind: 'again' }>): void {
    const isRenewed = (old: Avoidance): boolean =>
      avoid.some(({ offerKey, why }) => offerKey === old.offerKey && why === old.why)
    this.avoided = [...this.avoided.filter((old) => !isRenewed(old)), ...avoid.map(until)]
    this.held = until({ forMs: afterMs, reason, message })
    this.page.recovering(reason, message)
  }

  carry(): JobCarry {
    const { pause, pins } = this
    return {
      resolved: this.resolved,
      status: this.page.status,
      ledger: this.ledger,
      avoid: this.avoid(),
      pins,
      pause,
      recordSeq: this.recordSeq,
    }
  }
}

function until<T extends { forMs: number }>(it: T): Until<T> {
  return { ...it, untilMs: Date.now() + it.forMs }
}
