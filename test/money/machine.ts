import type { Limits } from '../../core/documents'
import type { AttemptEnd } from '../../core/ledger'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time'
import { RunnerLimits } from './runner'
import { TIMING, type World } from './world'

export interface Wanted {
  limits: Limits
  issuedAtMs: number
  launchedAtMs: number
  workMs: number
  isSpot: boolean
  /** By the timer on it. */
  beginsWithinMs: number
}

/** How soon the one who ends the machine in its runner's place looks again, and how long its system then takes. */
const DEAD_MAN_LOOK_MS = SECOND_MS
const SHUTDOWN_MS = 3 * SECOND_MS
const NOTICE_MS = 2 * MINUTE_MS

type Health = 'well' | 'deaf' | 'hung' | 'mute'

/** One machine as it really is: when it is billed, what its runner knows, and why it ends. */
export class Machine {
  readonly runsFromMs: number
  endedAtMs: number | undefined
  end: AttemptEnd = { kind: 'stopped', by: 'superseded' }
  savedMs = 0
  limits: Limits
  private readonly runner: RunnerLimits
  private readonly health: Health
  private readonly beginsAtMs: number
  private readonly bootAtMs: number
  private readonly interruptedAtMs: number
  private readonly hangsAtMs: number
  private isDrainAsked = false
  private offAtMs = Infinity
  private hasPoweredOff: (() => void) | undefined

  constructor(
    private readonly world: World,
    readonly wanted: Wanted,
  ) {
    const { dice } = world
    const { launchedAtMs, limits, issuedAtMs, isSpot } = wanted
    this.runsFromMs = launchedAtMs + dice.between(0, 10 * SECOND_MS)
    this.bootAtMs = this.runsFromMs + dice.between(SECOND_MS, 20 * SECOND_MS)
    this.beginsAtMs = this.bootAtMs + dice.between(5 * SECOND_MS, 2 * MINUTE_MS)
    this.health = dice.chance(0.1) ? dice.oneOf<Health>(['deaf', 'hung', 'mute']) : 'well'
    this.hangsAtMs = this.health === 'hung' ? this.beginsAtMs + dice.between(0, 4 * HOUR_MS) : Infinity
    this.interruptedAtMs =
      isSpot && dice.chance(0.3) ? this.runsFromMs + dice.between(0, 6 * HOUR_MS) : Infinity
    this.limits = limits
    // Of wall clocks: one that is ahead takes the order for older, one that is a little behind for younger.
    const ageMs = Math.max(0, this.beginsAtMs - issuedAtMs + dice.between(-SECOND_MS, 30 * SECOND_MS))
    this.runner = new RunnerLimits(limits, this.beginsAtMs - ageMs, world.reckonings)
  }

  get isOff(): boolean {
    return this.endedAtMs !== undefined
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

  /** Somebody else ends it. */
  offWithin(durationMs: number): void {
    const atMs = this.world.clock.nowMs + durationMs
    this.offAtMs = Math.min(this.offAtMs, atMs)
    void this.world.clock.until(atMs).then(() => this.powerOff())
  }

  async live(): Promise<void> {
    const gone = new Promise<void>((resolve) => (this.hasPoweredOff = resolve))
    if (this.world.hasDeadMan) void this.deadMan()
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

  /** Takes a spot machine back. */
  private async provider(): Promise<void> {
    if (this.interruptedAtMs === Infinity) return
    await this.world.clock.until(this.interruptedAtMs)
    if (this.isOff) return
    this.world.count('taken back')
    const failure = { class: 'interrupted' as const, message: 'taken back' }
    this.end = { kind: 'failed', isLaunched: true, failure }
    this.powerOff()
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
      const noticeAtMs = this.interruptedAtMs - NOTICE_MS
      if (clock.nowMs >= doneAtMs) return this.finish({ kind: 'succeeded' }, workMs)
      if (this.isDrainAsked || clock.nowMs >= drainAtMs || clock.nowMs >= noticeAtMs) break
      const woken = new Promise<void>((resolve) => (this.wake = resolve))
      await Promise.race([woken, clock.until(Math.min(drainAtMs, noticeAtMs, doneAtMs, this.hangsAtMs))])
    }
    const workedMs = Math.max(0, clock.nowMs - this.beginsAtMs)
    const windowEndMs = Math.min(clock.nowMs + TIMING.drainMs, this.runner.stopAtMs - TIMING.powerOffMs)
    const savesMs = Math.max(0, windowEndMs - clock.nowMs)
    const isNoticed = clock.nowMs >= this.interruptedAtMs - NOTICE_MS
    await clock.until(this.health === 'deaf' ? windowEndMs : clock.nowMs + dice.between(0, savesMs))
    if (clock.nowMs >= this.hangsAtMs) return
    const failure = { class: 'interrupted' as const, message: 'taken back' }
    const end: AttemptEnd = isNoticed
      ? { kind: 'failed', isLaunched: true, failure }
      : { kind: 'stopped', by: 'budget' }
    this.world.count(isNoticed ? 'drained by a notice' : 'drained by its runner')
    this.finish(end, this.health === 'deaf' ? 0 : workedMs)
  }

  /** The result, and the power-off: slow, but within their bounds. */
  private finish(end: AttemptEnd, savedMs: number): void {
    if (this.isOff) return
    this.end = end
    this.savedMs = savedMs
    this.offWithin(this.world.dice.between(0, TIMING.powerOffMs))
  }

  private powerOff(): void {
    if (this.isOff) return
    this.endedAtMs = this.world.clock.nowMs
    this.hasPoweredOff?.()
  }
}
