import { withoutEnd } from '../../core/trim'
import { MICRO_USD_PER_USD, type MicroUsd } from '../../core/money/money'
import { rowKey, type Offer } from '../../core/offer'
import type { Placement } from '../../core/job/plan'
import { DAY_MS, formatDuration, formatInstant, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { stoppingMs } from '../../core/time/timing'
import type { WhatIf } from '../../core/job/what-if'
import { ASSUMED_DURATION_MS } from '../plan/assumptions'
import type { Question } from './what-if'

/** A change of one input in steps: 0 leaves it, each further step moves it further away. */
export interface Series {
  at: (step: number) => WhatIf
  /** Steps at which another first place is searched, in order; between two of them the search is a bisection. */
  probes: number[]
  /** The row that counts as another first place; any other than the present one if missing. */
  wanted?: string
  text: (step: number, first: string) => string
}

/** The inputs that may change the first place of a plan with these rows, or give one without rows a place. */
export function seriesFor(question: Question, rows: readonly Placement[]): Series[] {
  const [best, second] = rows
  if (best === undefined)
    return [
      ...laterDeadline(question, trainingMsOf(question)),
      ...largerBudget(question),
      ...durationsOf(question),
      ...interruptibleOf(question),
    ]
  return [
    ...(second === undefined ? [] : [cheaper(second.offer), dearer(best.offer)]),
    ...deadlinesOf(question, { best, rows }),
    ...budgetsOf(question, { best, rows }),
    ...durationsOf(question),
    ...(second === undefined ? [] : speedsOf(best, second)),
    ...interruptibleOf(question),
  ]
}

/** `ec2 spot p5.48xlarge` */
export function nameOf(row: string): string {
  return row.replaceAll('/', ' ')
}

/** 1, 2, 4, ... up to `most`. */
function doubling(most: number): number[] {
  const steps: number[] = []
  for (let step = 1; step < most; step *= 2) steps.push(step)
  return most < 1 ? [] : [...steps, Math.floor(most)]
}

const CENT: MicroUsd = 10_000
const PRICE_FACTOR_MAX = 8

/** Prices in cents, or in hundredths of one below ten cents. */
function priceStepOf(price: MicroUsd): MicroUsd {
  return price >= 10 * CENT ? CENT : CENT / 100
}

function cheaper(offer: Offer): Series {
  const { priceMicroUsdPerHour: price } = offer
  const [of, step] = [rowKey(offer), priceStepOf(price)]
  const highest = (Math.ceil(price / step) - 1) * step
  const valueAt = (k: number): MicroUsd => (k === 0 ? price : Math.max(0, highest - (k - 1) * step))
  return {
    at: (k) => ({ key: 'price', of, adjustment: { by: 'set', value: valueAt(k) } }),
    probes: doubling(highest / step + 1),
    wanted: of,
    text: (k) =>
      `${nameOf(of)} would have been first at ${usd(valueAt(k))}/h or less, instead of ${usd(price)}/h.`,
  }
}

function dearer(offer: Offer): Series {
  const { priceMicroUsdPerHour: price } = offer
  const [of, step] = [rowKey(offer), priceStepOf(price)]
  const lowest = (Math.floor(price / step) + 1) * step
  const valueAt = (k: number): MicroUsd => (k === 0 ? price : lowest + (k - 1) * step)
  return {
    at: (k) => ({ key: 'price', of, adjustment: { by: 'set', value: valueAt(k) } }),
    probes: doubling((Math.max(price, CENT) * PRICE_FACTOR_MAX) / step),
    text: (k, first) =>
      `${first} would have been first if ${nameOf(of)} had cost ${usd(valueAt(k))}/h or more, instead of ${usd(price)}/h.`,
  }
}

/** Step for the search of a deadline: minutes do not matter for a duration of days. */
function timeStepOf(durationMs: number): number {
  return durationMs >= 2 * DAY_MS ? HOUR_MS : MINUTE_MS
}

/** Returns later deadlines, and ones so early that the job is late on the present first place but not on another one. */
function deadlinesOf(
  question: Question,
  { best, rows }: { best: Placement; rows: readonly Placement[] },
): Series[] {
  const { input, facts } = question
  const { deadlineAtMs, startsInMs = 0, resolved } = input
  const stepMs = timeStepOf(best.durationMs)
  const neededAtMs = facts.nowMs + startsInMs + stoppingMs(resolved.timing)
  if (deadlineAtMs === undefined) {
    const farAtMs = Math.ceil((neededAtMs + best.forecast.finish.highMs * 2) / stepMs) * stepMs
    const atMs = (k: number): number => farAtMs - k * stepMs
    return [
      {
        at: (k) => ({ key: 'deadline', adjustment: k === 0 ? null : { by: 'set', value: atMs(k) } }),
        probes: stepsDown({ fromAtMs: farAtMs, stepMs, neededAtMs, rows }),
        text: (k, first) =>
          `${first} would have been first with a deadline at ${formatInstant(atMs(k))}, ${formatDuration(atMs(k) - facts.nowMs)} after the decision.`,
      },
    ]
  }
  return [
    ...laterDeadline(question, Math.max(...rows.map(({ durationMs }) => durationMs))),
    {
      at: (k) => ({ key: 'deadline', adjustment: { by: 'add', value: -k * stepMs } }),
      probes: stepsDown({ fromAtMs: deadlineAtMs, stepMs, neededAtMs, rows }),
      text: (k, first) =>
        `${first} would have been first with a deadline ${formatDuration(k * stepMs)} earlier.`,
    },
  ]
}

function laterDeadline({ input }: Question, longestMs: number): Series[] {
  if (input.deadlineAtMs === undefined) return []
  const stepMs = timeStepOf(longestMs)
  return [
    {
      at: (k) => ({ key: 'deadline', adjustment: { by: 'add', value: k * stepMs } }),
      probes: doubling((LATER_FACTOR_MAX * longestMs) / stepMs),
      text: (k, first) =>
        `${first} would have been first with a deadline ${formatDuration(k * stepMs)} later.`,
    },
  ]
}

const LATER_FACTOR_MAX = 8

/** The steps at which each row that is faster than the first is just in time, nearest first. */
function stepsDown({
  fromAtMs,
  stepMs,
  neededAtMs,
  rows,
}: {
  fromAtMs: number
  stepMs: number
  neededAtMs: number
  rows: readonly Placement[]
}): number[] {
  const steps = rows
    .filter(({ durationMs }) => durationMs < rows[0]!.durationMs)
    .map(({ durationMs }) => Math.floor((fromAtMs - neededAtMs - durationMs) / stepMs))
  return [...new Set(steps.filter((step) => step > 0))].sort((a, b) => a - b)
}

const BUDGET_PROBES = 16

/** Returns larger budgets, and ones so small that they exclude the present first place. */
function budgetsOf(
  question: Question,
  { best: { costMicroUsd, forecast }, rows }: { best: Placement; rows: readonly Placement[] },
): Series[] {
  const { budgetMicroUsd, ledger } = question.input
  // A smaller budget excludes the most expensive place first.
  const isCheapest = rows.every((row) => row.costMicroUsd >= costMicroUsd)
  const evenly = (most: number): number[] => [
    ...new Set(
      Array.from({ length: BUDGET_PROBES }, (_, index) => Math.floor((most * (index + 1)) / BUDGET_PROBES)),
    ),
  ]
  const from = budgetMicroUsd ?? ledger.spentMicroUsd + Math.ceil(forecast.cost.highMicroUsd * 1.5)
  const step = budgetStepOf(from)
  const less = Math.floor((from - ledger.spentMicroUsd) / step)
  const valueAt = (k: number): MicroUsd => Math.floor(from / step) * step - k * step
  const lower: Series = {
    at: (k) => ({
      key: 'budget',
      adjustment: k > 0 ? { by: 'set', value: valueAt(k) } : unchangedBudget(budgetMicroUsd),
    }),
    probes: isCheapest ? [] : evenly(less).filter((k) => k > 0),
    text: (k, first) =>
      `${first} would have been first with a budget of ${usd(valueAt(k))} or less${was(budgetMicroUsd)}.`,
  }
  return [lower, ...largerBudget(question)]
}

function largerBudget({ input: { budgetMicroUsd } }: Question): Series[] {
  if (budgetMicroUsd === undefined) return []
  const step = budgetStepOf(budgetMicroUsd)
  return [
    {
      at: (k) => ({ key: 'budget', adjustment: { by: 'add', value: k * step } }),
      probes: doubling((BUDGET_FACTOR_MAX * budgetMicroUsd) / step),
      text: (k, first) =>
        `${first} would have been first with a budget of ${usd(budgetMicroUsd + k * step)} or more${was(budgetMicroUsd)}.`,
    },
  ]
}

const BUDGET_FACTOR_MAX = 20

/** A thousandth, in whole cents. */
function budgetStepOf(budgetMicroUsd: MicroUsd): MicroUsd {
  return Math.max(CENT, 10 ** Math.floor(Math.log10(Math.max(1, budgetMicroUsd))) / 1_000)
}

function unchangedBudget(
  budgetMicroUsd: MicroUsd | undefined,
): Extract<WhatIf, { key: 'budget' }>['adjustment'] {
  return budgetMicroUsd === undefined ? null : { by: 'set', value: budgetMicroUsd }
}

function was(budgetMicroUsd: MicroUsd | undefined): string {
  return budgetMicroUsd === undefined ? '' : `, instead of ${usd(budgetMicroUsd)}`
}

function trainingMsOf({ input }: Question): number {
  return input.resolved.spec.durationMs ?? ASSUMED_DURATION_MS
}

const DURATION_FACTOR_MAX = 20

function durationsOf(question: Question): Series[] {
  const { durationMs } = question.input.resolved.spec
  const presentMs = trainingMsOf(question)
  const stepMs = presentMs < HOUR_MS ? SECOND_MS : timeStepOf(presentMs)
  const [longest, shortest] = [(presentMs * DURATION_FACTOR_MAX) / stepMs, presentMs / stepMs - 1]
  const instead = `, instead of ${durationMs === undefined ? 'the assumed ' : ''}${formatDuration(presentMs)}`
  const series = (sign: 1 | -1, most: number, words: string): Series => {
    const valueAt = (k: number): number => presentMs + sign * k * stepMs
    return {
      at: (k) => ({ key: 'duration', adjustment: { by: 'set', value: valueAt(k) } }),
      probes: doubling(most),
      text: (k, first) =>
        `${first} would have been first for a training of ${formatDuration(valueAt(k))} or ${words}${instead}.`,
    }
  }
  return [series(1, longest, 'more'), series(-1, shortest, 'less')]
}

const SPEED_STEP = 0.01
const SPEED_MAX = 10

function speedsOf(best: Placement, second: Placement): Series[] {
  const { accelerator } = second.offer.shape
  if (accelerator === undefined || accelerator === best.offer.shape.accelerator) return []
  const factorAt = (k: number): number => Math.round(1 / SPEED_STEP + k) / Math.round(1 / SPEED_STEP)
  return [
    {
      at: (k) => ({ key: 'speed', of: accelerator, factor: factorAt(k) }),
      probes: doubling((SPEED_MAX - 1) / SPEED_STEP),
      wanted: rowKey(second.offer),
      text: (k, first) =>
        `${first} would have been first if the ${accelerator} trained ${factorAt(k).toFixed(2)} times as fast as assumed.`,
    },
  ]
}

function interruptibleOf({ input }: Question): Series[] {
  if (input.resolved.spec.isInterruptible) return []
  return [
    {
      at: (k) => ({ key: 'interruptible', isInterruptible: k > 0 }),
      probes: [1],
      text: (_, first) => `${first} would have been first if the job were interruptible.`,
    },
  ]
}

/** Formats an amount with cents, and more digits only where it has them. */
function usd(amount: MicroUsd): string {
  const dollars = amount / MICRO_USD_PER_USD
  return `$${amount % CENT === 0 ? dollars.toFixed(2) : withoutEnd(dollars.toFixed(6), '0')}`
}
