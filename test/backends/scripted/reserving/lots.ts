import type { MicroUsd } from '../../../../core/money/money'

/** One value, or values by the instant from which they hold, oldest first. */
export type OverTime<T> = T | [fromMs: number, value: T][]

/** A window of capacity at a fixed price. Tests change it while it is on sale. */
export interface PrepaidLot {
  kind: 'prepaid'
  type: string
  region: string
  zone: string
  /** Machines in one block. */
  count: number
  startsAtMs: number
  durationMs: number
  upfrontMicro: OverTime<MicroUsd>
  currency?: string
  /** Blocks that can be bought, those that were bought included; 1 if missing. */
  stock?: OverTime<number>
}

/** Machines that can be held by the hour. */
export interface HourlyLot {
  kind: 'hourly'
  type: string
  region: string
  zone: string
  /** Of one machine. */
  perHourMicro: OverTime<MicroUsd>
  currency?: string
  /** Machines, those that are held included; no limit if missing. */
  stock?: OverTime<number>
  /** A start in the future is sold with this commitment; missing: only starts at once. */
  committedMs?: number
}

/** More time for a reservation. */
export interface ExtensionLot {
  kind: 'extension'
  reservation: string
  durationMs: number
  upfrontMicro: OverTime<MicroUsd>
  currency?: string
  /** How often it can be bought; 1 if missing. */
  stock?: OverTime<number>
}

export type Lot = PrepaidLot | HourlyLot | ExtensionLot

/** The value at an instant; undefined before the first one. */
export function valueAt<T extends number>(values: OverTime<T>, atMs: number): T | undefined {
  return typeof values === 'number' ? values : values.findLast(([fromMs]) => fromMs <= atMs)?.[1]
}
