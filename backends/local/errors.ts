import type { FailureClass } from '../../core/failure'
import { BackendError } from '../errors'

interface Meaning {
  class: FailureClass
  /** What the code means here, before the system's own words. */
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
  words: 'this user may not do that',
  hint: 'Give this user the right to write there, or set CRUCIBLE_LOCAL_ROOT to a directory of its own.',
}
const MISPLACED: Meaning = {
  class: 'invalid',
  words: 'that is no place for machines',
  hint: 'Set CRUCIBLE_LOCAL_ROOT to a directory that exists or can be made.',
}
const EXHAUSTED: Meaning = {
  class: 'transient',
  words: 'this host has run out of something',
  hint: 'Look for what takes its processes, memory or open files.',
}

/** What the operating system's codes allow to be done next. Not exhaustive: a code that is missing is `unclassified`. */
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
