import { existsSync, openSync, readSync, closeSync } from 'node:fs'

/** What a program reports about itself, next to its checkpoints: `programs/witness.py`. Times are of the machine's monotonic clock. */
export type Note = { attempt: number; pid: number; atMs: number } & (
  | { event: 'started' }
  /** It has loaded a checkpoint, and goes on with this state. */
  | { event: 'resumed'; step: number; state: string }
  /** It found nothing to go on from. */
  | { event: 'fresh' }
  | { event: 'step'; step: number }
  | { event: 'saving'; step: number; state: string }
  | { event: 'save-failed'; step: number; words: string }
  /** `files` are the beginnings of the SHA-256 of those without which the save is worth nothing. */
  | { event: 'saved'; step: number; state: string; files: string[] }
  | { event: 'crashed'; words: string }
  | { event: 'finished' }
)

/** The notes of one life as they come, oldest first. */
export class Notes {
  readonly all: Note[] = []
  #offset = 0
  #rest = ''

  constructor(private readonly path: string) {}

  /** Takes up what was written since the last time. */
  read(): void {
    if (!existsSync(this.path)) return
    const file = openSync(this.path, 'r')
    try {
      const buffer = Buffer.alloc(1 << 16)
      for (;;) {
        const count = readSync(file, buffer, 0, buffer.length, this.#offset)
        if (count === 0) break
        this.#offset += count
        this.#rest += buffer.toString('latin1', 0, count)
      }
    } finally {
      closeSync(file)
    }
    const lines = this.#rest.split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) this.all.push(JSON.parse(line) as Note)
  }

  of(attempt: number): Note[] {
    return this.all.filter((note) => note.attempt === attempt)
  }
}

/** Now, by the clock of the notes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
