/** Why no change is suggested. */
import type { SyntaxNode } from '../syntax'
import type { CallEvent } from '../values'

/** A place in the program, and what about it keeps a change from being certain; a clause in plain English. */
export interface Reason {
  file: string
  line: number
  message: string
}

/** Ends the search for a change. It never leaves this folder. */
export class Refusal extends Error {
  constructor(readonly reason: Reason) {
    super(reason.message)
  }
}

export function refuse(file: string, node: SyntaxNode | { line: number }, message: string): never {
  throw new Refusal({ file, line: node.line, message })
}

export function refuseCall(event: CallEvent, message: string): never {
  refuse(event.file.path, event.node, message)
}
