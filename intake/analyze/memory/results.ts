/** Models of libraries whose derivatives are not counted by rules: what is kept is about the results of all their layers. */
import type { CallEvent } from '../values'
import type { Kept } from './forward'

export interface BuiltModel {
  /** Trained parameters. */
  parameters: number
  /** The results of all layers for one sample, if their sizes are known. */
  kept: Kept | undefined
  first: CallEvent
}

/** `results`: elements of all results for one sample; `NaN` if a size is not known. `largest`: of the largest one. */
export function keptResults({ results, largest }: { results: number; largest: number }): Kept | undefined {
  const others = { full: 0, masks: 0, indices: 0, possible: 0, multiplications: NaN }
  return Number.isFinite(results) ? { ...others, plain: results, largest, isComplete: true } : undefined
}
