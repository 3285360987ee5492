import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import {
  byNewest,
  CHECKPOINT_STATES,
  checkpointId,
  CHECKPOINTS_KEPT,
  type CheckpointState,
  type Manifest,
  type ManifestFile,
  type Restore,
  type RestoreOutcome,
} from '../../core/job/checkpoint'
import { parseManifest, parseRestores } from '../../intake/documents'
import { checkpointFileKey, manifestKey } from '../../storage/checkpoints'
import { filesFolder, layout } from '../../storage/layout'
import { expendable, thinOutCheckpoints, type CheckpointFacts } from '../../storage/retention'
import { COMPLETE } from '../support/manifests'
import { MemoryStore } from './memory-store'

const JOB = 'job-a'
const PARSE = { manifest: parseManifest, restores: parseRestores }

function checkpoint(step: number, attempt = 1): { id: string; step: number; attempt: number } {
  return { id: checkpointId(step, attempt), step, attempt }
}

interface Saved {
  step: number
  attempt?: number
  state?: CheckpointState
  revision?: number
  /** `storedAt` by path; its own where undefined. */
  files?: Record<string, string | undefined>
}

/** Puts a checkpoint as the runner does: its own files, then the manifest. */
function save(store: MemoryStore, saved: Saved): { id: string; manifest: Manifest } {
  const { step, attempt = 1, state = 'complete', revision = 1, files = { 'model.pt': undefined } } = saved
  const at = checkpoint(step, attempt)
  const listed = Object.entries(files).map(([path, storedAt]): ManifestFile => {
    const own = revision === 1 ? undefined : `${at.id}/${filesFolder(revision)}${path}`
    const where = storedAt ?? own
    return {
      path,
      sizeBytes: 0,
      parts: [],
      digest: '0'.repeat(64),
      mode: 0o644,
      storedAt: where,
    }
  })
  for (const [index, file] of listed.entries())
    if (Object.values(files)[index] === undefined) store.put(checkpointFileKey(JOB, at, file), 'bytes')
  const manifest: Manifest = {
    version: 1,
    jobId: JOB,
    attempt,
    step,
    isStepKnown: true,
    createdAtMs: 1,
    totalBytes: 0,
    ...COMPLETE,
    state,
    revision,
    files: listed,
    resumePath: '.',
  }
  store.put(manifestKey(JOB, at, revision), JSON.stringify(manifest))
  return { id: at.id, manifest }
}

function restored(
  store: MemoryStore,
  attempt: number,
  ...list: [step: number, RestoreOutcome, by?: number][]
): void {
  const restores = list.map(([step, outcome, by = 1]): Restore => ({
    checkpoint: checkpoint(step, by),
    revision: 1,
    state: 'complete',
    why: 'newest',
    atMs: 1,
    outcome,
    message: null,
  }))
  store.put(
    layout.restores(JOB, attempt),
    JSON.stringify({ version: 1, attemptId: `${JOB}-${attempt}`, restores }),
  )
}

function thinOut(
  store: MemoryStore,
  options: { keep?: number; liveFrom?: number; protectedIds?: string[] } = {},
) {
  const { keep = 1, liveFrom = 2, protectedIds = [] } = options
  return thinOutCheckpoints(store.asStore(), JOB, {
    keep,
    protectedIds,
    parse: PARSE,
    isOver: (attempt) => attempt < liveFrom,
  })
}

/** Files that a manifest in the store refers to and that are not there. */
function missingFiles(store: MemoryStore): string[] {
  return store
    .keys(layout.checkpoints(JOB))
    .filter((key) => /\/manifest\.(\d+\.)?json$/.test(key))
    .flatMap((key) => {
      const manifest = JSON.parse(store.read(key)!) as Manifest
      const at = checkpoint(manifest.step, manifest.attempt)
      return manifest.files.map((file) => checkpointFileKey(JOB, at, file))
    })
    .filter((key) => store.read(key) === undefined)
}

const folders = (store: MemoryStore): string[] => [
  ...new Set(store.keys(layout.checkpoints(JOB)).map((key) => key.split('/')[3]!)),
]

describe('expendable', () => {
  const known = (step: number, state: CheckpointFacts['state']): CheckpointFacts => ({
    ...checkpoint(step),
    state,
  })
  const stepsToGo = (
    all: CheckpointFacts[],
    options: { keep?: number; protect?: number[]; wentOn?: number[]; failed?: number[] } = {},
  ): number[] => {
    const ids = (steps: number[] = []): string[] => steps.map((step) => checkpointId(step, 1))
    return expendable(all, {
      keep: options.keep ?? 2,
      protectedIds: ids(options.protect),
      history: { wentOn: new Set(ids(options.wentOn)), failed: new Set(ids(options.failed)) },
    }).map(({ step }) => step)
  }

  it('spares the newest complete ones, what is protected, and the newest that a program went on from', () => {
    const all = [9, 8, 7, 6, 5, 4].map((step) => known(step, 'complete'))
    expect(stepsToGo(all, { protect: [4], wentOn: [5, 6] })).toEqual([7, 5])
  })

  it('does not count a complete one after which programs only failed among those to keep', () => {
    const all = [9, 8, 7, 6].map((step) => known(step, 'complete'))
    expect(stepsToGo(all, { failed: [9] })).toEqual([6])
    expect(stepsToGo(all, { failed: [9, 8] })).toEqual([8])
  })

  it('spares newer provisional ones, and lets older ones go', () => {
    const all = [
      known(9, 'quiet'),
      known(8, 'settled'),
      known(7, 'complete'),
      known(6, 'settled'),
      known(5, 'quiet'),
    ]
    expect(stepsToGo(all)).toEqual([6, 5])
  })

  it('without a complete one spares the newest provisional ones and the newest settled one', () => {
    const all = [9, 8, 7, 6].map((step) => known(step, 'quiet'))
    expect(stepsToGo([...all, known(5, 'settled'), known(4, 'settled')])).toEqual([6, 4])
  })

  it('never lets the newest complete one go, nor the newest that a program went on from, nor all of them', () => {
    const states = fc.constantFrom(...CHECKPOINT_STATES, 'unreadable' as const)
    const all = fc
      .uniqueArray(fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 3 }), states), {
        selector: ([step, attempt]) => checkpointId(step, attempt),
        maxLength: 14,
      })
      .map((list) => list.map(([step, attempt, state]) => ({ ...checkpoint(step, attempt), state })))
    const some = fc.array(
      fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 3 })).map(([s, a]) => checkpointId(s, a)),
    )
    fc.assert(
      fc.property(
        all,
        fc.integer({ min: -1, max: 5 }),
        some,
        some,
        some,
        (list, keep, protect, wentOn, failed) => {
          const history = {
            wentOn: new Set(wentOn),
            failed: new Set(failed.filter((id) => !wentOn.includes(id))),
          }
          const gone = new Set(expendable(list, { keep, protectedIds: protect, history }).map(({ id }) => id))
          const newestFirst = [...list].sort(byNewest)
          const stay = (one: { id: string } | undefined): boolean => one === undefined || !gone.has(one.id)
          const complete = newestFirst.filter(({ state }) => state === 'complete')
          expect(stay(complete[0])).toBe(true)
          expect(
            complete
              .filter(({ id }) => !history.failed.has(id))
              .slice(0, Math.max(1, keep))
              .every(stay),
          ).toBe(true)
          expect(stay(newestFirst.find(({ id }) => history.wentOn.has(id)))).toBe(true)
          expect(list.filter(({ id }) => protect.includes(id)).every(stay)).toBe(true)
          if (complete.length === 0) expect(stay(newestFirst[0])).toBe(true)
          const most = Math.max(1, keep) + protect.length + 2 + Math.max(CHECKPOINTS_KEPT, keep) + 1
          expect(list.length - gone.size).toBeLessThanOrEqual(most)
        },
      ),
    )
  })
})

describe('thinOutCheckpoints', () => {
  it('removes only expendable checkpoints with all their files, manifests first', async () => {
    const store = new MemoryStore()
    for (const step of [1, 2, 3]) save(store, { step })
    const deleted: string[] = []
    const inner = store.asStore()
    const noting = { ...inner, delete: (key: string) => (deleted.push(key), inner.delete(key)) }
    const options = { keep: 2, protectedIds: [], isOver: () => true, parse: PARSE }
    expect(await thinOutCheckpoints(noting, JOB, options)).toEqual([checkpointId(1, 1)])
    expect(deleted).toEqual(
      ['manifest.json', 'files/model.pt'].map(
        (name) => `jobs/${JOB}/checkpoints/${checkpointId(1, 1)}/${name}`,
      ),
    )
    expect(folders(store)).toEqual([2, 3].map((step) => checkpointId(step, 1)))
    expect(missingFiles(store)).toEqual([])
  })

  it('finishes what an earlier one that was killed has begun', async () => {
    const store = new MemoryStore()
    for (const step of [1, 2]) save(store, { step })
    store.objects.delete(manifestKey(JOB, checkpoint(1), 1))
    expect(await thinOut(store)).toEqual([checkpointId(1, 1)])
    expect(folders(store)).toEqual([checkpointId(2, 1)])
  })

  it('removes leftovers of uploads only of attempts that are over', async () => {
    const store = new MemoryStore()
    save(store, { step: 1 })
    save(store, { step: 1, revision: 2 })
    store.put(`${layout.checkpoint(JOB, 1, 1)}files.3/model.pt`, 'torn')
    store.put(`${layout.checkpoint(JOB, 2, 1)}files/model.pt`, 'torn')
    store.put(`${layout.checkpoint(JOB, 3, 2)}files/model.pt`, 'under way')
    expect((await thinOut(store)).sort()).toEqual([checkpointId(1, 1), checkpointId(2, 1)])
    expect(
      store.keys(layout.checkpoints(JOB)).map((key) => key.slice(layout.checkpoints(JOB).length)),
    ).toEqual([
      `${checkpointId(1, 1)}/files.2/model.pt`,
      `${checkpointId(1, 1)}/files/model.pt`,
      `${checkpointId(1, 1)}/manifest.2.json`,
      `${checkpointId(1, 1)}/manifest.json`,
      `${checkpointId(3, 2)}/files/model.pt`,
    ])
  })

  it('spares the files of a revision that a live attempt is uploading to a checkpoint of its own', async () => {
    const store = new MemoryStore()
    save(store, { step: 1, attempt: 2 })
    const underWay = `${layout.checkpoint(JOB, 1, 2)}files.2/model.pt`
    store.put(underWay, 'under way')
    expect(await thinOut(store)).toEqual([])
    expect(store.read(underWay)).toBe('under way')
    expect(await thinOut(store, { liveFrom: 3 })).toEqual([checkpointId(1, 2)])
    expect(store.read(underWay)).toBeUndefined()
  })

  it('spares a file that a checkpoint which stays refers to, until that one goes', async () => {
    const store = new MemoryStore()
    save(store, { step: 1, files: { 'base.bin': undefined, 'model.pt': undefined } })
    const base = `${checkpointId(1, 1)}/files/base.bin`
    save(store, { step: 2, files: { 'base.bin': base, 'model.pt': undefined } })
    expect(await thinOut(store)).toEqual([checkpointId(1, 1)])
    expect(store.keys(layout.checkpoint(JOB, 1, 1))).toEqual([`${layout.checkpoints(JOB)}${base}`])
    expect(await thinOut(store)).toEqual([])
    save(store, { step: 3 })
    expect((await thinOut(store)).sort()).toEqual([checkpointId(1, 1), checkpointId(2, 1)])
    expect(folders(store)).toEqual([checkpointId(3, 1)])
  })

  it('spares what a live attempt was restored from and what it put last, however old their steps', async () => {
    const store = new MemoryStore()
    for (const step of [100, 400, 500]) save(store, { step })
    restored(store, 2, [500, 'failed'], [400, 'trying'])
    for (const step of [410, 405]) save(store, { step, attempt: 2 })
    expect(await thinOut(store)).toEqual([checkpointId(100, 1)])
    expect(await thinOut(store, { liveFrom: 3 })).toEqual([checkpointId(405, 2), checkpointId(400, 1)])
  })

  it.each<[why: string, puts: [step: number, revision: number][]]>([
    [
      'put last',
      [
        [410, 1],
        [405, 1],
        [410, 2],
      ],
    ],
    [
      'rewrote last',
      [
        [405, 1],
        [410, 1],
        [405, 2],
      ],
    ],
  ])('spares the checkpoint that a live attempt %s in addition to the newest', async (_, puts) => {
    const store = new MemoryStore()
    save(store, { step: 400 })
    for (const [step, revision] of puts) save(store, { step, revision, attempt: 2 })
    expect(await thinOut(store)).toEqual([checkpointId(400, 1)])
    expect(await thinOut(store, { liveFrom: 3 })).toEqual([checkpointId(405, 2)])
  })

  it('counts a restores.json that cannot be read as empty', async () => {
    const store = new MemoryStore()
    for (const step of [1, 2]) save(store, { step })
    store.put(layout.restores(JOB, 1), '{')
    expect(await thinOut(store)).toEqual([checkpointId(1, 1)])
  })

  it('stops at trouble with the store before it deletes anything', async () => {
    const store = new MemoryStore()
    for (const step of [1, 2, 3]) save(store, { step })
    const inner = store.asStore()
    const failing = { ...inner, get: () => Promise.reject(new Error('no answer')) }
    const options = { keep: 1, protectedIds: [], isOver: () => true, parse: PARSE }
    await expect(thinOutCheckpoints(failing, JOB, options)).rejects.toThrow('no answer')
    expect(folders(store)).toHaveLength(3)
  })
})

/** The steps of a runner during the thinning out, one at a time. */
class Runner {
  readonly #store: MemoryStore
  readonly #dice: () => number
  #steps: Generator<void>

  constructor(store: MemoryStore, dice: () => number) {
    this.#store = store
    this.#dice = dice
    this.#steps = this.#live()
  }

  step(): void {
    this.#steps.next()
  }

  *#live(): Generator<void> {
    // It may begin at any moment of the thinning out.
    for (let wait = this.#dice() % 25; wait > 0; wait--) yield
    let last = yield* this.#restore()
    for (let step = 1 + (this.#dice() % 30); ; step += 1 + (this.#dice() % 3)) {
      const at = checkpointId(step, 2)
      const files: Record<string, string | undefined> = { 'model.pt': undefined }
      for (const { path, storedAt } of last?.manifest.files ?? [])
        if (this.#dice() % 2 === 0) files[path] = storedAt ?? `${last!.id}/files/${path}`
      files[`extra-${step}`] = undefined
      for (const path of Object.keys(files).filter((name) => files[name] === undefined)) {
        this.#store.put(`${layout.checkpoints(JOB)}${at}/files/${path}`, 'bytes')
        yield
      }
      last = save(this.#store, { step, attempt: 2, files, state: CHECKPOINT_STATES[this.#dice() % 3]! })
      yield
    }
  }

  /** The note in `restores.json` comes before the manifest is read. */
  *#restore(): Generator<void, { id: string; manifest: Manifest } | undefined> {
    for (const step of [30, 20, 10]) {
      restored(this.#store, 2, [step, 'trying'])
      yield
      const text = this.#store.read(manifestKey(JOB, checkpoint(step), 1))
      if (text !== undefined && this.#dice() % 3 > 0)
        return { id: checkpointId(step, 1), manifest: JSON.parse(text) as Manifest }
      yield
    }
    return undefined
  }
}

describe('thinning out while a runner works', () => {
  it('leaves every manifest whole, whatever the order of what both do', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(1_000), { minLength: 200, maxLength: 200 }),
        fc.array(fc.nat(2), { minLength: 100, maxLength: 100 }),
        fc.integer({ min: 1, max: 3 }),
        async (rolls, turns, keep) => {
          const store = new MemoryStore()
          const own = save(store, { step: 10, files: { 'base.bin': undefined, 'model.pt': undefined } })
          const base = `${own.id}/files/base.bin`
          save(store, { step: 20, files: { 'base.bin': base, 'model.pt': undefined } })
          save(store, { step: 30, files: { 'base.bin': base, 'model.pt': undefined }, state: 'quiet' })
          save(store, { step: 30, revision: 2, files: { 'base.bin': base, 'model.pt': undefined } })
          let roll = 0
          const runner = new Runner(store, () => rolls[roll++ % rolls.length]!)
          let turn = 0
          const beside = store.asStore(() => {
            for (let times = turns[turn++ % turns.length]!; times > 0; times--) runner.step()
          })
          for (let round = 0; round < 3; round++) {
            await thinOutCheckpoints(beside, JOB, {
              keep,
              protectedIds: [],
              isOver: (attempt) => attempt < 2,
              parse: PARSE,
            })
            expect(missingFiles(store)).toEqual([])
          }
        },
      ),
      { numRuns: 40 },
    )
  })
})
