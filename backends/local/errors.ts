import type { FailureClass } from '../../core/failure'
import { BackendError } from '../errors'

interface Meaning {
  class: FailureClass
  /** What the code means here, printed before the system's message. */
  words: string
  hint: string
}

const FULL: Meaning = {
  class: 'capacity',
  words: 'the disk is full',
  hint: 'Free some space there, or set CRUCIBLE_LOCAL_ROOT to a larger disk.',
}
const FORBIDDEN: Meaning = {
  class: 'auth',
  words: 'permission denied for this user',
  hint: 'Give this user write permission there, or set CRUCIBLE_LOCAL_ROOT to a directory of this user.',
}
const MISPLACED: Meaning = {
  class: 'invalid',
  words: 'the directory cannot be used for machines',
  hint: 'Set CRUCIBLE_LOCAL_ROOT to a directory that exists or can be created.',
}
const EXHAUSTED: Meaning = {
  class: 'transient',
  words: 'this host has run out of processes, memory or open files',
  hint: 'Find out which program uses them up.',
}

/** What may be done next, by the operating system's error code. Not exhaustive: a missing code is `unclassified`. */
const MEANINGS: Record<string, Meaning> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EACCES: FORBIDDEN,
  EPERM: FORBIDDEN,
  EROFS: FORBIDDEN,
  ENOTDIR: MISPLACED,
  ENOENT: MISPLACED,
  ENAMETOOLONG: MISPLACED,
  EAGAIN: EXHAUSTED,
  ENOMEM: EXHAUSTED,
  EMFILE: EXHAUSTED,
  ENFILE: EXHAUSTED,
  EBUSY: EXHAUSTED,
}

/** Classes an operating system's error; a `BackendError` passes unchanged. */
export function localError(error: unknown): BackendError {
  if (error instanceof BackendError) return error
  const { code } = error as { code?: unknown }
  const message = messageOf(error)
  if (typeof code !== 'string') return new BackendError({ class: 'unclassified', message }, { cause: error })
  const meaning = MEANINGS[code]
  if (meaning === undefined)
    return new BackendError({ class: 'unclassified', message, code }, { cause: error })
  const { words, hint } = meaning
  return new BackendError(
    { class: meaning.class, message: `${words}: ${message}`, hint, code },
    { cause: error },
  )
}

export function invalid(message: string, hint: string): BackendError {
  return new BackendError({ class: 'invalid', message, hint })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as { code?: string } | undefined)?.code ?? '')
}
