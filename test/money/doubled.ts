import type { EndedMachine } from '../../core/documents'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Alone } from './alone'
import type { Attempt } from './attempt'
import { billOf } from './bill'
import { TIMING } from './world'

/** A lost answer is looked up once the provider's lists can be trusted. */
export const FOUND_WITHIN_MS = 5 * MINUTE_MS

/** From the end of the bill to the answer of the call that ended it. */
export const ANSWERED_WITHIN_MS = 2 * SECOND_MS

/** The answer to a launch that is lost, and a second machine that the provider has made of it: without tokens it cannot know better. */
export class Doubled {
  billMicroUsd = 0
  /** For how long the second machine was billed. */
  billedMs = 0
  fromMs = 0
  /** The second machine as it is on record. */
  readonly ended: EndedMachine[] = []

  constructor(private readonly attempt: Attempt) {}

  /** Until the machines of the attempt are known; all but one are ended before. */
  async live(alone: Alone): Promise<void> {
    const { world, market, billing, machine } = this.attempt
    const { clock, dice, control, store } = world
    if (market.capabilities.idempotency === 'token' || !dice.chance(0.2)) return
    world.count('lost the answer to its launch')
    const isDoubled = dice.chance(0.5)
    this.fromMs = machine.wanted.launchedAtMs
    const state = { isEnded: false }
    if (isDoubled) void alone.whenExpired(() => this.end(state))
    await clock.until(clock.nowMs + dice.between(10 * SECOND_MS, FOUND_WITHIN_MS))
    const away = [control, store, market.silence]
    while (away.some((one) => one.isNow(clock.nowMs)))
      await clock.until(Math.max(...away.map((one) => one.overAtMs(clock.nowMs))))
    if (!isDoubled) return
    await clock.until(clock.nowMs + dice.between(SECOND_MS, TIMING.powerOffMs))
    this.end(state)
    world.count('doubled by its provider')
    this.billMicroUsd = billOf({ ...billing, fromMs: this.fromMs, toMs: this.fromMs + this.billedMs })
  }

  private end(state: { isEnded: boolean }): void {
    if (state.isEnded) return
    state.isEnded = true
    const { handle, world } = this.attempt
    this.billedMs = world.clock.nowMs - this.fromMs
    this.ended.push({
      handle: { ...handle, id: 'i-2', launchedAtMs: this.fromMs },
      // The bill has ended when the call is answered.
      endedAtMs: world.clock.nowMs + world.dice.between(0, ANSWERED_WITHIN_MS),
    })
  }
}
