import { CODES } from '../../core/errors'
import type { Backend } from '../../backends/backend'
import type { WatchInput, WatchOutcome } from '../../core/activities'
import type { Beat } from '../../core/documents'
import type { AttemptEnd } from '../../core/job/ledger'
import type { Observation } from '../../core/observation'
import { endFromLoss, endFromResult, endOfStart } from '../../planner/policy/ending'
import { expiringInMs, judge, leaseMsWithin, type Evidence } from '../../planner/policy/liveness'
import { ignoreBadDocument } from '../../storage/json'
import { readLastWords } from '../../storage/last-words'
import { StoreError, type ObjectStore } from '../../storage/store'
import { isPlausible, startMaxMs, toldAtMs, type DatedAge } from '../../core/time/machine-age'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../core/time/time'
import { AttemptDocuments } from '../documents'
import { BillingWatch } from './billing'
import { LeaseGrants, type GrantSource } from './grants'
import { BudgetWatch } from './budget'
import { ClockSkew } from './clock-skew'
import { firstEvidence, monotonicOf, noteObservation, type Moment } from './evidence'
import { Thinning } from './thinning'

/** Share of a lease after which it is renewed, so that an outage finds most of it left. */
const RENEWED_AFTER_PART = 1 / 12

/**
 * How long a machine that reported that it starts no runner is given: of two machines of one order, the other one may have taken the
 * hand-over, and claims the attempt within seconds.
 */
const LAST_WORDS_CONFIRM_MS = 30 * SECOND_MS

export interface MachineWatchDeps {
  store: ObjectStore
  /** Wall clock: for dates, which others compare with theirs. */
  now: () => number
  /** For durations: it never steps. */
  monotonicMs: () => number
  backend: Pick<Backend, 'prices'>
  /** Source of the machine's credentials for the store; missing if it has its own. */
  grants?: GrantSource | undefined
}

/**
 * Watches one machine: combines the provider's observations with the runner's documents, renews the lease after a fresh beat and
 * only then, and reports when something must be done. Has no timers; the loop drives it.
 */
export class MachineWatch {
  private readonly documents: AttemptDocuments
  private evidence: Evidence | undefined
  private beat: Beat | undefined
  private leaseSeq = 0
  /** Duration of the newest lease. */
  private ttlMs: number
  private checkedAtMs = 0
  /** The provider's last answer. */
  private lastSeen: Observation | undefined
  /** Time of the newest unreadable beat. */
  private unreadAtMs: number | undefined
  private isRunning: boolean
  /** The machine's cut-off as the runner knows it; `usableUntilMs` is the provider's present one. */
  private reportedUntilMs: number | undefined
  private observedUntilMs: number | undefined
  private isBudgetReached: boolean
  /** Whether the lease of an earlier watch was read; only then can the machine's money be judged. */
  private hasReadLease = false
  private readonly grants: LeaseGrants | undefined
  private readonly budget: BudgetWatch
  private readonly thinning: Thinning
  /** Billing state; missing if the launch cannot be queued, and is billed at once. */
  private readonly billing: BillingWatch | undefined
  private readonly now: () => number
  private readonly store: ObjectStore
  /** Monotonic time since which the store has the last words of a machine that started no runner. */
  private lastWordsAtMs: number | undefined
  private readonly monotonicMs: () => number
  private readonly skew: ClockSkew
  private readonly began: Moment
  /** From the order to the runner's start by the store's clock, once it is needed. */
  private startMs: number | undefined
  /** The least time of `machineAtMs` at a moment: from then on this watch measures what no beat can deny. */
  private least: { atMs: number; monotonicMs: number } | undefined

  constructor(
    { store, now, monotonicMs, grants, backend }: MachineWatchDeps,
    private readonly input: WatchInput,
  ) {
    const { jobId, attempt } = input.order
    this.thinning = new Thinning(store, input.order)
    this.now = now
    this.store = store
    this.monotonicMs = monotonicMs
    this.began = this.moment
    this.skew = new ClockSkew(input.timing, () => this.moment)
    this.documents = new AttemptDocuments(store, { jobId, attempt }, now)
    this.grants = grants && new LeaseGrants(grants, input.order, () => this.moment)
    this.billing =
      input.order.runner.queueMs === undefined ? undefined : new BillingWatch(input, this.documents)
    this.budget = new BudgetWatch(input, {
      backend,
      documents: this.documents,
      now: () => this.machineAtMs,
      billedFromAtMs: () => this.billing?.fromAtMs,
    })
    this.ttlMs = input.timing.leaseMs
    this.isRunning = input.isRunning
    this.reportedUntilMs = input.order.runner.usableUntilMs
    this.isBudgetReached = input.isBudgetReached === true
  }

  /**
   * Checks once. `undefined` while no action is needed. `observation` is missing if the provider did not answer, and `not-due` if its pace
   * did not allow a question.
   */
  async check(
    observation: Observation | undefined | 'not-due',
    isReadDue: boolean,
  ): Promise<WatchOutcome | undefined> {
    this.checkedAtMs = this.monotonicMs()
    const evidence = (this.evidence ??= firstEvidence(this.input, this.moment))
    if (observation !== 'not-due') this.note(evidence, observation)
    const queued = observation === 'not-due' ? undefined : await this.checkQueue(evidence, observation)
    const outcome = queued ?? (isReadDue ? await this.read(evidence) : undefined)
    if (outcome !== undefined) return outcome
    const liveness = judge(evidence, this.monotonicMs())
    switch (liveness.kind) {
      case 'alive':
        return this.billing?.isQueued === true ? undefined : (this.expiring() ?? this.watchBudget())
      case 'gone':
        return this.conclude(evidence, this.lost(this.lastSeen ?? GONE))
      case 'fenced':
        return this.conclude(evidence, { kind: 'stopped', by: 'lease' })
      case 'silent':
        return { kind: 'silent', silentMs: liveness.silentMs }
    }
  }

  /** The time by the wall clock of the first moment, grown by the monotonic one, in whole milliseconds. */
  private get steadyAtMs(): number {
    return Math.floor(this.began.wallAtMs + this.monotonicMs() - this.began.monotonicMs)
  }

  /** The time by the clock that dated the launch: a wall clock that is set makes no machine older. */
  private get machineAtMs(): number {
    const { ownTime } = this.skew
    return Math.max(
      toldAtMs(this.datedAge, ownTime && { ...ownTime, startMs: this.startMs }),
      this.least === undefined
        ? -Infinity
        : Math.floor(this.least.atMs + this.monotonicMs() - this.least.monotonicMs),
    )
  }

  private get datedAge(): DatedAge {
    const fromAtMs = this.billing?.fromAtMs ?? this.input.handle.launchedAtMs
    const toAtMs = Math.min(this.now(), this.steadyAtMs)
    return { fromAtMs, toAtMs, startMaxMs: startMaxMs(this.input.order.runner) }
  }

  /** Whether the machine's own time refutes the dates of its age. */
  private get isRefuted(): boolean {
    const own = this.skew.ownTime ?? this.skew.firstTime
    return own !== undefined && !isPlausible(this.datedAge, own)
  }

  /** Whether nothing is known yet of its age: a clock was set, or the first beat that this watch has seen is an old one. */
  private get isAgeUnknown(): boolean {
    return this.skew.ownTime === undefined && this.isRefuted
  }

  private get moment(): Moment {
    return { monotonicMs: this.monotonicMs(), wallAtMs: this.now() }
  }

  /** Handles the machine's queue; problems of the store are noted as in `read`. */
  private async checkQueue(
    evidence: Evidence,
    observation: Observation | undefined,
  ): Promise<WatchOutcome | undefined> {
    if (this.billing === undefined || observation === undefined) return undefined
    try {
      await this.billing.note(evidence, observation, this.moment)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      evidence.storeFailedAtMs = this.checkedAtMs
      return undefined
    }
    const outcome = this.billing.outcome(this.moment)
    return outcome?.kind === 'over' ? this.conclude(evidence, outcome.end) : outcome
  }

  private lost(observation: Observation): AttemptEnd {
    const hasSpoken = this.beat !== undefined
    const { endedAtMs = this.now() } = observation
    return endFromLoss(observation, {
      hasSpoken,
      wasOnlyQueued: !hasSpoken && this.billing?.isUnbilled(observation) === true,
      isTimeUp: endedAtMs >= (this.usableUntilMs ?? Infinity) - CLOCK_SLACK_MS,
    })
  }

  /** The result may have come after the last read and before the end; without an answer of the store, this is unknown. */
  private async conclude(evidence: Evidence, endWithout: AttemptEnd): Promise<WatchOutcome | undefined> {
    const over = await this.readResult(evidence)
    if (over !== undefined) return over
    return evidence.storeFailedAtMs === this.checkedAtMs ? undefined : { kind: 'over', end: endWithout }
  }

  /** Returns the drain of a machine whose reservation ends. The runner normally drains in time; one that does not gets a request. */
  private expiring(): WatchOutcome | undefined {
    const untilMs = this.usableUntilMs
    if (untilMs === undefined || this.input.isExpiring === true || this.isDraining) return undefined
    if (this.skew.isAhead) return undefined
    const leftMs = expiringInMs(this.input.timing, untilMs, this.now())
    return leftMs === undefined ? undefined : { kind: 'expiring', leftMs }
  }

  private get usableUntilMs(): number | undefined {
    return this.observedUntilMs ?? this.billing?.limitedUntilMs ?? this.reportedUntilMs
  }

  private get isDraining(): boolean {
    return this.beat?.phase === 'draining' || this.beat?.phase === 'finishing'
  }

  /** Reported once: from then on the attempt is being stopped. */
  private async watchBudget(): Promise<WatchOutcome | undefined> {
    if (this.isBudgetReached || !this.hasReadLease || this.skew.isAhead || this.isAgeUnknown) return undefined
    if (!(await this.budget.isReached())) return undefined
    this.isBudgetReached = true
    return { kind: 'budget' }
  }

  private note(evidence: Evidence, observation: Observation | undefined): void {
    noteObservation(evidence, observation, this.monotonicMs())
    if (observation === undefined) return
    this.lastSeen = observation
    this.observedUntilMs = observation.usableUntilMs ?? this.observedUntilMs
  }

  /** Reads the runner's documents; renews the lease. A store that does not answer says nothing about the machine. */
  private async read(evidence: Evidence): Promise<WatchOutcome | undefined> {
    try {
      const { beat, isUnread } = await this.readBeat()
      const isFresh = beat !== undefined && beat.seq !== this.beat?.seq
      if (isFresh) this.skew.note(beat)
      if (this.isRefuted) this.startMs ??= await this.documents.startMs()
      if (this.leaseSeq === 0) await this.takeUpLease(evidence)
      if (isFresh) this.least ??= { atMs: this.datedAge.fromAtMs, monotonicMs: this.monotonicMs() }
      if (isUnread) await this.hearUnread(evidence)
      if (isFresh) {
        this.beat = beat
        // A runner that does not answer its timekeeper is silent, although the machine beats.
        if (beat.stalledSinceMs === undefined) evidence.beatSeenAtMs = this.monotonicMs()
        await this.budget.followLimits(beat.limitsSeq)
        await this.renew(evidence, beat)
        // Unreadable checkpoints do not block the renewal of a lease.
        await this.thinning.after(beat).catch(ignoreBadDocument)
      }
      // The result is worth a read when the runner is about to write it, or has stopped beating.
      if (!isFresh || this.isDraining) {
        const over = await this.readResult(evidence)
        if (over !== undefined) return over
      }
      if (this.beat === undefined && !isUnread) {
        const end = await this.readStartFailure()
        if (end !== undefined) return { kind: 'over', end }
      }
      return this.reportRunning() ?? this.reportWarning()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      evidence.storeFailedAtMs = this.checkedAtMs
      return undefined
    }
  }

  private async readBeat(): Promise<{ beat: Beat | undefined; isUnread: boolean }> {
    try {
      return { beat: await this.documents.readBeat(), isUnread: false }
    } catch (error) {
      return { beat: ignoreBadDocument(error), isUnread: true }
    }
  }

  /** How the attempt ended if its machine reported that it starts no runner, and no other machine has claimed the attempt. */
  private async readStartFailure(): Promise<AttemptEnd | undefined> {
    const words = await readLastWords(this.store, this.input.order)
    if (words === undefined) return undefined
    this.lastWordsAtMs ??= this.monotonicMs()
    if (this.monotonicMs() - this.lastWordsAtMs < LAST_WORDS_CONFIRM_MS) return undefined
    return (await this.documents.isClaimed()) ? undefined : endOfStart(words)
  }

  private reportRunning(): WatchOutcome | undefined {
    const phase = this.beat?.phase
    if (this.isRunning || (phase !== 'running' && phase !== 'draining' && phase !== 'finishing'))
      return undefined
    this.isRunning = true
    return { kind: 'running' }
  }

  private reportWarning(): WatchOutcome | undefined {
    const { warned } = this.input
    if (warned === undefined || this.beat === undefined) return undefined
    const warning = this.beat.warning ?? null
    return (warning?.kind ?? null) === warned ? undefined : { kind: 'warned', warning }
  }

  /** Continues from the lease of an earlier watch. */
  private async takeUpLease(evidence: Evidence): Promise<void> {
    const found = await this.documents.readLease()
    this.hasReadLease = true
    if (found === undefined) return
    const { lease, renewedAtMs } = found
    evidence.renewedAtMs = monotonicOf(renewedAtMs, this.moment)
    // An unreadable one is renewed after the next beat, like the first one: unknown is not silent.
    evidence.isLeaseFirst = lease === undefined
    if (lease === undefined) return
    this.leaseSeq = lease.seq
    this.ttlMs = lease.ttlMs
    this.grants?.takeUp(lease.grant)
    this.reportedUntilMs = lease.usableUntilMs ?? this.reportedUntilMs
    this.budget.restore({ lease, renewedAtMs })
    const { metered } = lease
    if (metered !== undefined) this.least = { atMs: metered.toAtMs, monotonicMs: this.monotonicMs() }
  }

  /** Notes an unreadable beat, which is a sign of life whenever it is rewritten, but renews no lease. */
  private async hearUnread(evidence: Evidence): Promise<void> {
    const writtenAtMs = await this.documents.beatWrittenAtMs()
    if (writtenAtMs !== undefined && writtenAtMs !== this.unreadAtMs)
      evidence.beatSeenAtMs = this.monotonicMs()
    this.unreadAtMs = writtenAtMs
  }

  private async renew(evidence: Evidence, beat: Beat): Promise<void> {
    // The next beat tells how old the machine is, and is answered instead.
    if (this.isDraining || this.isAgeUnknown) return
    const grant = await this.grants?.next()
    if (grant === undefined && this.grants?.isOptional === false) return
    // A report of spending that rests on a wrong clock would move the runner's own, exact stop.
    const isCounted = this.skew.isSmall
    const newReport = isCounted ? await this.budget.newReport() : undefined
    const monotonicMs = this.monotonicMs()
    const { timing } = this.input
    const ttlMs = grant === undefined ? timing.leaseMs : leaseMsWithin(timing, grant.leftMs)
    const passedMs = monotonicMs - evidence.renewedAtMs
    const isDue = passedMs >= this.ttlMs * RENEWED_AFTER_PART && passedMs + ttlMs > this.ttlMs
    const isMoved = this.usableUntilMs !== this.reportedUntilMs
    const isNew = evidence.isLeaseFirst || grant?.isNew === true || isMoved || newReport !== undefined
    if (!isDue && !isNew) return
    const report = newReport ?? (isCounted ? await this.budget.report() : {})
    // Noted before the write: if its answer is lost, the lease counts as renewed, which only makes us wait longer.
    evidence.renewedAtMs = monotonicMs
    evidence.isLeaseFirst = false
    // The number is higher than any that the runner has obeyed, even if that one was unreadable.
    this.leaseSeq = Math.max(this.leaseSeq, beat.leaseSeq) + 1
    this.ttlMs = Math.max(0, ttlMs)
    const usableUntilMs = this.usableUntilMs
    const hasMoved = usableUntilMs !== undefined && usableUntilMs !== this.input.order.runner.usableUntilMs
    await this.documents.putLease({
      seq: this.leaseSeq,
      answersBeat: beat.seq,
      ttlMs: this.ttlMs,
      usableUntilMs: hasMoved ? usableUntilMs : undefined,
      ...report,
      grant: grant ? grant.sealed : undefined,
    })
    this.reportedUntilMs = usableUntilMs
    this.budget.markReported()
  }

  private async readResult(evidence: Evidence): Promise<WatchOutcome | undefined> {
    try {
      const result = await this.documents.readResult()
      return result === undefined ? undefined : { kind: 'over', end: endFromResult(result) }
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (error.code === CODES.badDocument) {
        const failure = { class: 'damaged' as const, message: error.message, code: CODES.badDocument }
        return { kind: 'over', end: { kind: 'failed', isLaunched: true, failure } }
      }
      evidence.storeFailedAtMs = this.checkedAtMs
      return undefined
    }
  }
}

const GONE: Observation = { state: 'gone' }
