import { CODES } from '../../core/errors'
import type { Backend } from '../../backends/backend'
import type { WatchInput } from '../../core/activities'
import { budgetReserveMs, paidForMs, type AttemptBudget } from '../../core/money/budget'
import type { Lease } from '../../core/documents'
import { costSoFar, spendOver, type Metered } from '../../core/money/meter'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../core/time/time'
import { StoreError } from '../../storage/store'
import { ignoreBadDocument } from '../../storage/json'
import type { AttemptDocuments } from '../documents'
import { costOfOthers, dearestOf, meterRunning, roundingOf } from '../money/metering'

/** Spending is recomputed after this share of the remaining time: the nearer the end, the more often. */
const RECHECK_PART = 1 / 4
/** The stop must move by this share of the remaining budget to be worth a document. */
const REPORT_PART = 1 / 20
/** Compute without live prices if they take longer than this. */
const PRICES_LIMIT_MS = 10 * SECOND_MS

/** Money fields of a lease. */
export type SpendReport = Required<Pick<Lease, 'spentMicroUsd'>> & { metered: Metered }

interface BudgetWatchDeps {
  backend: Pick<Backend, 'prices'>
  documents: AttemptDocuments
  now: () => number
  /** Earliest start of billing, if the machine may have been queued before. */
  billedFromAtMs?: () => number | undefined
}

/** Upper bound on the spending at a time of the watching process's clock. */
interface SpendingBound {
  atMs: number
  spentMicroUsd: number
}

/**
 * The money of one attempt while its machine runs: its cost so far, and when it must stop. The rest is counted at the highest
 * price, as the runner does; the runner only knows the last published value.
 */
export class BudgetWatch {
  private readonly backend: BudgetWatchDeps['backend']
  private readonly documents: AttemptDocuments
  private readonly now: () => number
  private readonly billedFromAtMs: () => number | undefined
  private known: SpendingBound | undefined
  private metered: Metered | undefined
  /** The last report for people. */
  private told: Metered | undefined
  private budget: AttemptBudget | null
  private limitsSeq: number
  private checkedAtMs: number | undefined
  private orderedAtMs: number | undefined
  /** Cost of other machines that the provider made of the order; undefined until it is known. */
  private othersMicroUsd: number | undefined
  /** Stop time that the runner knows. */
  private reportedStopMs = -Infinity

  constructor(
    private readonly input: WatchInput,
    { backend, documents, now, billedFromAtMs = () => undefined }: BudgetWatchDeps,
  ) {
    this.billedFromAtMs = billedFromAtMs
    this.backend = backend
    this.documents = documents
    this.now = now
    const { limits } = input.order.runner
    this.budget = limits.budget
    this.limitsSeq = limits.seq
  }

  /** Published by an earlier watch, with its time. Without that one, the store's clock tells when. */
  restore({ lease, renewedAtMs }: { lease: Lease; renewedAtMs: number }): void {
    this.told = lease.metered
    if (lease.spentMicroUsd === undefined) return
    const nowMs = this.now()
    const reportedAtMs = lease.metered?.toAtMs ?? renewedAtMs
    // By a clock that was set: how long ago it was is unknown.
    if (reportedAtMs > nowMs + CLOCK_SLACK_MS) return
    this.keep({ atMs: Math.min(reportedAtMs, nowMs) - CLOCK_SLACK_MS, spentMicroUsd: lease.spentMicroUsd })
    this.reportedStopMs = this.stopAtMs
  }

  /** Everything that the runner obeys is published. */
  async followLimits(limitsSeq: number): Promise<void> {
    // Unreadable limits must not let the lease expire.
    if (limitsSeq > this.limitsSeq) await this.readLimits().catch(ignoreBadDocument)
  }

  /** Returns a report that is worth a separate lease; undefined if the runner would stop barely later. */
  async newReport(): Promise<SpendReport | undefined> {
    const nowMs = this.now()
    const { checkedAtMs, stopAtMs } = this
    if (this.budget === null) return undefined
    if (checkedAtMs !== undefined && nowMs < checkedAtMs + (stopAtMs - checkedAtMs) * RECHECK_PART)
      return undefined
    const report = await this.report()
    const gainMs = this.stopAtMs - this.reportedStopMs
    return gainMs > Math.max(0, (this.stopAtMs - nowMs) * REPORT_PART) ? report : undefined
  }

  /** Returns the report for a lease. */
  async report(): Promise<SpendReport> {
    const { atMs, spentMicroUsd } = await this.measure()
    const { othersMicroUsd: others = 0, metered } = this
    // A provider may report a lower price late; the shown cost does not fall.
    const shown = this.shownAt(atMs)
    this.told =
      metered === undefined
        ? shown
        : { ...metered, costMicroUsd: Math.max(metered.costMicroUsd + others, shown.costMicroUsd) }
    return { spentMicroUsd: spentMicroUsd + others, metered: this.told }
  }

  /** The cost that views compute from the last report, or before the first one from the launch. */
  private shownAt(atMs: number): Metered {
    const { handle } = this.input
    const { billedInStepsOfMs } = roundingOf(this.input)
    const { priceMicroUsdPerHour } = handle.realised
    const fromAtMs = this.billedFromAtMs() ?? handle.launchedAtMs
    const bill = { fromAtMs, priceMicroUsdPerHour, billedInStepsOfMs, metered: this.told }
    const price = this.told?.priceMicroUsdPerHour ?? priceMicroUsdPerHour
    return { toAtMs: atMs, costMicroUsd: costSoFar(bill, atMs), priceMicroUsdPerHour: price }
  }

  /** The runner reads the newest one. */
  markReported(): void {
    this.reportedStopMs = this.stopAtMs
  }

  /** Whether the remaining budget only covers saving and stopping, for a machine that does not stop on its own. */
  async isReached(): Promise<boolean> {
    if (this.budget === null) return false
    const reserveMs = budgetReserveMs(this.input.timing)
    if (this.known === undefined) await this.measure()
    if (this.now() < this.stopAtMs - reserveMs) return false
    // New limits may be on their way to a machine that has not confirmed them. If the store does not answer, the amount stays unknown; the
    // machine has its own hard stop, and could not be reached either.
    if (!(await this.isLimitsKnown())) return false
    await this.measure()
    return this.now() >= this.stopAtMs - reserveMs
  }

  private get stopAtMs(): number {
    if (this.known === undefined) return Infinity
    return this.known.atMs + paidForMs(this.budget, this.known.spentMicroUsd + (this.othersMicroUsd ?? 0))
  }

  private async isLimitsKnown(): Promise<boolean> {
    try {
      await this.readLimits()
      return true
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return error.code === CODES.badDocument
    }
  }

  private async readLimits(): Promise<void> {
    const limits = await this.documents.readLimits()
    if (limits === undefined || limits.seq <= this.limitsSeq) return
    this.limitsSeq = limits.seq
    this.budget = limits.budget
  }

  private async measure(): Promise<SpendingBound> {
    const fromAtMs = await this.fromAtMs()
    await this.meterOthers()
    const { order, handle } = this.input
    const nowMs = this.now()
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), PRICES_LIMIT_MS)
    const spent = await meterRunning(this.backend, { order, handle, fromAtMs, nowMs }, limit.signal)
    clearTimeout(timer)
    this.checkedAtMs = nowMs
    const { asToldMicroUsd: costMicroUsd, priceMicroUsdPerHour } = spent
    // Without an answer of the provider, the last report continues.
    this.metered =
      costMicroUsd === undefined ? undefined : { toAtMs: nowMs, costMicroUsd, priceMicroUsdPerHour }
    return this.keep({ atMs: nowMs, spentMicroUsd: spent.atMostMicroUsd })
  }

  /** Duplicates are ended before the watch begins, so their cost is read once. */
  private async meterOthers(): Promise<void> {
    if (this.othersMicroUsd !== undefined) return
    const ended = await this.documents.readEnded().catch(() => undefined)
    this.othersMicroUsd = ended && costOfOthers(ended, { ...this.input, nowMs: this.now() })
  }

  /** Combines two certain bounds into the better one at the later time, because older data may disappear. */
  private keep(next: SpendingBound): SpendingBound {
    const { known, input } = this
    const steps = { billedInStepsOfMs: roundingOf(input).billedInStepsOfMs ?? SECOND_MS }
    const carried =
      known === undefined
        ? Infinity
        : // A clock that was set back does not reduce spending.
          known.spentMicroUsd + spendOver(Math.max(0, next.atMs - known.atMs), dearestOf(input), steps)
    return (this.known = { ...next, spentMicroUsd: Math.min(next.spentMicroUsd, carried) })
  }

  /**
   * Earliest possible start of billing on our clock: the order time, or the provider's launch time minus clock slack, whichever
   * is later; for a machine that was queued, the beginning of its billing.
   */
  private async fromAtMs(): Promise<number> {
    this.orderedAtMs ??= await this.documents.orderedAtMs().catch(() => undefined)
    const beganAtMs = this.billedFromAtMs() ?? this.input.handle.launchedAtMs
    return Math.max(this.orderedAtMs ?? 0, beganAtMs - CLOCK_SLACK_MS)
  }
}
