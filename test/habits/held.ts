import type { Manifest } from '../../core/job/checkpoint'
import { layout, parseManifestName } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import type { Breach } from './judge'
import type { Note } from './notes'

/** Looking takes no more than one part in so many of the time. */
const LOOK_SHARE = 10

type Saved = Extract<Note, { event: 'saved' }>

/**
 * Which of the saves that a program has finished are in the store, whole: each of their files is in one checkpoint, by its content.
 * Paths do not count, for programs move their files.
 */
export class HeldSaves {
  readonly breaches: Breach[] = []
  /** Manifests that were ever there. */
  uploads = 0
  #newest = -1
  #goneOnFrom: number | undefined
  #mayLookAtMs = 0
  readonly #manifests = new Map<string, Manifest['files']>()

  constructor(
    private readonly store: ObjectStore,
    private readonly jobId: string,
  ) {}

  /** Looks whether anything that must stay has gone, unless it has looked a moment ago. */
  async look(notes: readonly Note[], attempt: number): Promise<void> {
    const beganMs = performance.now()
    if (beganMs < this.#mayLookAtMs) return
    await this.lookAgain(notes, attempt)
    // Thousands of files take their time: the rest is for the lives that run at the same time.
    const tookMs = performance.now() - beganMs
    this.#mayLookAtMs = performance.now() + LOOK_SHARE * tookMs
  }

  async lookAgain(notes: readonly Note[], attempt: number): Promise<void> {
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

  /** The digests of the files of each checkpoint that could be restored: the files of its newest manifest are there. */
  async #stored(): Promise<ReadonlySet<string>[]> {
    const root = layout.checkpoints(this.jobId)
    const sizes = new Map<string, number>()
    const newest = new Map<string, { key: string; revision: number; modifiedAtMs: number }>()
    for await (const { key, sizeBytes, modifiedAtMs } of this.store.list(root)) {
      const [id = '', name = '', ...deeper] = key.slice(root.length).split('/')
      sizes.set(key.slice(root.length), sizeBytes)
      const revision = deeper.length === 0 ? parseManifestName(name) : undefined
      if (revision !== undefined && revision > (newest.get(id)?.revision ?? 0))
        newest.set(id, { key, revision, modifiedAtMs })
    }
    const contents: ReadonlySet<string>[] = []
    for (const [id, { key, modifiedAtMs }] of newest) {
      const files = await this.#filesOf(key, modifiedAtMs)
      const isThere = files.every(
        ({ path, storedAt, sizeBytes }) => sizes.get(storedAt ?? `${id}/files/${path}`) === sizeBytes,
      )
      // The files of the habits are smaller than a part, so that the digest of the only part is the file's.
      if (isThere)
        contents.push(new Set(files.flatMap(({ parts }) => parts.map((part) => part.slice(0, 16)))))
    }
    return contents
  }

  async #filesOf(key: string, modifiedAtMs: number): Promise<Manifest['files']> {
    const name = `${key} ${modifiedAtMs}`
    const known = this.#manifests.get(name)
    if (known !== undefined) return known
    const body = await this.store.get(key)
    // It was deleted since it was listed.
    if (body === undefined) return []
    const { files } = JSON.parse(body.toString()) as Manifest
    this.#manifests.set(name, files)
    this.uploads += 1
    return files
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
