import type { FailureClass } from '../../core/failure'
import { BackendError, failureOf } from '../errors'

export { invalid } from '../errors'

interface Meaning {
  class: FailureClass
  /** Meaning of the code, printed before the system's message. */
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

/** Meanings of the operating system's error codes. The table is not exhaustive: a missing code is `unclassified`. */
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
  const failure = failureOf(error)
  const meaning = MEANINGS[failure.code ?? '']
  const known = meaning && {
    class: meaning.class,
    hint: meaning.hint,
    message: `${meaning.words}: ${failure.message}`,
  }
  return new BackendError({ ...failure, ...known }, { cause: error })
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as { code?: string } | undefined)?.code ?? '')
}
