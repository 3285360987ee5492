import { randomUUID } from 'node:crypto'
import type { S3Client } from '@aws-sdk/client-s3'
import type { Grant } from '../../core/grants'
import { SECOND_MS } from '../../core/time/time'
import { checkKey, checkPrefix } from '../keys'
import { layout } from '../layout'
import { isNotOurs, MarkCheck } from '../mark'
import {
  checkSize,
  OBJECT_BYTES_MAX,
  StoreError,
  type ObjectStore,
  type SignedUrls,
  type StoredObject,
} from '../store'
import type { UnfinishedUpload } from '../unfinished'
import { makeClient, type Sdk } from './client'
import { copyWithin } from './copy'
import { isAbsent, s3ErrorOf, statusOf } from './errors'
import { downloadTo } from './download'
import { formatPlace, type S3Place } from './place'
import { abortUpload, listUploads } from './unfinished-uploads'
import { uploadFrom } from './upload'

/** Retries after a conflict: another put of the same key was in progress and ends soon. */
const CONFLICTS_MAX = 10
/** Requests that change the store, as errors name them. */
const WRITES: readonly string[] = ['write', 'copy', 'delete']
/** Metadata that identifies the writer of an object, so that it recognises its own put after a lost answer. */
const MARK = 'crucible-put'

/** A write looks at the store's mark if this has passed since the last look, or if a request failed since: one more request now and then. */
const MARK_EVERY_MS = 30 * SECOND_MS

/** The longest validity of a signature in S3. */
const URL_SECONDS_MAX = 7 * 24 * 60 * 60

/** The bucket as the files of this folder use it. */
export interface Bucket {
  sdk: Sdk
  client: S3Client
  name: string
}

/** An object store in S3, or in an S3-compatible server. */
export class S3Store implements ObjectStore {
  readonly url: string
  readonly place: S3Place
  readonly #grant: Grant | undefined
  readonly #mark: MarkCheck
  /** Monotonic time of the last look at the mark. */
  #markSeenMs = -Infinity
  #bucket: Promise<Bucket> | undefined
  #client: S3Client | undefined

  /** @param grant the credentials to use; those of this process when missing */
  constructor(place: S3Place, grant?: Grant) {
    this.place = place
    this.#grant = grant
    this.url = formatPlace(place)
    this.#mark = new MarkCheck(this.url)
  }

  /** The SDK compares the date of each answer with the clock. */
  get clockOffsetMs(): number | undefined {
    return this.#client?.config.systemClockOffset
  }

  belongTo(deployment: string): void {
    this.#mark.belongTo(deployment)
    this.#markSeenMs = performance.now()
  }

  async get(key: string): Promise<Buffer | undefined> {
    return this.#existing(key, 'read', async ({ sdk, client, name }, Key) => {
      const { Body, ContentLength = 0 } = await client.send(new sdk.GetObjectCommand({ Bucket: name, Key }))
      if (ContentLength > OBJECT_BYTES_MAX) (Body as { destroy?: () => void } | undefined)?.destroy?.()
      checkSize(key, ContentLength)
      return Buffer.from(await Body!.transformToByteArray())
    })
  }

  async head(key: string): Promise<StoredObject | undefined> {
    return this.#existing(key, 'read', async ({ sdk, client, name }, Key) => {
      const head = await client.send(new sdk.HeadObjectCommand({ Bucket: name, Key }))
      return { key, sizeBytes: head.ContentLength ?? 0, modifiedAtMs: head.LastModified?.getTime() ?? 0 }
    })
  }

  async put(key: string, body: Buffer | string): Promise<void> {
    await this.#asking(key, 'write', async ({ sdk, client, name }, Key) => {
      await client.send(new sdk.PutObjectCommand({ Bucket: name, Key, Body: Buffer.from(body) }))
    })
  }

  async putIfAbsent(key: string, body: Buffer | string): Promise<boolean> {
    return this.#asking(key, 'write', async (bucket, Key) => {
      const { sdk, client, name: Bucket } = bucket
      const mark = randomUUID()
      const input = { Bucket, Key, Body: Buffer.from(body), IfNoneMatch: '*', Metadata: { [MARK]: mark } }
      for (let tries = 1; tries <= CONFLICTS_MAX; tries++) {
        try {
          await client.send(new sdk.PutObjectCommand(input))
          return true
        } catch (error) {
          if (statusOf(error) !== 412 && statusOf(error) !== 409) throw error
        }
        // The SDK repeats a request whose answer was lost; then this very put may have taken the key.
        const standing = await this.#markOf(bucket, Key)
        if (standing !== 'absent') return standing === mark
      }
      throw new StoreError(`${key} is put and deleted by other programs continuously.`, { isTransient: true })
    })
  }

  async putFile(key: string, path: string): Promise<void> {
    await this.#asking(key, 'write', async (bucket, Key) => {
      const mark = randomUUID()
      await uploadFrom(path, { bucket, key: Key, metadata: { [MARK]: mark } }).catch(
        async (error: unknown) => {
          // The SDK may also repeat the request that completes a multipart upload.
          if (statusOf(error) === undefined || (await this.#markOf(bucket, Key)) !== mark) throw error
        },
      )
    })
  }

  async getFile(key: string, path: string): Promise<boolean> {
    const size = await this.#existing(key, 'read', (bucket, Key) => downloadTo(path, bucket, Key))
    return size !== undefined
  }

  async copy(fromKey: string, toKey: string): Promise<boolean> {
    checkKey(toKey)
    const copied = await this.#existing(fromKey, 'copy', async (bucket, from) => {
      const key = this.place.prefix + toKey
      const mark = randomUUID()
      await copyWithin(bucket, { from, to: key, metadata: { [MARK]: mark } }).catch(
        async (error: unknown) => {
          // As in `putFile`, the answer to the last request may be lost and the request repeated.
          if (statusOf(error) === undefined || (await this.#markOf(bucket, key)) !== mark) throw error
        },
      )
      return true
    })
    return copied === true
  }

  async readUrl(key: string, forMs: number): Promise<string> {
    return (await this.signUrls(key, forMs)).read
  }

  async signUrls(key: string, forMs: number): Promise<SignedUrls> {
    return this.#asking(key, 'sign URLs for', async ({ sdk, client, name }, Key) => {
      const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner')
      const expiresIn = Math.min(Math.ceil(forMs / SECOND_MS), URL_SECONDS_MAX)
      const place = { Bucket: name, Key }
      const { expiration } = await client.config.credentials()
      return {
        read: await getSignedUrl(client, new sdk.GetObjectCommand(place), { expiresIn }),
        write: await getSignedUrl(client, new sdk.PutObjectCommand(place), { expiresIn }),
        delete: await getSignedUrl(client, new sdk.DeleteObjectCommand(place), { expiresIn }),
        credentialsEndAtMs: expiration?.getTime(),
      }
    })
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    checkPrefix(prefix)
    const doing = `list ${this.#shown(prefix)}`
    try {
      const { sdk, client, name: Bucket } = await this.#open()
      const input = { Bucket, Prefix: this.place.prefix + prefix, EncodingType: 'url' as const }
      for await (const page of sdk.paginateListObjectsV2({ client }, input)) {
        for (const { Key, Size, LastModified } of page.Contents ?? []) {
          const key = decoded(Key).slice(this.place.prefix.length)
          // Consoles represent empty folders by objects whose keys end with a slash.
          if (key.endsWith('/')) continue
          yield { key, sizeBytes: Size ?? 0, modifiedAtMs: LastModified?.getTime() ?? 0 }
        }
      }
    } catch (error) {
      throw s3ErrorOf(error, doing)
    }
  }

  async listFolders(prefix: string): Promise<string[]> {
    checkPrefix(prefix)
    const begin = (this.place.prefix + prefix).lastIndexOf('/') + 1
    const names: string[] = []
    try {
      const { sdk, client, name: Bucket } = await this.#open()
      const input = {
        Bucket,
        Prefix: this.place.prefix + prefix,
        Delimiter: '/',
        EncodingType: 'url' as const,
      }
      for await (const page of sdk.paginateListObjectsV2({ client }, input))
        names.push(...(page.CommonPrefixes ?? []).map(({ Prefix }) => decoded(Prefix).slice(begin, -1)))
    } catch (error) {
      throw s3ErrorOf(error, `list ${this.#shown(prefix)}`)
    }
    return names
  }

  async delete(key: string): Promise<void> {
    await this.#existing(key, 'delete', async ({ sdk, client, name }, Key) => {
      await client.send(new sdk.DeleteObjectCommand({ Bucket: name, Key }))
      return true
    })
  }

  async unfinished(): Promise<UnfinishedUpload[]> {
    const { prefix, endpoint } = this.place
    return this.#open()
      .then((bucket) => listUploads(bucket, { prefix, isOfAws: endpoint === undefined }))
      .catch((error: unknown) => {
        throw s3ErrorOf(error, `list the unfinished uploads of ${this.#shown('')}`)
      })
  }

  async abandon({ id, key = '' }: UnfinishedUpload): Promise<void> {
    await this.#asking(key, 'end the upload of', (bucket, Key) => abortUpload(bucket, { Key, UploadId: id }))
  }

  /** Closes idle connections. The store may be used again. */
  async close(): Promise<void> {
    const bucket = this.#bucket
    this.#bucket = undefined
    ;(await bucket)?.client.destroy()
  }

  /** Opens the bucket at the first request, for all requests. */
  async #open(): Promise<Bucket> {
    this.#bucket ??= makeClient(this.place, this.#grant).then((made) => {
      this.#client = made.client
      return { ...made, name: this.place.bucket }
    })
    return this.#bucket
  }

  /** Returns the writer's mark of the object, if any; `absent` when there is no object. */
  async #markOf({ sdk, client, name }: Bucket, Key: string): Promise<string | undefined> {
    try {
      const head = await client.send(new sdk.HeadObjectCommand({ Bucket: name, Key }))
      return head.Metadata?.[MARK]
    } catch (error) {
      if (isAbsent(error)) return 'absent'
      throw error
    }
  }

  async #asking<T>(
    key: string,
    verb: string,
    action: (bucket: Bucket, key: string) => Promise<T>,
  ): Promise<T> {
    checkKey(key)
    try {
      if (WRITES.includes(verb) && key !== layout.deployment()) await this.#checkMark()
      return await action(await this.#open(), this.place.prefix + key)
    } catch (error) {
      if (!isNotOurs(error)) this.#markSeenMs = -Infinity
      throw s3ErrorOf(error, `${verb} ${this.#shown(key)}`)
    }
  }

  async #checkMark(): Promise<void> {
    const nowMs = performance.now()
    if (!this.#mark.isBound || nowMs - this.#markSeenMs < MARK_EVERY_MS) return
    this.#mark.compare(await this.get(layout.deployment()))
    this.#markSeenMs = nowMs
  }

  /** Performs an action on an object; returns `undefined` if it does not exist. */
  async #existing<T>(
    key: string,
    verb: string,
    action: (bucket: Bucket, key: string) => Promise<T>,
  ): Promise<T | undefined> {
    return this.#asking(key, verb, async (bucket, Key) => {
      try {
        return await action(bucket, Key)
      } catch (error) {
        if (!isAbsent(error)) throw error
      }
      // Nothing is absent from a store that was emptied or replaced.
      if (key !== layout.deployment()) await this.#checkMark()
      return undefined
    })
  }

  #shown(key: string): string {
    const { bucket, prefix, endpoint } = this.place
    return `s3://${bucket}/${prefix}${key}${endpoint === undefined ? '' : ` at ${endpoint}`}`
  }
}

function decoded(key: string | undefined): string {
  return decodeURIComponent((key ?? '').replaceAll('+', ' '))
}
