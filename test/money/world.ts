import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { emptyTreasury, type MonthlyLimits, type TreasuryState } from '../../core/money/treasury'
import { microUsd } from '../../core/money/money'
import { Dice } from '../kit/dice'
import { VirtualClock } from './clock'
import { Market } from './market'
import { Outages } from './outages'
import { drawKinds } from './providers'
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
  readonly markets: Market[]
  /** A time without watch, plans and decisions. */
  readonly control: Outages
  readonly store: Outages
  readonly providerSkewMs: number
  /** The machines have a timer of their own; without one it is the control plane that must not fail. */
  readonly hasDeadMan: boolean
  /** How often another host runs `crucible gc --alone`; undefined if none does. */
  readonly aloneEveryMs: number | undefined
  readonly limits: MonthlyLimits
  treasury: TreasuryState
  readonly reckonings: Reckoning[] = []
  readonly counts = new Map<string, number>()

  constructor(seed: number) {
    const dice = (this.dice = new Dice(seed))
    const draw = (chance: number, perDay: number, longestMs = 8 * HOUR_MS): Outages =>
      Outages.draw(dice, STARTS_AT_MS, {
        perDay: dice.chance(chance) ? dice.between(1, perDay) : 0,
        longestMs,
      })
    this.control = draw(0.4, 12, 48 * HOUR_MS)
    this.store = draw(0.3, 12)
    this.providerSkewMs = dice.between(-5 * SECOND_MS, 5 * SECOND_MS)
    this.markets = drawKinds(dice).map(
      (kind) =>
        new Market(kind, {
          dice,
          startMs: STARTS_AT_MS,
          silence: draw(0.3, 12),
          skewMs: this.providerSkewMs,
          nowMs: () => this.clock.nowMs,
        }),
    )
    this.aloneEveryMs = dice.chance(0.5) ? dice.between(10 * MINUTE_MS, HOUR_MS) : undefined
    this.hasDeadMan = !this.control.isNever || !this.store.isNever || dice.chance(0.5)
    const some = (chance: number, most: number): number | undefined =>
      dice.chance(chance) ? microUsd(dice.between(1, most)) : undefined
    const [month, owner] = [some(0.6, 80), some(0.5, 40)]
    this.limits = {
      monthMicroUsd: month,
      ownerMicroUsd: owner,
      owners: dice.chance(0.3) ? { bob: microUsd(dice.between(1, 20)) } : {},
    }
    this.treasury = emptyTreasury('2026-11')
  }

  market(backend: string): Market {
    return this.markets.find(({ kind }) => kind === backend)!
  }

  /** Nothing fails. */
  get isCalm(): boolean {
    return [this.control, this.store, ...this.markets.map(({ silence }) => silence)].every(
      ({ isNever }) => isNever,
    )
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }
}
