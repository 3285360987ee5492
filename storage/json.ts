import { isUtf8 } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { CODES, messageOf } from '../core/errors'
import { eachOf } from './parallel'
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
  const body = await store.get(key)
  if (body === undefined) return undefined
  try {
    // Decoding would replace bytes that are not text, and the document would seem whole.
    if (!isUtf8(body)) throw new Error('it is not text in UTF-8')
    return parse(body.toString('utf8'))
  } catch (error) {
    throw badDocument(key, error)
  }
}

/** A parser of documents that only this deployment writes: it finds damage by the parts that readers use. */
export function parserOf<T>(kind: string, isWhole: (value: Partial<T>) => boolean): Parse<T> {
  return (text) => {
    const value: unknown = JSON.parse(text)
    if (!isRecord(value) || !isWhole(value as Partial<T>)) throw new Error(`it is not ${kind}`)
    return value as T
  }
}

/** Whether a value is an object with keys, neither null nor a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

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

  /** Returns the documents under keys, without those that cannot be read. */
  async readEach<T>(keys: readonly string[], read: (key: string) => Promise<T | undefined>): Promise<T[]> {
    const found = await eachOf(keys, (key) => this.read(key, () => read(key)))
    return found.filter((one) => one !== undefined)
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

/** Handler for `catch` that treats a damaged or refused document as an absent one. */
export function ignoreUnreadable(error: unknown): undefined {
  if (isUnreadable(error)) return undefined
  throw error
}

export async function putDocument(store: ObjectStore, key: string, value: unknown): Promise<void> {
  await store.put(key, textOf(value))
}

/** Puts the document unless one exists; otherwise returns false and changes nothing. */
export async function putDocumentIfAbsent(store: ObjectStore, key: string, value: unknown): Promise<boolean> {
  return store.putIfAbsent(key, textOf(value))
}

/**
 * Puts a document unless one exists. Returns the stored one, which a repeated activity may have put before. Throws a `StoreError` if that
 * one cannot be read.
 */
export async function putOnce<T>(store: ObjectStore, key: string, value: T, parse: Parse<T>): Promise<T> {
  if (await putDocumentIfAbsent(store, key, value)) return value
  const earlier = await readDocument(store, key, parse)
  if (earlier !== undefined) return earlier
  throw new StoreError(`The document ${key} disappeared: another program changes objects in this store.`, {
    isTransient: true,
  })
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
  // The words of the JSON parser show parts of the content.
  const why = cause instanceof SyntaxError ? 'it is not valid JSON' : messageOf(cause)
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
