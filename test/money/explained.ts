import { affordableMs, budgetReserveMs } from '../../core/money/budget'
import { spendOver, type Rounding } from '../../core/money/meter'
import { MINUTE_MS } from '../../core/time/time'
import type { Attempt } from './attempt'
import { FOUND_WITHIN_MS, type Doubled } from './doubled'
import { Outages } from './outages'
import { TIMING } from './world'

/** What the control plane needs anew after each outage: to see that the money is used up, a drain, and the end of the machine. */
const REACTION_MS = budgetReserveMs(TIMING) + 2 * MINUTE_MS
/** The same where garbage collection has to end it. */
const COLLECTED_MS = REACTION_MS + 20 * MINUTE_MS

/** What an attempt was billed beyond what was left for it. */
export interface Excess {
  microUsd: number
  /** How much longer than its money lasted, and for how long something that ends it did not answer. */
  lastMs: number
  outageMs: number
  hasAlone: boolean
  breaches: string[]
}

/**
 * A machine that only a call ends is billed while no call is possible: while the control plane, its store or the provider does not
 * answer. That, and no more, explains what it costs beyond its budget.
 */
export function explain(
  { machine, market, world, handle, isLeftBehind }: Attempt,
  money: { billMicroUsd: number; capMicroUsd: number; doubled: Doubled },
): Excess {
  const { billMicroUsd, capMicroUsd, doubled } = money
  const microUsd = Math.max(0, billMicroUsd - capMicroUsd)
  const none = { microUsd, lastMs: 0, outageMs: 0, hasAlone: world.aloneEveryMs !== undefined }
  if (microUsd === 0) return { ...none, breaches: [] }
  if (market.capabilities.billsUntil === 'exit')
    return { ...none, breaches: [`a cap that could be held was passed by ${microUsd} of ${capMicroUsd}`] }
  const price = handle.realised.priceMicroUsdPerHour
  const { stepMs, leastMs } = market.terms
  const paidToMs =
    machine.runsFromMs + affordableMs(Math.max(0, capMicroUsd - doubled.billMicroUsd), price, stepMs)
  const away = Outages.union([world.control, world.store, market.silence])
  const { count, lastMs: outageMs } = away.within(paidToMs - REACTION_MS, machine.billedToMs!)
  const reactionMs = isLeftBehind ? COLLECTED_MS : REACTION_MS
  const explainedMs = count === 0 ? 0 : outageMs + count * reactionMs
  const rounding = { billedAtLeastMs: leastMs, billedInStepsOfMs: stepMs }
  const explained = explainedMs === 0 ? 0 : spendOver(explainedMs, price, rounding) + spendOver(stepMs, price)
  const unforeseen = isToldInTime(doubled, { machine, capMicroUsd, price, rounding })
    ? 0
    : doubled.billMicroUsd
  const breaches =
    microUsd > explained + unforeseen
      ? [
          `${microUsd} over its budget; outages explain ${explained}; a doubled machine cost ${doubled.billMicroUsd}`,
        ]
      : []
  const found = away.within(doubled.fromMs, doubled.fromMs + doubled.billedMs)
  if (doubled.billedMs > FOUND_WITHIN_MS + found.lastMs + MINUTE_MS)
    breaches.push(`a doubled machine was billed for ${doubled.billedMs} ms`)
  return { ...none, lastMs: Math.max(0, machine.billedToMs! - paidToMs), outageMs, breaches }
}

/** Whether the machine could still be stopped within its budget when it learned the cost of the second machine. */
function isToldInTime(
  { fromMs, billedMs, billMicroUsd }: Doubled,
  {
    machine,
    capMicroUsd,
    price,
    rounding,
  }: { machine: Attempt['machine']; capMicroUsd: number; price: number; rounding: Rounding },
): boolean {
  const toldAtMs = Math.max(fromMs + billedMs, machine.beginsAtMs) + REACTION_MS
  return billMicroUsd + spendOver(toldAtMs - machine.wanted.launchedAtMs, price, rounding) <= capMicroUsd
}
