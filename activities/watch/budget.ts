import { CODES } from '../../core/errors'
import type { Backend } from '../../backends/backend'
import type { WatchInput } from '../../core/activities'
import type { AttemptBudget, Metered } from '../../core/attempt-money'
import type { Lease } from '../../core/documents'
import { affordableMs, spendOver } from '../../core/meter'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../core/time'
import { budgetReserveMs } from '../../core/timing'
import { StoreError } from '../../storage/store'
import { ignoreBadDocument } from '../../storage/json'
import type { AttemptDocuments } from '../documents'
import { dearestOf, meterRunning } from '../metering'

/** What has been spent is looked at again when this part of what is left has passed: the nearer the end, the oftener. */
const RECHECK_PART = 1 / 4
/** By so much of what is left the stop must move to be worth a document. */
const REPORT_PART = 1 / 20
/** What nobody tells within this long is worked out without it. */
const PRICES_LIMIT_MS = 10 * SECOND_MS

/** What a lease tells of money. */
export type SpendReport = Required<Pick<Lease, 'spentMicroUsd'>> & { metered: Metered }

interface BudgetWatchDeps {
  backend: Pick<Backend, 'prices'>
  documents: AttemptDocuments
  now: () => number
}

/** At an instant of the watching process's clock, at most so much was spent. */
interface Known {
  atMs: number
  spentMicroUsd: number
}

/**
 * The money of one attempt while its machine runs: what it has cost, and when it must stop by that. From what is known the rest is
 * counted at the dearest price, as its runner counts it; the runner knows only what it was told last.
 */
export class BudgetWatch {
  private readonly backend: BudgetWatchDeps['backend']
  private readonly documents: AttemptDocuments
  private readonly now: () => number
  private known: Known | undefined
  private metered: Metered | undefined
  private budget: AttemptBudget | null
  private limitsSeq: number
  private checkedAtMs: number | undefined
  private orderedAtMs: number | undefined
  /** By what the runner knows. */
  private reportedStopMs = -Infinity

  constructor(
    private readonly input: WatchInput,
    { backend, documents, now }: BudgetWatchDeps,
  ) {
    this.backend = backend
    this.documents = documents
    this.now = now
    const { limits } = input.order.runner
    this.budget = limits.budget
    this.limitsSeq = limits.seq
  }

  /** What an earlier watch has told; its instant is by the store's clock. */
  restore({ lease, renewedAtMs }: { lease: Lease; renewedAtMs: number }): void {
    if (lease.spentMicroUsd === undefined) return
    this.keep({
      atMs: Math.min(renewedAtMs, this.now()) - CLOCK_SLACK_MS,
      spentMicroUsd: lease.spentMicroUsd,
    })
    this.reportedStopMs = this.stopAtMs
  }

  /** Whatever the runner obeys is there to be read. */
  async followLimits(limitsSeq: number): Promise<void> {
    // Limits that nobody can read are no reason to let the lease run out.
    if (limitsSeq > this.limitsSeq) await this.readLimits().catch(ignoreBadDocument)
  }

  /** What is worth a lease of its own; nothing where the runner would not stop much later for it. */
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

  /** What any lease tells. */
  async report(): Promise<SpendReport> {
    const { atMs, spentMicroUsd } = await this.measure()
    const metered = this.metered ?? { toAtMs: atMs, costMicroUsd: spentMicroUsd, priceMicroUsdPerHour: 0 }
    return { spentMicroUsd, metered }
  }

  /** The runner reads what was told last. */
  markReported(): void {
    this.reportedStopMs = this.stopAtMs
  }

  /** Whether what is left is needed to save and stop, for a machine that does not do so by itself. */
  async isReached(): Promise<boolean> {
    if (this.budget === null) return false
    const reserveMs = budgetReserveMs(this.input.timing)
    if (this.known === undefined) await this.measure()
    if (this.now() < this.stopAtMs - reserveMs) return false
    // New limits may be on their way to a machine that does not say that it has read them. A store that does not answer leaves it open
    // how much there is: the machine has a stop of its own, and could not be told either.
    if (!(await this.isLimitsKnown())) return false
    await this.measure()
    return this.now() >= this.stopAtMs - reserveMs
  }

  private get stopAtMs(): number {
    if (this.budget === null || this.known === undefined) return Infinity
    const { microUsd, priceMaxMicroUsdPerHour } = this.budget
    return (
      this.known.atMs +
      (affordableMs(microUsd - this.known.spentMicroUsd, priceMaxMicroUsdPerHour) ?? Infinity)
    )
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

  private async measure(): Promise<Known> {
    const fromAtMs = await this.fromAtMs()
    const { order, handle } = this.input
    const nowMs = this.now()
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), PRICES_LIMIT_MS)
    const spent = await meterRunning(this.backend, { order, handle, fromAtMs, nowMs }, limit.signal)
    clearTimeout(timer)
    this.checkedAtMs = nowMs
    this.metered = {
      toAtMs: nowMs,
      costMicroUsd: spent.asToldMicroUsd,
      priceMicroUsdPerHour: spent.priceMicroUsdPerHour,
    }
    return this.keep({ atMs: nowMs, spentMicroUsd: spent.atMostMicroUsd })
  }

  /** Of two that are both certain the better one, as of the later instant: nobody may tell any more what was told before. */
  private keep(next: Known): Known {
    const { known, input } = this
    const carried =
      known === undefined
        ? Infinity
        : // A clock that was set back takes nothing back.
          known.spentMicroUsd + spendOver(Math.max(0, next.atMs - known.atMs), dearestOf(input))
    return (this.known = { ...next, spentMicroUsd: Math.min(next.spentMicroUsd, carried) })
  }

  /**
   * From when the machine can have been billed, by our own clock: not before it was ordered, and hardly before the provider says,
   * whose clock is another.
   */
  private async fromAtMs(): Promise<number> {
    this.orderedAtMs ??= (await this.documents.readOrder().catch(() => undefined))?.issuedAtMs
    return Math.max(this.orderedAtMs ?? 0, this.input.handle.launchedAtMs - CLOCK_SLACK_MS)
  }
}
