import { parseManifest } from '../../intake/documents'
import { listCheckpoints, readManifest } from '../../storage/checkpoints'
import { layout, manifestName } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import type { Breach } from './judge'
import type { Note } from './notes'

type Saved = Extract<Note, { event: 'saved' }>

/**
 * Which of the saves that a program has finished are in the store, whole: each of their files is in one checkpoint, by its content.
 * Paths do not count, for programs move their files.
 */
export class HeldSaves {
  readonly breaches: Breach[] = []
  /** Checkpoints that were ever there, an id with other files counting anew. */
  uploads = 0
  #newest = -1
  #goneOnFrom: number | undefined
  readonly #contents = new Map<string, ReadonlySet<string>>()

  constructor(
    private readonly store: ObjectStore,
    private readonly jobId: string,
  ) {}

  /** Looks whether anything that must stay has gone. */
  async look(notes: readonly Note[], attempt: number): Promise<void> {
    if (this.#isGone(await this.#heldSteps(notes), notes)) {
      // A listing is no instant: what comes and goes meanwhile may be in neither half of it.
      const steps = await this.#heldSteps(notes)
      const words = this.#isGone(steps, notes)
      if (words !== undefined) this.breaches.push({ kind: 'deleted', attempt, words })
      this.#newest = Math.max(-1, ...steps)
      this.#goneOnFrom = undefined
    }
  }

  #isGone(steps: ReadonlySet<number>, notes: readonly Note[]): string | undefined {
    const newest = Math.max(-1, ...steps)
    if (newest < this.#newest)
      return `the store held the save of step ${this.#newest}, and holds none newer than ${newest}`
    this.#newest = newest
    const from = this.#goneOnFrom
    const goneOnFrom = lastGoneOnFrom(notes)
    if (from !== undefined && from === goneOnFrom && !steps.has(from))
      return `the save of step ${from}, which the program went on from, is gone`
    this.#goneOnFrom = goneOnFrom !== undefined && steps.has(goneOnFrom) ? goneOnFrom : undefined
    return undefined
  }

  async #heldSteps(notes: readonly Note[]): Promise<Set<number>> {
    const contents = await this.#stored()
    const saves = notes.filter((note): note is Saved => note.event === 'saved' && note.files.length > 0)
    const held = saves.filter(({ files }) =>
      contents.some((content) => files.every((file) => content.has(file))),
    )
    return new Set(held.map(({ step }) => step))
  }

  async #stored(): Promise<ReadonlySet<string>[]> {
    const contents: ReadonlySet<string>[] = []
    for (const checkpoint of await listCheckpoints(this.store, this.jobId)) {
      const folder = layout.checkpoint(this.jobId, checkpoint.step, checkpoint.attempt)
      const head = await this.store.head(`${folder}${manifestName()}`)
      if (head === undefined) continue
      const key = `${checkpoint.id} ${head.modifiedAtMs} ${head.sizeBytes}`
      let content = this.#contents.get(key)
      if (content === undefined) {
        const manifest = await readManifest(this.store, { jobId: this.jobId, checkpoint }, parseManifest)
        if (manifest === undefined) continue
        // The files of the habits are smaller than a part, so that the digest of the only part is the file's.
        content = new Set(manifest.files.flatMap(({ parts }) => parts.map((part) => part.slice(0, 16))))
        this.#contents.set(key, content)
        this.uploads += 1
      }
      contents.push(content)
    }
    return contents
  }
}

/** The step of the newest checkpoint from which a program was seen to do a step. */
function lastGoneOnFrom(notes: readonly Note[]): number | undefined {
  const index = notes.findLastIndex(
    (note, at) =>
      note.event === 'resumed' &&
      notes.slice(at).some(({ event, attempt }) => event === 'step' && attempt === note.attempt),
  )
  const note = notes[index]
  return note?.event === 'resumed' ? note.step : undefined
}
