import { readFile, writeFile } from 'node:fs/promises'
import { checkKey, checkPrefix, compareKeys } from '../../../storage/keys'
import {
  checkSize,
  StoreError,
  type ObjectStore,
  type SignedUrls,
  type StoredObject,
} from '../../../storage/store'

/** An object store in this process's memory; `isDown` makes it unreachable. */
export class MemoryStore implements ObjectStore {
  readonly url: string
  isDown = false
  /** Writes that are refused, as by a folder that is mounted read-only. */
  refuses: (key: string, body: string) => boolean = () => false
  /** How many writes were refused. */
  refused = 0
  readonly #objects = new Map<string, { body: Buffer; modifiedAtMs: number }>()
  /** All keys in order, so that a listing costs what it finds and not what there is. */
  readonly #keys: string[] = []
  readonly #now: () => number

  constructor(now: () => number, url = 'memory://store') {
    this.#now = now
    this.url = url
  }

  async get(key: string): Promise<Buffer | undefined> {
    this.#check(key)
    const body = this.#objects.get(key)?.body
    checkSize(key, body?.length ?? 0)
    return body
  }

  async head(key: string): Promise<StoredObject | undefined> {
    this.#check(key)
    const object = this.#objects.get(key)
    return object && { key, sizeBytes: object.body.length, modifiedAtMs: object.modifiedAtMs }
  }

  async put(key: string, body: Buffer | string): Promise<void> {
    this.#check(key)
    this.#checkWrite(key, body)
    if (!this.#objects.has(key)) this.#keys.splice(this.#indexOf(key), 0, key)
    this.#objects.set(key, { body: Buffer.from(body), modifiedAtMs: this.#now() })
  }

  async putIfAbsent(key: string, body: Buffer | string): Promise<boolean> {
    this.#check(key)
    if (this.#objects.has(key)) return false
    this.#checkWrite(key, body)
    void this.put(key, body)
    return true
  }

  async putFile(key: string, path: string): Promise<void> {
    const body = await readFile(path).catch((cause: unknown) => {
      throw new StoreError(`${path} cannot be read`, { isTransient: false, cause })
    })
    await this.put(key, body)
  }

  async getFile(key: string, path: string): Promise<boolean> {
    const body = await this.get(key)
    if (body !== undefined) await writeFile(path, body)
    return body !== undefined
  }

  async copy(fromKey: string, toKey: string): Promise<boolean> {
    const body = await this.get(fromKey)
    if (body !== undefined) await this.put(toKey, body)
    return body !== undefined
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    for (const key of this.#keysUnder(prefix)) {
      const object = await this.head(key)
      if (object !== undefined) yield object
    }
  }

  async readUrl(key: string): Promise<string> {
    const body = (await this.get(key)) ?? Buffer.alloc(0)
    return `data:application/octet-stream;base64,${body.toString('base64')}`
  }

  async signUrls(key: string, forMs: number): Promise<SignedUrls> {
    this.#check(key)
    const url = `${this.url}/${encodeURIComponent(key)}?until=${this.#now() + forMs}`
    return { read: url, write: url, delete: url }
  }

  /** What any holder of a signed URL can do: nothing, once it has expired. */
  async ask(method: 'GET' | 'PUT' | 'DELETE', signed: string, body = ''): Promise<Buffer | undefined> {
    const { pathname, searchParams } = new URL(signed)
    const key = decodeURIComponent(pathname.slice(1))
    if (this.#now() > Number(searchParams.get('until'))) return undefined
    if (method === 'GET') return this.get(key)
    await (method === 'PUT' ? this.put(key, body) : this.delete(key))
    return undefined
  }

  async listFolders(prefix: string): Promise<string[]> {
    const rests = this.#keysUnder(prefix).map((key) => key.slice(prefix.length))
    return [
      ...new Set(rests.filter((rest) => rest.includes('/')).map((rest) => rest.slice(0, rest.indexOf('/')))),
    ]
  }

  async delete(key: string): Promise<void> {
    this.#check(key)
    if (this.#objects.delete(key)) this.#keys.splice(this.#indexOf(key), 1)
  }

  #keysUnder(prefix: string): string[] {
    checkPrefix(prefix)
    this.#check()
    const begin = this.#indexOf(prefix)
    let end = begin
    while (this.#keys[end]?.startsWith(prefix)) end++
    return this.#keys.slice(begin, end).sort(compareKeys)
  }

  /** Where a key stands, or would stand. */
  #indexOf(key: string): number {
    let low = 0
    for (let high = this.#keys.length; low < high;) {
      const middle = (low + high) >>> 1
      if (this.#keys[middle]! < key) low = middle + 1
      else high = middle
    }
    return low
  }

  #checkWrite(key: string, body: Buffer | string): void {
    if (!this.refuses(key, body.toString())) return
    this.refused += 1
    throw new StoreError(`Could not write ${key}: the file system is read-only (EROFS).`, {
      isTransient: false,
      code: 'EROFS',
    })
  }

  #check(key = 'any'): void {
    checkKey(key)
    if (this.isDown) throw new StoreError('the store does not answer', { isTransient: true })
  }
}
