import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Problem } from './backend'
import { BackendError } from './errors'

type Environment = Readonly<Record<string, string | undefined>>

/** Where a provider's own tools keep credentials. */
export interface CredentialSource {
  /** Variables that are needed together. They come first, and they name the values. The first one identifies the credentials to people. */
  variables: readonly string[]
  /** The provider's own file: the first existing one of these paths. A path that begins with `~/` is in the user's home directory. */
  file?: {
    paths: readonly string[]
    /** Returns the values by the names of the variables; throws for a text that is not such a file. */
    read: (text: string) => Readonly<Record<string, string | undefined>>
  }
}

export interface StoredCredentials {
  /** Values by the names of the variables. They are never shown to people. */
  values: Readonly<Record<string, string>>
  /** Description for people: location, and the last four characters of the first value. */
  description: string
  /** Problem if other users of this host can read the file. */
  problem?: Problem
}

/**
 * Finds credentials in the environment, then in the provider's own file. Undefined if neither has them. Throws a `BackendError` of class
 * `auth` for an unreadable file, or one in another format than the provider's.
 */
export function findCredentials(
  { variables, file }: CredentialSource,
  environment: Environment,
): StoredCredentials | undefined {
  const inEnvironment = complete(variables, environment)
  if (inEnvironment !== undefined) return found(variables, inEnvironment, 'the environment')
  for (const shown of file?.paths ?? []) {
    const path = shown.startsWith('~/') ? join(environment['HOME'] ?? homedir(), shown.slice(2)) : shown
    const text = readIfThere(path, shown)
    if (text === undefined) continue
    const inFile = complete(variables, parse(file!.read, shown, text))
    if (inFile !== undefined)
      return { ...found(variables, inFile, shown), ...(isOpen(path) && { problem: openFile(shown) }) }
  }
  return undefined
}

function isOpen(path: string): boolean {
  return (statSync(path).mode & 0o077) !== 0
}

function openFile(shown: string): Problem {
  return {
    severity: 'warning',
    message: `other users of this host can read the credentials in ${shown}`,
    remedy: `Make the file private: chmod 600 ${shown}`,
  }
}

/** The most that output shows of a credential; nothing of a short one. */
export function lastFour(credential: string): string {
  return credential.length < SHOWN_FROM ? '…' : `…${credential.slice(-4)}`
}

/** Four characters of a shorter one would say too much. */
const SHOWN_FROM = 16

function found(
  variables: readonly string[],
  values: Record<string, string>,
  place: string,
): StoredCredentials {
  const [first] = variables
  return { values, description: `${first} ${lastFour(values[first!]!)} from ${place}` }
}

/** The values of all variables; undefined if one is missing. */
function complete(variables: readonly string[], from: Environment): Record<string, string> | undefined {
  const values = variables.map((name) => [name, from[name]?.trim() ?? ''] as const)
  return values.some(([, value]) => value === '') ? undefined : Object.fromEntries(values)
}

function readIfThere(path: string, shown: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined
    throw new BackendError(
      {
        class: 'auth',
        message: `${shown} cannot be read (${code}).`,
        hint: 'Make it readable for this user.',
      },
      { cause: error },
    )
  }
}

/** The text is not part of the message: it may be a credential. */
function parse(
  read: NonNullable<CredentialSource['file']>['read'],
  shown: string,
  text: string,
): Environment {
  try {
    return read(text)
  } catch {
    throw new BackendError({
      class: 'auth',
      message: `${shown} is not a file of credentials.`,
      hint: 'Write it again with the tool of the provider, or set the variables instead.',
    })
  }
}
