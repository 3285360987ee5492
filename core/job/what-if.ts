import type { Objective } from './job'
import { MICRO_USD_PER_USD } from '../money/money'
import { formatBackendChoice, type BackendChoice } from '../offer'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../time/time'

/** The keys of `crucible why --what-if KEY=VALUE`; `price` and `speed` may name what they apply to (`price.spot`, `speed.A100`). */
export const WHAT_IF_KEYS = [
  'price',
  'speed',
  'deadline',
  'budget',
  'duration',
  'backend',
  'optimize',
  'interruptible',
] as const
export type WhatIfKey = (typeof WHAT_IF_KEYS)[number]

/**
 * Change of a figure: `set` a new value, `add` to the figure, or multiply it by the `factor`. Money is in micro-dollars, time in
 * milliseconds.
 */
export interface Adjustment {
  by: 'set' | 'add' | 'factor'
  value: number
}

/** One input of a recorded decision, changed. The planner applies it (`planner/why/what-if.ts`). @experimental */
export type WhatIf =
  /** Hourly price; `of` selects offers as `selects` of the planner does, null for all. */
  | { key: 'price'; of: string | null; adjustment: Adjustment }
  /** The training speed of an accelerator, as a multiple of the one that the decision assumed. */
  | { key: 'speed'; of: string; factor: number }
  /** `set` is an instant, `after` counts from the submission; null for no deadline. */
  | { key: 'deadline'; adjustment: Adjustment | { by: 'after'; value: number } | null }
  /** For the whole job; null for no budget. */
  | { key: 'budget'; adjustment: Adjustment | null }
  /** The whole training time that the job states. */
  | { key: 'duration'; adjustment: Adjustment }
  /** Only the named backends, or all except one. */
  | { key: 'backend'; choice: BackendChoice; isLeftOut: boolean }
  | { key: 'optimize'; objective: Objective }
  | { key: 'interruptible'; isInterruptible: boolean }

/** A change as `--what-if` takes it; the inverse of its parser. */
export function formatWhatIf(change: WhatIf): string {
  switch (change.key) {
    case 'price': {
      const of = change.of === null ? '' : `.${change.of}`
      return `price${of}=${formatAdjustment(change.adjustment, moneyText)}`
    }
    case 'speed':
      return `speed.${change.of}=${plainNumber(change.factor)}`
    case 'deadline': {
      const { adjustment } = change
      if (adjustment === null) return 'deadline=none'
      if (adjustment.by === 'set') return `deadline=${new Date(adjustment.value).toISOString()}`
      if (adjustment.by === 'after') return `deadline=${timeText(adjustment.value)}`
      return `deadline=${formatAdjustment(adjustment, timeText)}`
    }
    case 'budget':
      return `budget=${change.adjustment === null ? 'none' : formatAdjustment(change.adjustment, moneyText)}`
    case 'duration':
      return `duration=${formatAdjustment(change.adjustment, timeText)}`
    case 'backend':
      return `backend=${change.isLeftOut ? '-' : ''}${formatBackendChoice(change.choice)}`
    case 'optimize':
      return `optimize=${change.objective}`
    case 'interruptible':
      return `interruptible=${change.isInterruptible ? 'yes' : 'no'}`
  }
}

function formatAdjustment({ by, value }: Adjustment, format: (value: number) => string): string {
  if (by === 'set') return format(value)
  if (by === 'add') return `${value < 0 ? '-' : '+'}${format(Math.abs(value))}`
  const percent = (value - 1) * 100
  return `${percent < 0 ? '-' : '+'}${plainNumber(Math.abs(percent))}%`
}

function moneyText(microUsd: number): string {
  return plainNumber(microUsd / MICRO_USD_PER_USD)
}

/** Exact to the millisecond. */
function timeText(ms: number): string {
  const hours = Math.floor(ms / HOUR_MS)
  const minutes = Math.floor((ms % HOUR_MS) / MINUTE_MS)
  const seconds = (ms % MINUTE_MS) / SECOND_MS
  const parts: [number, string][] = [
    [hours, 'h'],
    [minutes, 'm'],
    [seconds, 's'],
  ]
  return (
    parts
      .filter(([count]) => count > 0)
      .map(([count, unit]) => `${plainNumber(count)}${unit}`)
      .join('') || '0s'
  )
}

/** Formats a number without exponent and with at most six decimals. */
function plainNumber(value: number): string {
  return value.toFixed(6).replace(/(?:\.|(?<![.0]))0+$/, '')
}
