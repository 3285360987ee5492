import { CodedError, CODES } from '../core/errors'
import type { UnfinishedUpload } from './unfinished'

/**
 * The object store's interface for the rest of Crucible: whole objects under keys with `/`, strong read-after-write, one atomic
 * put-if-absent. It contains everything that must survive a machine, or outlive Temporal's retention.
 */
export interface ObjectStore {
  /** `file:///...`, `s3://bucket/prefix`: the URL with which another process opens the same store. */
  readonly url: string

  /** How far the store's clock is ahead of this computer's, by its last answer, to the second; missing if unknown. */
  readonly clockOffsetMs?: number | undefined

  /** Makes the folder of a new store. Missing in stores whose place only set-up makes. Throws a `StoreError`. */
  make?(): Promise<void>

  /**
   * Binds this object to the deployment in the store's mark (`deployment.json`); the first one counts. From then on a write throws a
   * transient `StoreError` while the place of the store is missing, empty or another deployment's.
   */
  belongTo?(deployment: string): void

  /**
   * Returns the whole object, or `undefined` if it does not exist. Throws a `StoreError` with code `BAD_DOCUMENT`, without reading it, if it
   * is larger than `OBJECT_BYTES_MAX`, because a job that can write it must not fill a worker's memory.
   */
  get(key: string): Promise<Buffer | undefined>

  /** Returns size and age without the content, or `undefined` when there is no object. */
  head(key: string): Promise<StoredObject | undefined>

  /** Puts the whole object, replacing an existing one; a reader sees the old or the new object, never a part. */
  put(key: string, body: Buffer | string): Promise<void>

  /** Puts the object unless the key is taken; otherwise returns false and changes nothing. */
  putIfAbsent(key: string, body: Buffer | string): Promise<boolean>

  /** Uploads a file of any size without holding it in memory; otherwise like `put`. */
  putFile(key: string, path: string): Promise<void>

  /** Downloads to a file of any size without holding it in memory. Returns false when there is no such object. */
  getFile(key: string, path: string): Promise<boolean>

  /**
   * Copies an object to another key of this store like `put`; if the store can, without transferring its bytes through this process.
   * Returns false when there is no such object.
   */
  copy(fromKey: string, toKey: string): Promise<boolean>

  /**
   * Returns a URL (https, http, file or data) with which any holder can read an existing object, for at least this long and without further
   * permissions.
   */
  readUrl(key: string, forMs: number): Promise<string>

  /**
   * Signs URLs for reading, writing and deleting one object, existing or not, by any holder and without further permissions. They are valid for this
   * long, but no longer than the credentials that signed them.
   */
  signUrls(key: string, forMs: number): Promise<SignedUrls>

  /** Lists the objects under a prefix in key order. */
  list(prefix: string): AsyncIterable<StoredObject>

  /** Lists names directly under a prefix that have objects under them, like folders; in order, without the slash. */
  listFolders(prefix: string): Promise<string[]>

  /** Removes the object; an absent object is success. */
  delete(key: string): Promise<void>

  /**
   * Lists uploads that killed processes left unfinished, and uploads in progress: no other list shows them, and they take space. Missing in
   * stores without such uploads.
   */
  unfinished?(): Promise<UnfinishedUpload[]>

  /** Aborts an upload by its id; an absent upload is success. */
  abandon?(upload: UnfinishedUpload): Promise<void>
}

/** URLs for one object; `file:` URLs of a store in a folder are for a process with access to the folder. */
export interface SignedUrls {
  /** Signed URL for GET. */
  read: string
  /** Signed URL for PUT of the whole object. */
  write: string
  /** Signed URL for DELETE. An absent object is success. */
  delete: string
  /** Expiry of temporary credentials and of their URLs; missing for permanent ones. */
  credentialsEndAtMs?: number
}

/** More than any object that is read whole has: a manifest of a hundred thousand files has half of it. */
export const OBJECT_BYTES_MAX = 32 * 1024 * 1024

/** Throws a `StoreError` for an object that is too large to be read whole. */
export function checkSize(key: string, sizeBytes: number): void {
  if (sizeBytes <= OBJECT_BYTES_MAX) return
  throw new StoreError(
    `The document ${key} cannot be read: it has ${sizeBytes} bytes (maximum ${OBJECT_BYTES_MAX}).`,
    {
      isTransient: false,
      code: CODES.badDocument,
    },
  )
}

export interface StoredObject {
  key: string
  sizeBytes: number
  modifiedAtMs: number
}

/** Thrown by every store; `isTransient` distinguishes transient failures from permanent ones. */
export class StoreError extends CodedError<'store'> {
  readonly isTransient: boolean
  readonly code: string | undefined

  constructor(message: string, options: { isTransient: boolean; code?: string; cause?: unknown }) {
    super('store', message, { cause: options.cause })
    this.isTransient = options.isTransient
    this.code = options.code
  }
}
