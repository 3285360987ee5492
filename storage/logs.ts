import type { LogLine } from '../core/documents'
import { isUnreadable, type Parse } from './json'
import { layout } from './layout'
import { StoreError, type ObjectStore } from './store'

/** A file of log lines with their numbers in its name. */
interface Chunk {
  key: string
  from: number
  to: number
}

/** The lines to read. */
export interface LogRange {
  jobId: string
  attempt: number
  /** Number of the last line already read; 0 to read all. */
  afterLine: number
  /** Whether the attempt writes no more. Only then is a gap a loss; otherwise its lines may still arrive. */
  isOver: boolean
}

/**
 * Maximum number of consecutive listings whose chunks vanish before they are read. The runner merges 32 chunks into one, so a reader loses
 * this race a few times at most.
 */
const LOOKS_MAX = 20

/**
 * Yields the lines of an attempt after a number, each once and in order, as far as they have arrived; to follow the log, the caller calls
 * again with the last number. Correct while the runner merges chunks. One line with `s: 'gap'` reports lost lines; its number is that of
 * the last of them.
 */
export async function* readLines(
  store: ObjectStore,
  range: LogRange,
  parse: Parse<LogLine>,
): AsyncGenerator<LogLine> {
  let next = range.afterLine + 1
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const chunks = await listChunks(store, range, next)
    let chunk = takeChunk(chunks, next)
    while (chunk !== undefined) {
      const lines = await readChunk(store, chunk, parse)
      // The runner merged and deleted the chunk meanwhile. It wrote the merged file first, so another listing finds that.
      if (lines === undefined) break
      // A listing during a merge may have missed small chunks and the merged one alike.
      if (startOf(lines, chunk) > next && !range.isOver) return
      yield* withoutHoles(lines, next, chunk.to)
      next = chunk.to + 1
      looks = 0
      chunk = takeChunk(chunks, next)
    }
    if (chunk === undefined) return
  }
  throw new StoreError(
    `The log under ${layout.logs(range.jobId, range.attempt)} changes faster than it can be read.`,
    {
      isTransient: true,
    },
  )
}

/** Returns the chunks that have lines from `next` on, last first. */
async function listChunks(store: ObjectStore, range: LogRange, next: number): Promise<Chunk[]> {
  const chunks: Chunk[] = []
  for await (const { key } of store.list(layout.logs(range.jobId, range.attempt))) {
    const name = /\/(\d+)-(\d+)\.ndjson$/.exec(key)
    if (name === null) continue
    const chunk = { key, from: Number(name[1]), to: Number(name[2]) }
    if (chunk.to >= next) chunks.push(chunk)
  }
  return chunks.reverse()
}

/** Takes the chunk that has line `next` and extends furthest; without one, the first one after it. */
function takeChunk(chunks: Chunk[], next: number): Chunk | undefined {
  let farthest: Chunk | undefined
  for (let chunk = chunks.at(-1); chunk !== undefined; chunk = chunks.at(-1)) {
    const isAfter = chunk.from > next
    if (isAfter && farthest !== undefined && farthest.to >= next) return farthest
    chunks.pop()
    if (farthest === undefined || chunk.to > farthest.to) farthest = chunk
    if (isAfter) return farthest
  }
  return farthest !== undefined && farthest.to >= next ? farthest : undefined
}

/** Returns the readable lines of a chunk, or `undefined` when it is gone. */
async function readChunk(
  store: ObjectStore,
  chunk: Chunk,
  parse: Parse<LogLine>,
): Promise<LogLine[] | undefined> {
  const body = await store.get(chunk.key).catch((error: unknown) => {
    // The lines of a refused chunk are lost lines.
    if (isUnreadable(error)) return Buffer.alloc(0)
    throw error
  })
  return body
    ?.toString('utf8')
    .split('\n')
    .flatMap((text) => {
      try {
        return text === '' ? [] : [parse(text)]
      } catch {
        // A damaged line is a lost line: it becomes a gap.
        return []
      }
    })
}

/** Returns the first number that a chunk accounts for: a gap at its beginning accounts for the lines lost before. */
function startOf(lines: LogLine[], chunk: Chunk): number {
  const first = lines[0]
  return first?.s === 'gap' ? Math.min(chunk.from, first.n - (first.lost ?? 1) + 1) : chunk.from
}

function* withoutHoles(lines: LogLine[], from: number, to: number): Generator<LogLine> {
  let next = from
  for (const line of lines) {
    if (line.n < next) continue
    const start = line.s === 'gap' ? line.n - (line.lost ?? 1) + 1 : line.n
    if (start > next) yield gap(next, start - 1, line.t)
    yield line
    next = line.n + 1
  }
  if (next <= to) yield gap(next, to, lines.at(-1)?.t ?? 0)
}

function gap(from: number, to: number, t: number): LogLine {
  const lost = to - from + 1
  return { n: to, t, s: 'gap', m: `${lost} ${lost === 1 ? 'line' : 'lines'} lost`, lost }
}
