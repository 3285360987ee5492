import type { AttemptDocuments } from '../../activities/documents'
import { BillingWatch } from '../../activities/watch/billing'
import { BudgetWatch } from '../../activities/watch/budget'
import type { WatchInput } from '../../core/activities'
import type { Billing } from '../../core/documents'
import type { AttemptEnd } from '../../core/job/ledger'
import { judge, leaseOverAtMs, type Evidence } from '../../planner/policy/liveness'
import { StoreError } from '../../storage/store'
import type { Attempt } from './attempt'
import { LOOK_MAX_MS, TIMING } from './world'

/** The newest lease, as it lies in the store. */
interface Told {
  spentMicroUsd: number
  atMs: number
}

/** The control plane's side of one attempt: watches its machine when there is anybody to watch, and asks it to stop. */
export class Control {
  /** How the attempt ended, where the control plane did not wait for its machine. */
  end: AttemptEnd | undefined
  /** Since when the machine is billed, as it lies in the store. */
  billing: Billing | undefined
  readonly documents: AttemptDocuments
  private readonly input: WatchInput
  private readonly evidence: Evidence
  private lease: Told | undefined
  private isStopping = false

  constructor(private readonly attempt: Attempt) {
    const { order, handle, machine } = attempt
    this.documents = {
      orderedAtMs: () => this.ifStore(() => machine.wanted.issuedAtMs),
      readLimits: () => this.ifStore(() => attempt.limits),
      readEnded: () => this.ifStore(() => attempt.doubled.ended),
      readBilling: () => this.ifStore(() => this.billing),
      putBilling: (billing: Billing) => this.ifStore(() => (this.billing = billing)),
    } as unknown as AttemptDocuments
    this.input = { order, handle, timing: TIMING, isRunning: true, isQueued: true }
    this.evidence = {
      timing: TIMING,
      watchedSinceMs: 0,
      queueMs: order.runner.queueMs,
      renewedAtMs: handle.launchedAtMs,
      isLeaseFirst: true,
    }
  }

  /** Only after that may others end its machine because its lease has expired. */
  get leaseOverAtMs(): number {
    return leaseOverAtMs(this.evidence)
  }

  async live(): Promise<void> {
    const { clock, control } = this.attempt.world
    while (!this.isOver()) {
      await clock.until(control.overAtMs(clock.nowMs))
      await this.watch()
    }
    await clock.until(control.overAtMs(clock.nowMs))
  }

  /** Nothing is left to watch, as far as it can see. */
  private isOver(): boolean {
    const { machine, market, world } = this.attempt
    if (this.end !== undefined) return true
    if (market.capabilities.billsUntil === 'exit') return machine.isOff
    const { nowMs } = world.clock
    const isListedNoMore = machine.billedToMs !== undefined && !market.silence.isNow(nowMs)
    return isListedNoMore || (machine.isOff && machine.hasResult && !world.store.isNow(nowMs))
  }

  /** One watch: until the watching ends, or there is nothing to watch. */
  private async watch(): Promise<void> {
    const { clock, control } = this.attempt.world
    this.evidence.watchedSinceMs = clock.nowMs
    const billing =
      this.input.order.runner.queueMs === undefined ? undefined : new BillingWatch(this.input, this.documents)
    const budget = this.newBudgetWatch(billing)
    const renewed = { atMs: -Infinity }
    while (!this.isOver() && !control.isNow(clock.nowMs)) {
      await this.observe(billing)
      if (billing?.isQueued !== true) await this.look(budget, renewed)
      await clock.until(clock.nowMs + (billing?.isQueued === true ? TIMING.beatMs : this.pollMs()))
    }
  }

  /** What its provider says of it. */
  private async observe(billing: BillingWatch | undefined): Promise<void> {
    const { world, market } = this.attempt
    const { nowMs } = world.clock
    if (market.silence.isNow(nowMs)) this.evidence.providerFailedAtMs = nowMs
    else if (billing !== undefined) {
      const moment = { monotonicMs: nowMs, wallAtMs: nowMs }
      await billing.note(this.evidence, this.attempt.look(), moment).catch(ignoreStore)
      const outcome = billing.outcome(moment)
      if (outcome?.kind === 'over') {
        world.count('given up in the queue')
        this.end = outcome.end
      }
    }
    if (market.capabilities.billsUntil === 'exit') return
    const { kind } = judge(this.evidence, nowMs)
    if (kind === 'fenced') this.end = { kind: 'stopped', by: 'lease' }
    if (kind === 'silent')
      this.end = { kind: 'failed', isLaunched: true, failure: { class: 'interrupted', message: 'silent' } }
  }

  /** What its runner says, and what its money allows. */
  private async look(budget: BudgetWatch, renewed: { atMs: number }): Promise<void> {
    const { world, machine } = this.attempt
    const { clock, dice, store } = world
    const isStoreAway = store.isNow(clock.nowMs)
    if (isStoreAway) this.evidence.storeFailedAtMs = clock.nowMs
    if (!isStoreAway && machine.isBeating) {
      const sentAtMs = clock.nowMs - dice.between(0, TIMING.beatMs)
      this.evidence.beatSeenAtMs = clock.nowMs
      await budget.followLimits(machine.limits.seq)
      const isDue = clock.nowMs - renewed.atMs > TIMING.leaseMs / 12
      const report = (await budget.newReport()) ?? (isDue ? await budget.report() : undefined)
      if (report !== undefined) {
        renewed.atMs = this.evidence.renewedAtMs = clock.nowMs
        this.evidence.isLeaseFirst = false
        this.lease = { spentMicroUsd: report.spentMicroUsd, atMs: clock.nowMs }
        machine.readLease(sentAtMs, report.spentMicroUsd)
        budget.markReported()
      }
    }
    if (!this.isStopping && (await budget.isReached())) {
      this.isStopping = true
      world.count('stopped by the control plane')
      void this.stop()
    }
  }

  /** Often enough near the end, and seldom enough before. */
  private pollMs(): number {
    const leftMs =
      this.attempt.machine.stopAtMs - this.attempt.world.clock.nowMs - TIMING.drainMs - TIMING.powerOffMs
    return Math.min(LOOK_MAX_MS, Math.max(TIMING.beatMs, Math.round(leftMs / 12)))
  }

  private newBudgetWatch(billing: BillingWatch | undefined): BudgetWatch {
    const { market, world } = this.attempt
    const budget = new BudgetWatch(this.input, {
      backend: market.backend,
      documents: this.documents,
      now: () => world.clock.nowMs,
      billedFromAtMs: () => billing?.fromAtMs,
    })
    if (this.lease !== undefined && !world.store.isNow(world.clock.nowMs)) {
      const { spentMicroUsd, atMs } = this.lease
      budget.restore({ lease: { seq: 1, answersBeat: 1, ttlMs: 1, spentMicroUsd }, renewedAtMs: atMs })
    }
    return budget
  }

  private async ifStore<T>(read: () => T): Promise<T> {
    const { store, clock } = this.attempt.world
    if (store.isNow(clock.nowMs)) throw new StoreError('the store does not answer', { isTransient: true })
    return read()
  }

  /** The order to save and stop, its window, and the end of a machine that has not obeyed. */
  private async stop(): Promise<void> {
    const { machine, market, world } = this.attempt
    const { clock, store, control } = world
    await clock.until(store.overAtMs(clock.nowMs))
    const allowanceMs = TIMING.drainMs + TIMING.powerOffMs + 2 * TIMING.beatMs
    machine.readDrain()
    await clock.until(clock.nowMs + allowanceMs)
    await clock.until(control.overAtMs(clock.nowMs))
    if (market.capabilities.billsUntil === 'terminate') {
      // The settlement waits once more for a result.
      await clock.until(clock.nowMs + TIMING.powerOffMs)
      this.end ??= { kind: 'stopped', by: 'budget' }
      return
    }
    if (machine.isOff) return
    world.count('terminated by the control plane')
    machine.terminate()
  }
}

function ignoreStore(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}
