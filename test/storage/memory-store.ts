import type { ObjectStore } from '../../storage/store'

/** The part of a store that thinning out needs, in memory, with a clock that ticks with every put. */
export class MemoryStore {
  readonly objects = new Map<string, { body: string; putAtMs: number }>()
  #nowMs = 0

  put(key: string, body: string): void {
    this.objects.set(key, { body, putAtMs: ++this.#nowMs })
  }

  read(key: string): string | undefined {
    return this.objects.get(key)?.body
  }

  keys(prefix: string): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort()
  }

  /** The same as a store; `beforeEach` runs before every request: what others do meanwhile. */
  asStore(beforeEach: () => void = () => undefined): ObjectStore {
    const { objects, keys, put } = {
      objects: this.objects,
      keys: this.keys.bind(this),
      put: this.put.bind(this),
    }
    const store: Partial<ObjectStore> = {
      get: async (key) => {
        beforeEach()
        const found = objects.get(key)
        return found === undefined ? undefined : Buffer.from(found.body)
      },
      putIfAbsent: async (key, body) => {
        beforeEach()
        if (objects.has(key)) return false
        put(key, body.toString())
        return true
      },
      async *list(prefix) {
        beforeEach()
        for (const key of keys(prefix))
          yield { key, sizeBytes: 1, modifiedAtMs: objects.get(key)?.putAtMs ?? 0 }
      },
      listFolders: async (prefix) => {
        beforeEach()
        const rests = keys(prefix).map((key) => key.slice(prefix.length))
        return [...new Set(rests.filter((rest) => rest.includes('/')).map((rest) => rest.split('/')[0]!))]
      },
      delete: async (key) => {
        beforeEach()
        objects.delete(key)
      },
    }
    return store as ObjectStore
  }
}
