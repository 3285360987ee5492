import { CodedError } from '../core/errors'
import type { UnfinishedUpload } from './unfinished'

/**
 * The object store as the rest of Crucible sees it: whole objects under keys with `/`, strong read-after-write, one atomic
 * put-if-absent. Everything that must survive a machine, or outlive Temporal's retention, is here.
 */
export interface ObjectStore {
  /** `file:///...`, `s3://bucket/prefix`: how another process opens the same store. */
  readonly url: string

  /** The whole object, or `undefined` when there is none. */
  get(key: string): Promise<Buffer | undefined>

  /** Size and age without the content, or `undefined` when there is none. */
  head(key: string): Promise<StoredObject | undefined>

  /** Puts the object whole, replacing what was there; a reader sees the old or the new, never a part. */
  put(key: string, body: Buffer | string): Promise<void>

  /** Puts the object unless the key is taken. False, and nothing changed, when it is. */
  putIfAbsent(key: string, body: Buffer | string): Promise<boolean>

  /** Uploads a file of any size without holding it in memory; otherwise as `put`. */
  putFile(key: string, path: string): Promise<void>

  /** Downloads to a file of any size without holding it in memory. False when there is no such object. */
  getFile(key: string, path: string): Promise<boolean>

  /**
   * Copies an object to another key of this store as `put` would, without its bytes passing through this process where the store
   * can do that. False when there is no such object.
   */
  copy(fromKey: string, toKey: string): Promise<boolean>

  /**
   * A URL under which whoever has it can read an object that is there (https, http, file or data), for so long at least and
   * with no other right.
   */
  readUrl(key: string, forMs: number): Promise<string>

  /** The objects under a prefix in the order of their keys. */
  list(prefix: string): AsyncIterable<StoredObject>

  /** Names directly under a prefix that have something under them, as folders would show; in order, without the slash. */
  listFolders(prefix: string): Promise<string[]>

  /** Removes the object; absent is success. */
  delete(key: string): Promise<void>

  /**
   * What killed processes left half-written, and what is being written now: no other list shows it, and it takes room. Missing
   * where there is no such thing.
   */
  unfinished?(): Promise<UnfinishedUpload[]>

  /** Ends what was begun, by its id; absent is success. */
  abandon?(upload: UnfinishedUpload): Promise<void>
}

export interface StoredObject {
  key: string
  sizeBytes: number
  modifiedAtMs: number
}

/** Thrown by every store; `isTransient` tells trouble that may pass from a request that can never work. */
export class StoreError extends CodedError<'store'> {
  readonly isTransient: boolean
  readonly code: string | undefined

  constructor(message: string, options: { isTransient: boolean; code?: string; cause?: unknown }) {
    super('store', message, { cause: options.cause })
    this.isTransient = options.isTransient
    this.code = options.code
  }
}
