/**
 * How much of a budget is left, how long that pays for a machine, and how much of that time is kept in reserve. A machine is always
 * counted at the highest price that its order allows, so that no price change can exceed the budget.
 *
 * The reserves differ by who stops the machine:
 * - the runner keeps `stoppingMs` (`timing.ts`): it is on the machine and stops at an exact time;
 * - the control plane keeps `budgetReserveMs`: its request still has to reach the runner;
 * - before the runner's first sign of life, `startReserveMs`: the machine's age is known by the provider's clock only;
 * - a machine without a runner keeps `bootReserveMs`: it has nothing to save.
 *
 * How much paid time makes a machine worth starting is policy: `USEFUL_RUN_MS` and `WORTH_ANOTHER_MS` of the planner.
 */
import { defined } from '../defined'
import { spendOver } from './meter'
import type { MicroUsd } from './money'
import { CLOCK_SLACK_MS, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../time/time'
import { stoppingMs, type Timing } from '../time/timing'

/** Ten years, the longest affordable time: within the range of every timer and exact in every number. */
const AFFORDABLE_MAX_MS = 3_650 * DAY_MS

/** Spending limit of one attempt. The runner computes from it when its machine must be off if the control plane never reports again. */
export interface AttemptBudget {
  /** Limit on the cost of the attempt. */
  microUsd: MicroUsd
  /** The highest price that its machine can reach. */
  priceMaxMicroUsdPerHour: MicroUsd
  /** Each begun billing step is paid in full; missing for steps of one second. */
  billedInStepsOfMs?: number
}

/** The budget minus the cost of all ended attempts: negative after an overrun, `undefined` without a budget. */
export function leftOfBudget(
  budgetMicroUsd: MicroUsd | undefined,
  spentMicroUsd: MicroUsd,
): MicroUsd | undefined {
  return budgetMicroUsd === undefined ? undefined : budgetMicroUsd - spentMicroUsd
}

/** Terms of an order for the money of its machine. */
export interface AttemptTerms {
  priceMaxMicroUsdPerHour: MicroUsd
  transferMicroUsd?: MicroUsd
  billedInStepsOfMs?: number | undefined
  /** Whether only our call ends the machine's billing. */
  isBilledOn?: boolean
}

/**
 * Time from the power-off of a machine that is billed until our call ends it, to that call: one beat until the watch sees its result, the
 * settlement's searches at the provider's pace, and the call itself.
 */
const CALL_MS = MINUTE_MS

/**
 * Spending limit for the machine of an order: the remaining budget minus the cost of moving its data and of its time between power-off and
 * our call.
 */
export function attemptBudget(leftMicroUsd: MicroUsd | undefined, terms: AttemptTerms): AttemptBudget | null {
  const { priceMaxMicroUsdPerHour, transferMicroUsd = 0, billedInStepsOfMs, isBilledOn = false } = terms
  if (leftMicroUsd === undefined) return null
  const callMicroUsd = isBilledOn
    ? spendOver(CALL_MS, priceMaxMicroUsdPerHour, defined({ billedInStepsOfMs }))
    : 0
  const microUsd = Math.max(0, leftMicroUsd - transferMicroUsd - callMicroUsd)
  return { microUsd, priceMaxMicroUsdPerHour, billedInStepsOfMs }
}

/** Returns how long the rest of a budget pays for the machine; `Infinity` without a budget. */
export function paidForMs(budget: AttemptBudget | null, spentMicroUsd: MicroUsd = 0): number {
  return budget === null
    ? Infinity
    : affordableMs(budget.microUsd - spentMicroUsd, budget.priceMaxMicroUsdPerHour, budget.billedInStepsOfMs)
}

/**
 * Returns how long a machine may be billed for an amount, in whole billing steps; `Infinity` for a free machine. `spendOver` of the answer
 * never exceeds the amount. The runner computes the same (`limits.py`).
 */
export function affordableMs(
  microUsd: MicroUsd,
  priceMicroUsdPerHour: MicroUsd,
  billedInStepsOfMs = SECOND_MS,
): number {
  if (priceMicroUsdPerHour <= 0) return Infinity
  const seconds = Math.floor((Math.max(0, microUsd) * (HOUR_MS / SECOND_MS)) / priceMicroUsdPerHour)
  const steps = Math.floor((seconds * SECOND_MS) / billedInStepsOfMs)
  return Math.min(steps * billedInStepsOfMs, AFFORDABLE_MAX_MS)
}

/**
 * Time that the control plane reserves: one beat until it notices, two until the runner has read the request, the runner's time to save and
 * stop, and another power-off to terminate a machine that does not obey.
 */
export function budgetReserveMs(timing: Pick<Timing, 'drainMs' | 'powerOffMs' | 'beatMs'>): number {
  return stoppingMs(timing) + timing.powerOffMs + 3 * timing.beatMs
}

/** Time that the control plane reserves while the runner is being started, when two clocks measure the machine's age. */
export function startReserveMs(timing: Pick<Timing, 'drainMs' | 'powerOffMs' | 'beatMs'>): number {
  return budgetReserveMs(timing) + CLOCK_SLACK_MS
}

/**
 * Returns how long a machine may be on before a runner has started, by the machine's own clock. It has nothing to save, but must be off
 * before its money is used up.
 */
export function startsWithinMs(
  runner: Pick<Timing, 'startWithinMs' | 'powerOffMs'> & { limits: { budget: AttemptBudget | null } },
): number {
  const paidMs = paidForMs(runner.limits.budget) - bootReserveMs(runner)
  return Math.max(0, Math.min(runner.startWithinMs + CLOCK_SLACK_MS, paidMs))
}

/** Time reserved for a machine without a started runner: only the power-off, by a timer that starts with the machine's clock. */
function bootReserveMs({ powerOffMs }: Pick<Timing, 'powerOffMs'>): number {
  return powerOffMs + CLOCK_SLACK_MS
}
