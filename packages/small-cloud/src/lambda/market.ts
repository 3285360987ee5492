/** Prices and stock of Lambda at each instant. */
import type { Clock } from '../clock'
import { constant, seriesOf, valueAt, type Series } from '../world/series'
import type { LambdaType } from './types'
import type { LambdaPlan } from './world'

export class LambdaMarket {
  private readonly startMs: number
  private readonly stocks: readonly { rule: LambdaPlan['stock'][number]; series: Series<number> }[]

  constructor(
    private readonly plan: LambdaPlan,
    private readonly clock: Clock,
    private readonly speed: number,
  ) {
    this.startMs = clock.nowMs()
    this.stocks = plan.stock.map((rule) => ({
      rule,
      series: rule.changes === undefined ? constant(rule.count!) : seriesOf(rule.changes),
    }))
  }

  centsPerHour({ name, centsPerHour }: LambdaType): number {
    return this.plan.prices[name] ?? centsPerHour
  }

  /** Returns the total capacity, including running instances. */
  stockOf(type: string, region: string): number {
    const found = this.stocks.findLast(
      ({ rule }) => (rule.type ?? type) === type && (rule.region ?? region) === region,
    )
    return found === undefined
      ? Infinity
      : valueAt(found.series, (this.clock.nowMs() - this.startMs) * this.speed)
  }
}
