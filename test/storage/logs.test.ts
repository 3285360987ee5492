import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { LogLine } from '../../core/documents'
import { parseLogLine } from '../../intake/documents'
import { readLines } from '../../storage/logs'
import type { ObjectStore, StoredObject } from '../../storage/store'

const FOLDER = 'jobs/job-a/attempts/1/logs/'

/**
 * A store in memory that lets the other side go on between any two of its steps, as `pause` says. `isPaged` lists as S3
 * does, looking at each moment for the next key; otherwise as a folder is read, from the names that were there at first.
 */
class SlowStore {
  readonly objects = new Map<string, string>()

  constructor(
    private readonly pause: () => Promise<void>,
    private readonly isPaged: boolean,
  ) {}

  async get(key: string): Promise<Buffer | undefined> {
    await this.pause()
    const body = this.objects.get(key)
    return body === undefined ? undefined : Buffer.from(body)
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    let names = this.keys(prefix)
    let last = ''
    while (names.length > 0) {
      const key = names.shift()!
      await this.pause()
      if (this.objects.has(key)) yield { key, sizeBytes: 1, modifiedAtMs: 0 }
      last = key
      if (this.isPaged) names = this.keys(prefix).filter((name) => name > last)
    }
  }

  private keys(prefix: string): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort()
  }

  asStore(): ObjectStore {
    return this as unknown as ObjectStore
  }
}

function line(n: number): LogLine {
  return { n, t: 1_795_500_000_000 + n, s: 'out', m: `line ${n}` }
}

function gap(n: number, lost: number): LogLine {
  return { n, t: 1_795_500_000_000 + n, s: 'gap', m: `${lost} lines lost`, lost }
}

function chunkKey(from: number, to: number): string {
  return `${FOLDER}${String(from).padStart(12, '0')}-${String(to).padStart(12, '0')}.ndjson`
}

function text(lines: LogLine[]): string {
  return lines.map((one) => `${JSON.stringify(one)}\n`).join('')
}

function storeOf(...chunks: (readonly [from: number, to: number, lines: LogLine[]])[]): SlowStore {
  const store = new SlowStore(() => Promise.resolve(), false)
  for (const [from, to, lines] of chunks) store.objects.set(chunkKey(from, to), text(lines))
  return store
}

async function read(store: SlowStore, options: { afterLine?: number; isOver: boolean }): Promise<LogLine[]> {
  const lines: LogLine[] = []
  const range = { jobId: 'job-a', attempt: 1, afterLine: 0, ...options }
  for await (const one of readLines(store.asStore(), range, parseLogLine)) lines.push(one)
  return lines
}

function lines(from: number, to: number): LogLine[] {
  return Array.from({ length: to - from + 1 }, (_, i) => line(from + i))
}

describe('readLines', () => {
  it('reads lines across chunks, and continues after a number', async () => {
    const store = storeOf([1, 3, lines(1, 3)], [4, 4, lines(4, 4)], [5, 9, lines(5, 9)])
    expect(await read(store, { isOver: false })).toEqual(lines(1, 9))
    expect(await read(store, { isOver: true, afterLine: 6 })).toEqual(lines(7, 9))
    expect(await read(store, { isOver: true, afterLine: 9 })).toEqual([])
    expect(await read(storeOf(), { isOver: true })).toEqual([])
  })

  it('takes each line once where a merge is half done', async () => {
    const store = storeOf(
      [1, 6, lines(1, 6)],
      [1, 2, lines(1, 2)],
      [3, 4, lines(3, 4)],
      [5, 6, lines(5, 6)],
      [5, 8, lines(5, 8)],
    )
    expect(await read(store, { isOver: false })).toEqual(lines(1, 8))
  })

  it('ignores objects that are not chunks', async () => {
    const store = storeOf([1, 2, lines(1, 2)])
    store.objects.set(`${FOLDER}notes.txt`, 'x')
    expect(await read(store, { isOver: true })).toEqual(lines(1, 2))
  })

  it('waits at a hole while the attempt runs, and reports it as a gap once the attempt is over', async () => {
    const store = storeOf([1, 2, lines(1, 2)], [6, 7, lines(6, 7)])
    expect(await read(store, { isOver: false })).toEqual(lines(1, 2))
    expect(await read(store, { isOver: true })).toEqual([
      ...lines(1, 2),
      { n: 5, t: line(6).t, s: 'gap', m: '3 lines lost', lost: 3 },
      ...lines(6, 7),
    ])
    store.objects.set(chunkKey(3, 5), text(lines(3, 5)))
    expect(await read(store, { isOver: false, afterLine: 2 })).toEqual(lines(3, 7))
  })

  it('reports several holes, the first line among them', async () => {
    const store = storeOf([3, 3, lines(3, 3)], [5, 5, lines(5, 5)])
    expect((await read(store, { isOver: true })).map(({ n, s, lost }) => [n, s, lost])).toEqual([
      [2, 'gap', 2],
      [3, 'out', undefined],
      [4, 'gap', 1],
      [5, 'out', undefined],
    ])
  })

  it("passes on the runner's own gaps, whichever way their chunk is named", async () => {
    const expected = [...lines(1, 2), gap(6, 4), line(7)]
    for (const from of [3, 6]) {
      const store = storeOf([1, 2, lines(1, 2)], [from, 7, [gap(6, 4), line(7)]])
      expect(await read(store, { isOver: false })).toEqual(expected)
    }
    expect(await read(storeOf([1, 7, expected]), { isOver: false })).toEqual(expected)
  })

  it('counts a line that cannot be read as lost', async () => {
    const store = storeOf()
    store.objects.set(chunkKey(1, 4), `${text(lines(1, 1))}{"n": 2, "t"\n${text(lines(3, 3))}junk\n`)
    const told = (await read(store, { isOver: false })).map(({ n, s, m }) => [n, s, m])
    expect(told).toEqual([
      [1, 'out', 'line 1'],
      [2, 'gap', '1 line lost'],
      [3, 'out', 'line 3'],
      [4, 'gap', '1 line lost'],
    ])
  })

  it('gives up with an error that may pass when chunks vanish without end', async () => {
    const store = storeOf([1, 2, lines(1, 2)])
    store.get = () => Promise.resolve(undefined)
    await expect(read(store, { isOver: true })).rejects.toMatchObject({
      name: 'StoreError',
      isTransient: true,
    })
  })

  it('has every line once and in order, however a runner merges meanwhile', async () => {
    const shape = fc.record({
      sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 40 }),
      mergeAt: fc.integer({ min: 2, max: 6 }),
      isPaged: fc.boolean(),
      /** How long each side waits at each of its steps. */
      pauses: fc.infiniteStream(fc.nat(4)),
    })
    await fc.assert(
      fc.asyncProperty(shape, async ({ sizes, mergeAt, isPaged, pauses }) => {
        const pause = async (): Promise<void> => {
          for (let i = Number(pauses.next().value); i > 0; i--) await new Promise(setImmediate)
        }
        const store = new SlowStore(pause, isPaged)
        const total = sizes.reduce((sum, size) => sum + size, 0)
        const writing = write(store, { sizes, mergeAt, pause })
        let isOver = false
        void writing.then(() => (isOver = true))
        const seen: LogLine[] = []
        for (let wasOver = false; !wasOver;) {
          wasOver = isOver
          seen.push(...(await read(store, { isOver: wasOver, afterLine: seen.at(-1)?.n ?? 0 })))
          await pause()
          await new Promise(setImmediate)
        }
        await writing
        expect(seen).toEqual(lines(1, total))
      }),
      { numRuns: 300 },
    )
  })
})

/** Writes chunks of the given numbers of lines and merges as the runner does: the large file first, then deletes. */
async function write(
  store: SlowStore,
  { sizes, mergeAt, pause }: { sizes: number[]; mergeAt: number; pause: () => Promise<void> },
): Promise<void> {
  let next = 1
  let small: { from: number; to: number }[] = []
  for (const size of sizes) {
    const chunk = { from: next, to: next + size - 1 }
    next += size
    await pause()
    store.objects.set(chunkKey(chunk.from, chunk.to), text(lines(chunk.from, chunk.to)))
    small.push(chunk)
    if (small.length < mergeAt) continue
    const merged = { from: small[0]!.from, to: chunk.to }
    await pause()
    store.objects.set(chunkKey(merged.from, merged.to), text(lines(merged.from, merged.to)))
    for (const { from, to } of small) {
      await pause()
      store.objects.delete(chunkKey(from, to))
    }
    // Merged files are merged again, so that a reader meets a large one that vanishes, too.
    small = merged.to % 2 === 0 ? [merged] : []
  }
}
