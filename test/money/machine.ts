import type { Limits } from '../../core/documents'
import type { AttemptEnd } from '../../core/job/ledger'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { endOfQueue } from '../../planner/policy/ending'
import type { Dice } from '../kit/dice'
import type { Market } from './market'
import { RunnerLimits } from './runner'
import { TIMING, type World } from './world'

export interface Wanted {
  limits: Limits
  issuedAtMs: number
  launchedAtMs: number
  workMs: number
  market: Market
  isTakenBack: boolean
  /** By the timer on it, or by the program in a container that fetches its runner. */
  beginsWithinMs: number
}

/** How soon the one who ends the machine in its runner's place looks again, and how long its system then takes. */
const DEAD_MAN_LOOK_MS = SECOND_MS
const SHUTDOWN_MS = 3 * SECOND_MS
const NOTICE_MS = 2 * MINUTE_MS
/** The longest wait for capacity; then the provider gives the launch up. */
const QUEUE_MS_MAX = 21 * MINUTE_MS
/** Where a machine is billed from the moment in which it is healthy. */
const HEALTHY_MS_MAX = 5 * MINUTE_MS

/** A container counts this long before its first process, too (`runner/crucible_runner/control/memory.py`). */
const UNSEEN_MS = 30 * SECOND_MS

type Health = 'well' | 'deaf' | 'hung' | 'mute'

/** One machine as it really is: when it is billed, what its runner knows, and why it ends. */
export class Machine {
  /** Never, if it is not. */
  readonly runsFromMs: number
  /** When its runner begins, if it ever does. */
  readonly beginsAtMs: number
  endedAtMs: number | undefined
  /** The end of its billing, once that has come: its own power-off, or its termination. */
  billedToMs: number | undefined
  /** A call ended it. */
  isCalled = false
  end: AttemptEnd = { kind: 'stopped', by: 'superseded' }
  /** Its runner has reported its end. */
  hasResult = false
  savedMs = 0
  limits: Limits
  private readonly runner: RunnerLimits
  private readonly health: Health
  private readonly bootAtMs: number
  private readonly interruptedAtMs: number
  private readonly hangsAtMs: number
  /** When its provider's limit on how long it runs ends it, as the runner counts. */
  private readonly expiresAtMs: number
  private isDrainAsked = false
  private offAtMs = Infinity
  private hasPoweredOff: (() => void) | undefined

  constructor(
    private readonly world: World,
    readonly wanted: Wanted,
  ) {
    const { dice } = world
    const { launchedAtMs, limits, issuedAtMs, market } = wanted
    const queuedMs = market.kind === 'modal' ? drawQueue(dice) : 0
    const healthyMs = dice.between(0, market.kind === 'lambda' ? HEALTHY_MS_MAX : 10 * SECOND_MS)
    this.runsFromMs = launchedAtMs + queuedMs + healthyMs
    this.bootAtMs = this.runsFromMs + dice.between(SECOND_MS, 20 * SECOND_MS)
    this.beginsAtMs = this.bootAtMs + dice.between(5 * SECOND_MS, 2 * MINUTE_MS)
    this.health = dice.chance(0.1) ? dice.oneOf<Health>(['deaf', 'hung', 'mute']) : 'well'
    this.hangsAtMs = this.health === 'hung' ? this.beginsAtMs + dice.between(0, 4 * HOUR_MS) : Infinity
    this.interruptedAtMs =
      wanted.isTakenBack && dice.chance(0.3) ? this.runsFromMs + dice.between(0, 6 * HOUR_MS) : Infinity
    this.limits = limits
    // Of wall clocks: one that is ahead takes the order for older, one that is a little behind for younger.
    const ageMs = Math.max(0, this.beginsAtMs - issuedAtMs + dice.between(-SECOND_MS, 30 * SECOND_MS))
    const orderedMs = Number.isFinite(ageMs) ? this.beginsAtMs - ageMs : issuedAtMs
    // One that may have been queued counts from its own beginning (`Memory.began_ms`).
    const isQueued = market.kind === 'modal' && Number.isFinite(ageMs)
    const beganMs = isQueued ? Math.max(orderedMs, this.bootAtMs - UNSEEN_MS) : orderedMs
    this.runner = new RunnerLimits(limits, beganMs, world.reckonings)
    this.expiresAtMs = beganMs + (market.terms.runMsMax ?? Infinity) - CLOCK_SLACK_MS
  }

  get isOff(): boolean {
    return this.endedAtMs !== undefined
  }

  get isQueued(): boolean {
    return !this.isOff && this.world.clock.nowMs < this.runsFromMs && this.wanted.market.kind === 'modal'
  }

  /** Its runner has spoken. */
  get hasSpoken(): boolean {
    return this.health !== 'mute' && (this.endedAtMs ?? this.world.clock.nowMs) >= this.beginsAtMs
  }

  /** Its runner speaks. */
  get isBeating(): boolean {
    const { nowMs } = this.world.clock
    return !this.isOff && this.health !== 'mute' && nowMs >= this.beginsAtMs && nowMs < this.hangsAtMs
  }

  /** By what its runner knows. */
  get stopAtMs(): number {
    return this.runner.stopAtMs
  }

  readLimits(limits: Limits): void {
    void this.hear(() => {
      this.runner.obey(limits)
      if (limits.seq > this.limits.seq) this.limits = limits
    })
  }

  readLease(sentAtMs: number, spentMicroUsd: number): void {
    void this.hear(() => this.runner.learn(sentAtMs, spentMicroUsd))
  }

  readDrain(): void {
    void this.hear(() => (this.isDrainAsked = true))
  }

  /** The runner reads what lies in the store at its own pace, as soon as it can reach it. */
  private async hear(told: () => void): Promise<void> {
    const { clock, store, dice } = this.world
    await clock.until(clock.nowMs + dice.between(0, TIMING.beatMs))
    await clock.until(Math.max(store.overAtMs(clock.nowMs), this.beginsAtMs))
    if (this.isBeating) told()
    this.wake?.()
  }

  private wake: (() => void) | undefined

  private offWithin(durationMs: number, isProvider = false): void {
    const atMs = this.world.clock.nowMs + durationMs
    this.offAtMs = Math.min(this.offAtMs, atMs)
    void this.world.clock.until(atMs).then(() => this.powerOff(isProvider))
  }

  /** Asks its provider to end it. */
  terminate(): void {
    const { clock, dice } = this.world
    this.isCalled ||= this.billedToMs === undefined
    if (this.isQueued) return this.powerOff(true)
    const withinMs = dice.between(0, TIMING.powerOffMs)
    if (!this.isOff) return this.offWithin(withinMs, true)
    void clock.until(clock.nowMs + withinMs).then(() => (this.billedToMs ??= clock.nowMs))
  }

  async live(): Promise<void> {
    const gone = new Promise<void>((resolve) => (this.hasPoweredOff = resolve))
    // A container ends with the processes that guard its runner.
    if (this.world.hasDeadMan || this.wanted.market.kind === 'modal') void this.deadMan()
    void this.runLimit()
    if (this.runsFromMs === Infinity) void this.dropped()
    void this.provider()
    if (this.health !== 'mute') void this.run()
    await gone
  }

  /** The timer on the machine, for when there is no runner, or none that can do anything. */
  private async deadMan(): Promise<void> {
    const { clock, dice } = this.world
    for (;;) {
      const nowMs = clock.nowMs
      const hasBegun = this.health !== 'mute' && nowMs >= this.beginsAtMs
      const endMs = hasBegun
        ? this.runner.stopAtMs - TIMING.powerOffMs / 2
        : this.bootAtMs + this.wanted.beginsWithinMs
      if (this.isOff) return
      if (nowMs >= endMs) break
      const nextMs = hasBegun ? endMs : Math.min(endMs, Math.max(nowMs + 1, this.beginsAtMs))
      await clock.until(nextMs + dice.between(0, DEAD_MAN_LOOK_MS))
      // Nobody needs to look while the end is far.
    }
    if (this.isOff) return
    this.world.count('ended by the timer on the machine')
    if (this.end.kind !== 'succeeded') this.end = { kind: 'stopped', by: 'budget' }
    this.offWithin(dice.between(0, SHUTDOWN_MS))
  }

  /** The provider's limit on how long a machine runs. */
  private async runLimit(): Promise<void> {
    const { runMsMax } = this.wanted.market.terms
    if (runMsMax === undefined) return
    await this.world.clock.until(this.runsFromMs + runMsMax)
    if (this.isOff) return
    this.world.count('ended by the run limit')
    if (this.end.kind !== 'succeeded') this.end = { kind: 'stopped', by: 'expired' }
    this.powerOff(true)
  }

  /** Gone from its provider's queue. */
  private async dropped(): Promise<void> {
    await this.world.clock.until(this.wanted.launchedAtMs + QUEUE_MS_MAX)
    if (this.isOff) return
    this.end = endOfQueue('dropped')
    this.powerOff(true)
  }

  /** Takes a machine back. */
  private async provider(): Promise<void> {
    if (this.interruptedAtMs === Infinity) return
    await this.world.clock.until(this.interruptedAtMs)
    if (this.isOff) return
    this.world.count('taken back')
    const failure = { class: 'interrupted' as const, message: 'taken back' }
    this.end = { kind: 'failed', isLaunched: true, failure }
    this.powerOff(true)
  }

  /** The workload under its runner, until it is done or has to stop. */
  private async run(): Promise<void> {
    const { clock, dice } = this.world
    const { workMs } = this.wanted
    await clock.until(this.beginsAtMs)
    const doneAtMs = this.beginsAtMs + workMs
    for (;;) {
      if (this.isOff || clock.nowMs >= this.hangsAtMs) return
      const drainAtMs = this.runner.stopAtMs - TIMING.drainMs - TIMING.powerOffMs
      const expiryMs = this.expiresAtMs - TIMING.drainMs - TIMING.powerOffMs
      if (clock.nowMs >= doneAtMs) return this.finish({ kind: 'succeeded' }, workMs)
      const nextMs = Math.min(drainAtMs, this.noticeAtMs, expiryMs)
      if (this.isDrainAsked || clock.nowMs >= nextMs) break
      const woken = new Promise<void>((resolve) => (this.wake = resolve))
      await Promise.race([woken, clock.until(Math.min(nextMs, doneAtMs, this.hangsAtMs))])
    }
    const workedMs = Math.max(0, clock.nowMs - this.beginsAtMs)
    const offMs = Math.min(this.runner.stopAtMs, this.expiresAtMs)
    const windowEndMs = Math.min(clock.nowMs + TIMING.drainMs, offMs - TIMING.powerOffMs)
    const savesMs = Math.max(0, windowEndMs - clock.nowMs)
    const isNoticed = clock.nowMs >= this.noticeAtMs
    const isExpired = !this.isDrainAsked && offMs === this.expiresAtMs
    await clock.until(this.health === 'deaf' ? windowEndMs : clock.nowMs + dice.between(0, savesMs))
    if (clock.nowMs >= this.hangsAtMs) return
    const failure = { class: 'interrupted' as const, message: 'taken back' }
    const end: AttemptEnd = isNoticed
      ? { kind: 'failed', isLaunched: true, failure }
      : { kind: 'stopped', by: isExpired ? 'expired' : 'budget' }
    this.world.count(
      isNoticed
        ? 'drained by a notice'
        : isExpired
          ? 'drained before its run limit'
          : 'drained by its runner',
    )
    this.finish(end, this.health === 'deaf' ? 0 : workedMs)
  }

  /** The result, and the power-off: slow, but within their bounds. */
  private finish(end: AttemptEnd, savedMs: number): void {
    if (this.isOff) return
    this.end = end
    this.hasResult = true
    this.savedMs = savedMs
    this.offWithin(this.world.dice.between(0, TIMING.powerOffMs))
  }

  /** Only some providers tell a machine before they take it back. */
  private get noticeAtMs(): number {
    return this.wanted.market.kind === 'ec2' ? this.interruptedAtMs - NOTICE_MS : Infinity
  }

  private powerOff(isProvider = false): void {
    const { nowMs } = this.world.clock
    if (isProvider || this.wanted.market.capabilities.billsUntil === 'exit') this.billedToMs ??= nowMs
    if (this.isOff) return
    this.endedAtMs = nowMs
    this.hasPoweredOff?.()
  }
}

/** Mostly at once; sometimes longer than the job waits, and sometimes never. */
function drawQueue(dice: Dice): number {
  if (dice.chance(0.5)) return dice.between(0, 30 * SECOND_MS)
  return dice.chance(0.1) ? Infinity : dice.between(0, QUEUE_MS_MAX)
}
