import { MINUTE_MS } from '../../core/time/time'
import type { Attempt } from './attempt'
import type { Control } from './control'
import { Outages } from './outages'

/** From the look of `crucible gc --alone` at a machine until that is ended. */
const RUN_MS = MINUTE_MS

/** `crucible gc --alone`, from time to time, on a host that has nothing to do with the control plane. */
export class Alone {
  constructor(
    private readonly attempt: Attempt,
    private readonly control: Control,
  ) {}

  async live(): Promise<void> {
    const { machine, world } = this.attempt
    await this.whenExpired(() => {
      if (machine.billedToMs !== undefined) return
      world.count('ended by gc --alone')
      machine.terminate()
    })
  }

  /** Calls it in the first run after the end of the lease, in which store and provider answer. */
  async whenExpired(end: () => void): Promise<void> {
    const { machine, world, market } = this.attempt
    const { clock, store, aloneEveryMs } = world
    if (aloneEveryMs === undefined) return
    for (;;) {
      await clock.until((Math.floor(clock.nowMs / aloneEveryMs) + 1) * aloneEveryMs)
      if (machine.billedToMs !== undefined) return
      const isAway = store.isNow(clock.nowMs) || market.silence.isNow(clock.nowMs)
      if (!isAway && clock.nowMs > this.control.leaseOverAtMs) return end()
    }
  }

  /** It bounds how long a machine is billed, whatever happens to the control plane. */
  breaches(): string[] {
    const { machine, world, market } = this.attempt
    if (world.aloneEveryMs === undefined || machine.billedToMs === undefined) return []
    const overAtMs = this.control.leaseOverAtMs
    const { count, lastMs } = Outages.union([world.store, market.silence]).within(
      overAtMs,
      machine.billedToMs,
    )
    const mostMs = overAtMs + lastMs + (count + 1) * world.aloneEveryMs + RUN_MS
    return machine.billedToMs > mostMs
      ? [`billed ${machine.billedToMs - mostMs} ms longer than gc --alone allows`]
      : []
  }
}
