import { SECOND_MS, MINUTE_MS } from '../../core/time'
import { DEFAULT_TIMING } from '../../core/timing'
import { emptyTreasury, type MonthlyLimits, type TreasuryState } from '../../core/treasury'
import { microUsd } from '../../core/money'
import { Dice } from '../kit/dice'
import { VirtualClock } from './clock'
import { Market, Outages } from './market'
import type { Reckoning } from './runner'

export const TIMING = DEFAULT_TIMING
/** The watch looks at each beat; one that could change nothing is left out. */
export const LOOK_MAX_MS = 5 * MINUTE_MS

const STARTS_AT_MS = Date.UTC(2026, 10, 3, 12)
export const OWNERS = ['ada', 'bob'] as const

/** Everything that a seed decides before anything happens, and what all in it share. */
export class World {
  readonly dice: Dice
  readonly clock = new VirtualClock(STARTS_AT_MS)
  readonly market: Market
  /** A time without watch, plans and decisions. */
  readonly control: Outages
  readonly store: Outages
  readonly providerSkewMs: number
  /** The machines have a timer of their own; without one it is the control plane that must not fail. */
  readonly hasDeadMan: boolean
  readonly limits: MonthlyLimits
  treasury: TreasuryState
  readonly reckonings: Reckoning[] = []
  readonly counts = new Map<string, number>()

  constructor(seed: number) {
    const dice = (this.dice = new Dice(seed))
    const draw = (chance: number, perDay: number): Outages =>
      Outages.draw(dice, STARTS_AT_MS, dice.chance(chance) ? dice.between(1, perDay) : 0)
    this.control = draw(0.4, 12)
    this.store = draw(0.3, 12)
    this.providerSkewMs = dice.between(-5 * SECOND_MS, 5 * SECOND_MS)
    this.market = new Market(dice, STARTS_AT_MS, draw(0.3, 12), this.providerSkewMs)
    this.hasDeadMan = !this.control.isNever || !this.store.isNever || dice.chance(0.5)
    const some = (chance: number, most: number): number | undefined =>
      dice.chance(chance) ? microUsd(dice.between(1, most)) : undefined
    const [month, owner] = [some(0.6, 80), some(0.5, 40)]
    this.limits = {
      ...(month === undefined ? {} : { monthMicroUsd: month }),
      ...(owner === undefined ? {} : { ownerMicroUsd: owner }),
      owners: dice.chance(0.3) ? { bob: microUsd(dice.between(1, 20)) } : {},
    }
    this.treasury = emptyTreasury('2026-11')
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }
}
