import type { LogLine } from '../../../core/documents'
import type { ObjectStore } from '../../../storage/store'

const CHUNK_AFTER_MS = 2_000
const CHUNKS_MAX = 32

interface Chunk {
  from: number
  to: number
  body: string
}

/** The log of one attempt: numbered lines, uploaded in chunks that are merged from time to time. */
export class RunnerLog {
  /** Lines written so far. */
  lines = 0
  #waiting: LogLine[] = []
  #chunks: Chunk[] = []

  constructor(
    readonly store: ObjectStore,
    readonly prefix: string,
  ) {}

  write(nowMs: number, s: LogLine['s'], m: string): void {
    this.#waiting.push({ n: ++this.lines, t: nowMs, s, m })
  }

  /** When the waiting lines are due. */
  get dueAtMs(): number {
    return (this.#waiting[0]?.t ?? Infinity) + CHUNK_AFTER_MS
  }

  async flush(): Promise<void> {
    const [first] = this.#waiting
    if (first === undefined) return
    const body = this.#waiting.map((line) => `${JSON.stringify(line)}\n`).join('')
    const chunk = { from: first.n, to: this.#waiting.at(-1)!.n, body }
    await this.#put(chunk)
    this.#waiting = this.#waiting.filter((line) => line.n > chunk.to)
    this.#chunks.push(chunk)
    if (this.#chunks.length >= CHUNKS_MAX) await this.#merge()
  }

  async #merge(): Promise<void> {
    const small = this.#chunks
    const body = small.map((chunk) => chunk.body).join('')
    await this.#put({ from: small[0]!.from, to: small.at(-1)!.to, body })
    this.#chunks = []
    for (const chunk of small) await this.store.delete(this.#key(chunk))
  }

  #put(chunk: Chunk): Promise<void> {
    return this.store.put(this.#key(chunk), chunk.body)
  }

  #key({ from, to }: Chunk): string {
    const digits = (n: number): string => String(n).padStart(12, '0')
    return `${this.prefix}${digits(from)}-${digits(to)}.ndjson`
  }
}
