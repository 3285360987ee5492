/** A call that saves a checkpoint. */
import type { CallEvent, Option, Value } from '../values'
import type { Part } from './contents'
import type { Place } from './places'

export interface Save {
  event: CallEvent
  parts: ReadonlySet<Part>
  /** While training, rather than at the end. */
  isPeriodic: boolean
  /** Whether the program reaches the save with these arguments; false if it certainly does not. */
  truth: boolean | undefined
  /** Options that would make it save. */
  options: readonly Option[]
  /** Interval in words: `2 epochs`; `undefined` if it depends on more than a count. */
  every: string | undefined
  path: Value | undefined
  /** The place at which a library saves according to its settings. */
  place?: Place | undefined
}

export const ALL: ReadonlySet<Part> = new Set(['model', 'optimizer', 'scheduler', 'step', 'random', 'scaler'])
export const WEIGHTS: ReadonlySet<Part> = new Set(['model'])

/** `2 epochs` */
export function inWords(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
