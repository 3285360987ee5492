import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ObjectStore, StoredObject } from '../../storage/store'
import { StoreError } from '../../storage/store'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'

/** Opens the same store each time it is called, as another process would. */
export type OpenStore = () => ObjectStore

async function readFrom(url: string): Promise<string> {
  return (await fetch(url)).text()
}

/** What a holder of a signed URL gets: the object; undefined if it does not exist. */
export type AskSigned = (
  method: 'GET' | 'PUT' | 'DELETE',
  url: string,
  body?: string,
) => Promise<Buffer | undefined>

const askByUrl: AskSigned = async (method, url, body) => {
  if (url.startsWith('file:')) {
    if (method === 'PUT') await writeFile(new URL(url), body!)
    if (method === 'DELETE') await rm(new URL(url), { force: true })
    return method === 'GET' ? readFile(new URL(url)).catch(() => undefined) : undefined
  }
  const answer = await fetch(url, { method, body })
  expect([200, 204, 404]).toContain(answer.status)
  return answer.ok ? Buffer.from(await answer.arrayBuffer()) : undefined
}

/** One test per promise of `storage/store.ts`; every store passes it. `open` is called after the tests have begun. */
export function testStoreContract(name: string, open: OpenStore, ask: AskSigned = askByUrl): void {
  describe(`${name} keeps the promises of an object store`, () => {
    let store: ObjectStore
    let directory: string
    /** Tests share the store; each has a prefix of its own. */
    let prefix: string

    beforeAll(async () => {
      store = open()
      directory = await mkdtemp(join(tmpdir(), 'crucible-store-'))
    })
    afterAll(() => rm(directory, { recursive: true, force: true }))

    const fresh = (): string => (prefix = `contract/${randomUUID()}/`)
    const text = async (key: string): Promise<string | undefined> => (await store.get(key))?.toString('utf8')
    const keysUnder = async (under: string): Promise<string[]> => {
      const keys: string[] = []
      for await (const object of store.list(under)) keys.push(object.key)
      return keys
    }

    it('gets what was put, whole, whatever the bytes', async () => {
      const key = `${fresh()}bytes`
      const body = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7) % 256))
      await store.put(key, body)
      expect((await store.get(key))?.equals(body)).toBe(true)
      await store.put(key, 'ünïcode ✓')
      expect(await text(key)).toBe('ünïcode ✓')
      await store.put(key, '')
      expect(await text(key)).toBe('')
    })

    it('says undefined of an object that is not there, also under one that is', async () => {
      fresh()
      expect(await store.get(`${prefix}none`)).toBeUndefined()
      expect(await store.head(`${prefix}none`)).toBeUndefined()
      await store.put(`${prefix}folder/object`, 'x')
      expect(await store.get(`${prefix}folder`)).toBeUndefined()
      expect(await store.head(`${prefix}folder`)).toBeUndefined()
      expect(await store.get(`${prefix}folder/object/deeper`)).toBeUndefined()
      expect(await store.getFile(`${prefix}folder`, join(directory, 'none'))).toBe(false)
    })

    it('copies an object to another key, and says of one that is not there that it has not', async () => {
      const [from, to] = [`${fresh()}a key with ünïcode & +signs`, `${prefix}deep/copy`]
      const body = Buffer.from(Array.from({ length: 50_000 }, (_, i) => (i * 11) % 256))
      await store.put(from, body)
      await store.put(to, 'what was there before')
      expect(await store.copy(from, to)).toBe(true)
      expect((await store.get(to))?.equals(body)).toBe(true)
      await store.delete(from)
      expect((await store.get(to))?.equals(body)).toBe(true)
      expect(await store.copy(from, `${prefix}none`)).toBe(false)
      expect(await store.head(`${prefix}none`)).toBeUndefined()
    })

    it('tells size and age without the content', async () => {
      const key = `${fresh()}sized`
      const beforeMs = Date.now()
      await store.put(key, 'ü')
      const object = await store.head(key)
      expect(object).toEqual({ key, sizeBytes: 2, modifiedAtMs: expect.any(Number) })
      // Stores round to the second and have a clock of their own.
      expect(Math.abs((object?.modifiedAtMs ?? 0) - beforeMs)).toBeLessThan(patient(30_000))
    })

    it('shows a reader the old object or the new, never a part', async () => {
      const key = `${fresh()}swap`
      const bodies = ['a', 'b'].map((letter) => letter.repeat(300_000))
      await store.put(key, bodies[0]!)
      let isOver = false
      const writing = (async () => {
        for (let i = 0; i < 40; i++) await store.put(key, bodies[i % 2]!)
        isOver = true
      })()
      const other = open()
      let reads = 0
      while (!isOver) {
        const seen = (await other.get(key))?.toString()
        expect(bodies).toContain(seen)
        reads++
      }
      await writing
      expect(reads).toBeGreaterThan(0)
    })

    it('puts if absent: true once, then false with nothing changed', async () => {
      const key = `${fresh()}once`
      expect(await store.putIfAbsent(key, 'first')).toBe(true)
      expect(await store.putIfAbsent(key, 'second')).toBe(false)
      expect(await text(key)).toBe('first')
      await store.delete(key)
      expect(await store.putIfAbsent(key, 'third')).toBe(true)
    })

    it('lets exactly one of many concurrent puts-if-absent win, and shows it whole', async () => {
      const key = `${fresh()}race`
      const stores = [store, open(), open()]
      const bodies = Array.from({ length: 24 }, (_, i) => `${i}:`.repeat(20_000))
      const wins = await Promise.all(bodies.map((body, i) => stores[i % 3]!.putIfAbsent(key, body)))
      expect(wins.filter(Boolean)).toHaveLength(1)
      expect(await text(key)).toBe(bodies[wins.indexOf(true)])
    })

    it('lets another process read what was written, at once', async () => {
      const key = `${fresh()}shared`
      await store.put(key, 'now')
      expect((await open().get(key))?.toString()).toBe('now')
      await open().delete(key)
      expect(await store.get(key)).toBeUndefined()
      expect(await keysUnder(prefix)).toEqual([])
    })

    it('uploads and downloads files', async () => {
      const key = `${fresh()}file`
      const from = join(directory, 'from')
      const to = join(directory, 'to')
      const body = createHash('sha256').update('seed').digest().toString('hex').repeat(50_000)
      await writeFile(from, body)
      await store.put(key, 'replaced')
      await store.putFile(key, from)
      await writeFile(from, 'changed afterwards')
      expect((await store.head(key))?.sizeBytes).toBe(body.length)
      await writeFile(to, 'overwritten')
      expect(await store.getFile(key, to)).toBe(true)
      expect(await readFile(to, 'utf8')).toBe(body)
    })

    it('names a URL under which anyone who has it can read an object', async () => {
      const key = `${fresh()}with space+plus`
      await store.put(key, 'for all')
      const url = await store.readUrl(key, 60_000)
      const body = url.startsWith('file:') ? await readFile(new URL(url), 'utf8') : await readFrom(url)
      expect(body).toBe('for all')
    })

    it('signs URLs under which anyone who has them can read, write and delete one object, and no other', async () => {
      const key = `${fresh()}with space+plus`
      const urls = await store.signUrls(key, 60_000)
      expect(await ask('GET', urls.read)).toBeUndefined()
      await store.put(key, 'for one')
      await store.put(`${key}2`, 'for another')
      expect((await ask('GET', urls.read))?.toString()).toBe('for one')
      await ask('PUT', urls.write, 'instead')
      expect((await store.get(key))?.toString()).toBe('instead')
      await ask('DELETE', urls.delete)
      await ask('DELETE', urls.delete)
      expect(await store.get(key)).toBeUndefined()
      expect((await store.get(`${key}2`))?.toString()).toBe('for another')
    })

    it('leaves no file behind when there is nothing to download, and says which file it cannot upload', async () => {
      fresh()
      const empty = await mkdtemp(join(directory, 'empty-'))
      expect(await store.getFile(`${prefix}none`, join(empty, 'to'))).toBe(false)
      expect(await readdir(empty)).toEqual([])
      const missing = join(empty, 'missing')
      await expect(store.putFile(`${prefix}x`, missing)).rejects.toThrow(missing)
      expect(await store.head(`${prefix}x`)).toBeUndefined()
    })

    it('lists the objects under a prefix in the order of their keys', async () => {
      fresh()
      const names = ['b', 'a/2', 'a/10', 'a.txt', 'a-b', 'a/1/x', 'Z0', 'ü', 'z', '~', '\u{1F600}', '\uFFFD']
      for (const name of names) await store.put(prefix + name, name)
      const sorted = names
        .map((name) => prefix + name)
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      const objects: StoredObject[] = []
      for await (const object of store.list(prefix)) objects.push(object)
      expect(objects.map((object) => object.key)).toEqual(sorted)
      expect(objects.map((object) => object.sizeBytes)).toEqual(
        sorted.map((key) => Buffer.byteLength(key.slice(prefix.length))),
      )
      expect(await keysUnder(`${prefix}a`)).toEqual(sorted.filter((key) => key.startsWith(`${prefix}a`)))
      expect(await keysUnder(`${prefix}a/1`)).toEqual([`${prefix}a/1/x`, `${prefix}a/10`])
      expect(await keysUnder(`${prefix}none/`)).toEqual([])
    })

    it('keeps listing when objects vanish meanwhile', async () => {
      fresh()
      for (let i = 0; i < 30; i++) await store.put(`${prefix}${String(i).padStart(2, '0')}/x`, '')
      const seen: string[] = []
      for await (const object of store.list(prefix)) {
        seen.push(object.key)
        if (seen.length === 1) {
          await Promise.all(
            Array.from({ length: 29 }, (_, i) => store.delete(`${prefix}${String(i).padStart(2, '0')}/x`)),
          )
        }
      }
      expect(seen[0]).toBe(`${prefix}00/x`)
      expect(seen.at(-1)).toBe(`${prefix}29/x`)
    })

    it('names the folders directly under a prefix that have something under them', async () => {
      fresh()
      for (const name of ['b/1', 'a/deep/er', 'a-b/1', 'file', 'gone/1']) await store.put(prefix + name, '')
      await store.delete(`${prefix}gone/1`)
      expect(await store.listFolders(prefix)).toEqual(['a-b', 'a', 'b'])
      expect(await store.listFolders(`${prefix}a/`)).toEqual(['deep'])
      expect(await store.listFolders(`${prefix}none/`)).toEqual([])
    })

    it('deletes; absent is success', async () => {
      const key = `${fresh()}x/y`
      await store.put(key, '')
      await store.delete(key)
      await store.delete(key)
      await store.delete(`${prefix}x`)
      expect(await store.get(key)).toBeUndefined()
    })

    it('keeps puts and deletes of neighbours apart', async () => {
      fresh()
      const [churns] = chosen([100], [20]) as [number]
      const churn = async (own: ObjectStore, name: string): Promise<void> => {
        for (let i = 0; i < churns; i++) {
          await own.put(`${prefix}shared/deep/${name}`, String(i))
          expect((await own.get(`${prefix}shared/deep/${name}`))?.toString()).toBe(String(i))
          await own.delete(`${prefix}shared/deep/${name}`)
        }
      }
      await Promise.all(['a', 'b', 'c', 'd'].map((name) => churn(open(), name)))
      expect(await keysUnder(prefix)).toEqual([])
    })

    it.each([
      ['empty', ''],
      ['absolute', '/a'],
      ['with an empty segment', 'a//b'],
      ['with an empty end', 'a/'],
      ['that climbs', '../a'],
      ['that climbs inside', 'a/../b'],
      ['that climbs at its end', 'a/..'],
      ['with a dot', './a'],
      ['with a dot inside', 'a/./b'],
      ['with a NUL', 'a\0b'],
      ['of more than 1024 bytes', 'x'.repeat(1025)],
    ])('refuses a key %s, with an error that says so', async (_, key) => {
      const refusals = [
        store.get(key),
        store.head(key),
        store.put(key, ''),
        store.putIfAbsent(key, ''),
        store.putFile(key, __filename),
        store.getFile(key, join(directory, 'escaped')),
        store.delete(key),
      ]
      for (const refusal of await Promise.allSettled(refusals)) {
        const reason: unknown = refusal.status === 'rejected' ? refusal.reason : undefined
        expect(reason).toBeInstanceOf(StoreError)
        expect(reason).toMatchObject({ isTransient: false, code: 'BAD_KEY' })
      }
    })

    it.each(['/', '../', 'a/../', 'a//'])('refuses the prefix %j', async (bad) => {
      await expect(store.listFolders(bad)).rejects.toMatchObject({ code: 'BAD_KEY' })
      await expect(keysUnder(bad)).rejects.toMatchObject({ code: 'BAD_KEY' })
    })

    it('tells another process how to open it', () => {
      expect(store.url).toBe(open().url)
      expect(URL.canParse(store.url)).toBe(true)
    })
  })
}
