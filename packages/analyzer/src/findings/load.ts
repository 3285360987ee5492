/** A call that restores the state of an earlier run. */
import { optionsOf } from '../facts'
import { truthOfGuards } from '../interpreter'
import type { CallEvent, Option, Value } from '../values'
import type { Part } from './contents'

export interface Load {
  event: CallEvent
  /** The call that reads the file, if that is another one. */
  source?: CallEvent | undefined
  parts: Set<Part>
  /** Whether the library itself continues at the right step. */
  isWhole: boolean
  options: readonly Option[]
  /** Whether the program reaches the load with these arguments; false if it certainly does not. */
  truth: boolean | undefined
  /** The file, as far as it is known. */
  path: Value | undefined
}

export const WHOLE: readonly Part[] = ['model', 'optimizer', 'scheduler', 'random', 'scaler']

export type Situation = Omit<Load, 'parts'>

export function situation(event: CallEvent): Pick<Load, 'event' | 'options' | 'truth'> {
  return { event, options: optionsOf(event), truth: truthOfGuards(event.guards) }
}
