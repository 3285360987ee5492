import { ignoreBadDocument, putDocumentIfAbsent, readDocument } from './json'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** The newest jobs count: older ones used other programs, drivers and libraries. */
const KEPT_MAX = 200

/** Measurements of the deployment's newest jobs: documents below one prefix, put once and never changed, whose keys list the newest first. */
export class NewestDocuments<T> {
  /** Documents by key, for each store. */
  readonly #read = new WeakMap<ObjectStore, Map<string, T | undefined>>()
  readonly #prefix: string
  readonly #parse: (text: string) => T

  constructor(prefix: string, parse: (text: string) => T) {
    this.#prefix = prefix
    this.#parse = parse
  }

  /** Repeated calls have the same key and the same content. Deletes documents that are too old to count. */
  async put(store: ObjectStore, key: string, document: T): Promise<void> {
    await putDocumentIfAbsent(store, key, document)
    for (const key of (await this.#keys(store)).slice(KEPT_MAX)) await store.delete(key)
  }

  /** Newest first. Unreadable documents are left out. */
  async read(store: ObjectStore): Promise<T[]> {
    const keys = (await this.#keys(store)).slice(0, KEPT_MAX)
    const read = this.#read.get(store)
    const found = await eachOf(keys, async (key): Promise<[string, T | undefined]> => {
      if (read?.has(key) === true) return [key, read.get(key)]
      return [key, await readDocument(store, key, this.#parse).catch(ignoreBadDocument)]
    })
    this.#read.set(store, new Map(found))
    return found.flatMap(([, document]) => document ?? [])
  }

  async #keys(store: ObjectStore): Promise<string[]> {
    const keys: string[] = []
    for await (const { key } of store.list(this.#prefix)) keys.push(key)
    return keys
  }
}
