import { isUtf8 } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { CODES } from '../core/errors'
import { StoreError, type ObjectStore } from './store'

/** Parses the text of a document; throws for an invalid one. `intake/documents.ts` has one parser for each kind. */
export type Parse<T> = (text: string) => T

/**
 * Returns the document under a key, or `undefined` without one. Throws a `StoreError` with code `BAD_DOCUMENT` and the parser's
 * complaint when the object is not such a document.
 */
export async function readDocument<T>(
  store: ObjectStore,
  key: string,
  parse: Parse<T>,
): Promise<T | undefined> {
  const body = await store.get(key, DOCUMENT_BYTES_MAX)
  if (body === undefined) return undefined
  try {
    // Decoding would replace bytes that are not text, and the document would seem whole.
    if (!isUtf8(body)) throw new Error('it is not text in UTF-8')
    return parse(body.toString('utf8'))
  } catch (error) {
    throw badDocument(key, error)
  }
}

/** More than any document has: a manifest of a hundred thousand files has half of it. */
const DOCUMENT_BYTES_MAX = 32 * 1024 * 1024

/** Codes of errors that concern one object, while the store answers. */
const OF_ONE_OBJECT: readonly string[] = [CODES.badDocument, 'EACCES', 'EPERM', 'ELOOP', 'AccessDenied']

/** Whether an error says that one document cannot be read, because it is damaged or refused. Other documents may be whole. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof StoreError && error.code !== undefined && OF_ONE_OBJECT.includes(error.code)
}

/** Names documents that could not be read, with the reasons, for a person. */
export class Gaps {
  readonly names: string[] = []

  /** Runs a read; without the document, notes its name and returns nothing. */
  async read<T>(name: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.names.push(name)
      return undefined
    }
  }

  get isEmpty(): boolean {
    return this.names.length === 0
  }
}

/** Handler for `catch` that treats an unreadable document as an absent one. */
export function ignoreBadDocument(error: unknown): undefined {
  if (error instanceof StoreError && error.code === CODES.badDocument) return undefined
  throw error
}

export async function putDocument(store: ObjectStore, key: string, value: unknown): Promise<void> {
  await store.put(key, textOf(value))
}

/** Puts the document unless one exists; otherwise returns false and changes nothing. */
export async function putDocumentIfAbsent(store: ObjectStore, key: string, value: unknown): Promise<boolean> {
  return store.putIfAbsent(key, textOf(value))
}

/** Returns a value in the form in which the store returns it. */
export function asStored<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** Whether two values are the same once stored: a property that is undefined is then an absent one. */
export function isStoredAlike(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(asStored(one), asStored(other))
}

function badDocument(key: string, cause: unknown): StoreError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new StoreError(`The document ${key} cannot be read: ${why}`, {
    isTransient: false,
    code: CODES.badDocument,
    cause,
  })
}

/** Indented, because people read these files too. */
function textOf(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
