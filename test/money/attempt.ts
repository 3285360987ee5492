import type { AttemptDocuments } from '../../activities/documents'
import { dearestOf, meterEnded } from '../../activities/metering'
import { BudgetWatch } from '../../activities/watch/budget'
import type { Backend } from '../../backends/backend'
import { tagsOf, TAGS } from '../../backends/ec2/tags'
import type { Limits } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import type { AttemptEnd } from '../../core/ledger'
import type { Order } from '../../core/plan'
import { MINUTE_MS, SECOND_MS } from '../../core/time'
import { StoreError } from '../../storage/store'
import { billOf } from './bill'
import { LOOK_MAX_MS, TIMING, type World } from './world'
import { Machine } from './machine'

/** What came of one order. */
export interface AttemptResult {
  end: AttemptEnd
  handle: MachineHandle
  workedMs: number
  costMicroUsd: number
  billMicroUsd: number
  basis: string
  /** Of one whose end was not reported, the time until it was looked for is metered, too. */
  isEndTold: boolean
  /** The most that an hour of it can have cost. */
  dearestMicroUsd: number
  /** The same of all that its order allows. */
  orderMaxMicroUsd: number
  /** How long it was billed before it was launched by our meter, and after its end by the provider's: what the two may differ by. */
  slackMs: number
}

/** The newest lease, as it lies in the store. */
interface Told {
  spentMicroUsd: number
  atMs: number
}

/** The control plane's side of one attempt: orders a machine, watches it when there is anybody to watch, ends it, and adds up. */
export class Attempt {
  private readonly machine: Machine
  private readonly handle: MachineHandle
  private readonly backend: Backend
  private limits: Limits
  private lease: Told | undefined
  private isStopping = false

  constructor(
    private readonly world: World,
    private readonly order: Order,
    private readonly workMs: number,
  ) {
    const { dice, market, clock } = world
    const offer = dice.oneOf(order.offers)
    const issuedAtMs = clock.nowMs
    const launchedAtMs = issuedAtMs + dice.between(SECOND_MS, 20 * SECOND_MS)
    this.handle = {
      ...{ backend: 'cloud', kind: 'machine', id: 'i-1', attemptId: order.attemptId },
      realised: {
        ...{ capacityType: offer.capacityType, type: offer.type, place: offer.place },
        priceMicroUsdPerHour: offer.priceMicroUsdPerHour,
        ...(offer.billedAtLeastMs === undefined ? {} : { billedAtLeastMs: offer.billedAtLeastMs }),
      },
      // By a clock that is not ours.
      launchedAtMs: launchedAtMs + world.providerSkewMs,
    }
    this.limits = order.runner.limits
    this.machine = new Machine(world, {
      ...{ limits: this.limits, issuedAtMs, launchedAtMs, workMs },
      isSpot: offer.capacityType === 'spot',
      beginsWithinMs: Number(tagsOf(order)[TAGS.timer]!.split(' ')[0]),
    })
    this.backend = {
      prices: (handle: MachineHandle, time: { fromAtMs: number; toAtMs?: number }) =>
        Promise.resolve().then(() =>
          handle.realised.capacityType === 'spot'
            ? market.told(handle.realised.type, time, clock.nowMs)
            : { prices: market.truth(handle.realised.type, 'on-demand') },
        ),
    } as unknown as Backend
  }

  /** New limits, as a person asks for them. */
  extend(budgetMicroUsd: number): void {
    const { budget, seq } = this.limits
    this.limits = { ...this.limits, seq: seq + 1, budget: { ...budget!, microUsd: budgetMicroUsd } }
    this.machine.readLimits(this.limits)
  }

  async live(): Promise<AttemptResult> {
    const { clock, control } = this.world
    const living = this.machine.live()
    while (!this.machine.isOff) {
      await clock.until(control.overAtMs(clock.nowMs))
      await this.watch()
    }
    await living
    await clock.until(control.overAtMs(clock.nowMs))
    return this.settle()
  }

  /** One watch: until the watching ends, or there is nothing to watch. */
  private async watch(): Promise<void> {
    const { clock, control, store } = this.world
    const budget = this.newPurse()
    let renewedAtMs = -Infinity
    while (!this.machine.isOff && !control.isNow(clock.nowMs)) {
      if (!store.isNow(clock.nowMs) && this.machine.isBeating) {
        const sentAtMs = clock.nowMs - this.world.dice.between(0, TIMING.beatMs)
        await budget.followLimits(this.machine.limits.seq)
        const isDue = clock.nowMs - renewedAtMs > TIMING.leaseMs / 12
        const tidings = (await budget.newReport()) ?? (isDue ? await budget.report() : undefined)
        if (tidings !== undefined) {
          renewedAtMs = clock.nowMs
          this.lease = { spentMicroUsd: tidings.spentMicroUsd, atMs: clock.nowMs }
          this.machine.readLease(sentAtMs, tidings.spentMicroUsd)
          budget.markReported()
        }
      }
      if (!this.isStopping && (await budget.isReached())) {
        this.isStopping = true
        this.world.count('stopped by the control plane')
        void this.stop()
      }
      await clock.until(clock.nowMs + this.pollMs())
    }
  }

  /** Often enough near the end, and seldom enough before. */
  private pollMs(): number {
    const leftMs = this.machine.stopAtMs - this.world.clock.nowMs - TIMING.drainMs - TIMING.powerOffMs
    return Math.min(LOOK_MAX_MS, Math.max(TIMING.beatMs, Math.round(leftMs / 12)))
  }

  private newPurse(): BudgetWatch {
    const { order, handle, world } = this
    const documents = {
      readOrder: () => this.ifStore(() => ({ issuedAtMs: this.machine.wanted.issuedAtMs })),
      readLimits: () => this.ifStore(() => this.limits),
    } as unknown as AttemptDocuments
    const input = { order, handle, timing: TIMING, isRunning: true }
    const budget = new BudgetWatch(input, { backend: this.backend, documents, now: () => world.clock.nowMs })
    if (this.lease !== undefined && !world.store.isNow(world.clock.nowMs)) {
      const { spentMicroUsd, atMs } = this.lease
      budget.restore({ lease: { seq: 1, answersBeat: 1, ttlMs: 1, spentMicroUsd }, renewedAtMs: atMs })
    }
    return budget
  }

  private async ifStore<T>(read: () => T): Promise<T> {
    if (this.world.store.isNow(this.world.clock.nowMs))
      throw new StoreError('the store does not answer', { isTransient: true })
    return read()
  }

  /** The order to save and stop, its window, and the end of a machine that has not obeyed. */
  private async stop(): Promise<void> {
    const { clock, store, control, dice } = this.world
    await clock.until(store.overAtMs(clock.nowMs))
    const allowanceMs = TIMING.drainMs + TIMING.powerOffMs + 2 * TIMING.beatMs
    this.machine.readDrain()
    await clock.until(clock.nowMs + allowanceMs)
    await clock.until(control.overAtMs(clock.nowMs))
    if (this.machine.isOff) return
    this.world.count('terminated by the control plane')
    this.machine.offWithin(dice.between(0, TIMING.powerOffMs))
  }

  private async settle(): Promise<AttemptResult> {
    const { handle, order, machine, world } = this
    const { clock, dice, market, providerSkewMs } = world
    const { type, capacityType } = handle.realised
    const nowMs = clock.nowMs + dice.between(0, MINUTE_MS)
    const isEndTold = dice.chance(0.9)
    const toAtMs = (isEndTold ? machine.endedAtMs! : Math.max(nowMs, machine.endedAtMs!)) + providerSkewMs
    const { costMicroUsd, metering } = await meterEnded(
      this.backend,
      { handle, order, fromAtMs: handle.launchedAtMs, toAtMs },
      {
        signal: new AbortController().signal,
        wait: (durationMs) => clock.until(clock.nowMs + durationMs),
      },
    )
    const { runsFromMs: fromMs, endedAtMs } = machine
    const billMicroUsd = billOf({ fromMs, toMs: endedAtMs!, prices: market.truth(type, capacityType) })
    world.count(`metered by ${metering.basis} prices`)
    return {
      ...{ end: machine.end, handle, workedMs: machine.savedMs, costMicroUsd, billMicroUsd },
      basis: metering.basis,
      isEndTold,
      orderMaxMicroUsd: order.priceMaxMicroUsdPerHour,
      dearestMicroUsd: dearestOf({ handle, order }),
      slackMs: fromMs - machine.wanted.launchedAtMs + (toAtMs - providerSkewMs - endedAtMs!) + SECOND_MS,
    }
  }
}
