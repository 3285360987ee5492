import type { SyntaxNode } from './syntax'
import type { Option, Value } from './values'

/** A condition on the way to a call. */
export interface Guard {
  /** `undefined` if it depends on the run. */
  truth: boolean | undefined
  condition: Value
  text: string
  file: string
  line: number
  /** An option, and the value that makes the condition true. */
  wants: { option: Option; value: Value | undefined } | undefined
}

/** A loop around a call. */
export interface Loop {
  id: number
  kind: 'for' | 'while' | 'framework'
  /** The loop variables, as written. */
  variable: string
  iterated: Value
  file: string
  line: number
  node: SyntaxNode
  /** The names that the program has when the loop begins. Empty for a comprehension. */
  before: ReadonlyMap<string, Value>
  /** Whether a statement of the loop's body can leave it. */
  canEnd: boolean
  /** Conditions of its `break` statements. */
  breaks: Guard[]
}
