import type { Avoidance, Decision, Ledger } from '../core/ledger'
import { EMPTY_LEDGER } from '../core/ledger'
import type { JobCarry, JobInput, ResolvedJob } from '../core/messages'
import { JobPage } from './job-page'
import { Wishes } from './wishes'

/** Record numbers 0 and 1 are the submission and the resolved spec. */
const FIRST_FREE_SEQ = 2

/** An avoidance with the workflow's own instant at which it ends. */
interface Avoided extends Avoidance {
  untilMs: number
}

/** Everything that a job carries from one step to the next. */
export class JobRun {
  readonly page: JobPage
  readonly wishes = new Wishes()
  ledger: Ledger
  /** Counts up with every new deadline or budget. */
  limitsVersion = 0
  /** Pause before the next attempt. */
  waitMs = 0
  private avoided: Avoided[]
  private recordSeq: number
  private known: ResolvedJob | undefined

  constructor(readonly input: JobInput) {
    const { carry } = input
    this.page = new JobPage(input)
    this.ledger = carry?.ledger ?? EMPTY_LEDGER
    this.recordSeq = carry?.recordSeq ?? FIRST_FREE_SEQ
    this.known = carry?.resolved
    this.avoided = (carry?.avoid ?? []).map(until)
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

  /** Hands out the numbers of the record; a repeated activity gets the same one from history. */
  nextSeq(): number {
    return this.recordSeq++
  }

  /** What is still to be avoided, with the time that is left of it. */
  avoid(): Avoidance[] {
    const nowMs = Date.now()
    this.avoided = this.avoided.filter(({ untilMs }) => untilMs > nowMs)
    return this.avoided.map(({ untilMs, offerKey, why }) => ({ offerKey, why, forMs: untilMs - nowMs }))
  }

  goOn({ reason, message, afterMs, avoid }: Extract<Decision, { kind: 'again' }>): void {
    const fresh = new Set(avoid.map(({ offerKey }) => offerKey))
    this.avoided = [...this.avoided.filter(({ offerKey }) => !fresh.has(offerKey)), ...avoid.map(until)]
    this.waitMs = afterMs
    this.page.move('recovering', reason, message)
  }

  carry(): JobCarry {
    return {
      resolved: this.resolved,
      status: this.page.status,
      ledger: this.ledger,
      avoid: this.avoid(),
      recordSeq: this.recordSeq,
    }
  }
}

function until(avoidance: Avoidance): Avoided {
  return { ...avoidance, untilMs: Date.now() + avoidance.forMs }
}
