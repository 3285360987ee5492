import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkpointId, type Checkpoint, type Manifest } from '../../core/checkpoint'
import { parseManifest } from '../../intake/documents'
import {
  expendable,
  listCheckpoints,
  readManifest,
  surveyCheckpoints,
  thinOutCheckpoints,
  verifyCheckpoint,
} from '../../storage/checkpoints'
import { openStore } from '../../storage/open-store'
import type { ObjectStore } from '../../storage/store'
import { COMPLETE } from '../support/manifests'

interface DigestVector {
  sizeBytes: number
  fill: number
  parts: string[]
  digest: string
}
const VECTORS = JSON.parse(
  readFileSync(join(__dirname, '..', 'runner', 'golden', 'vectors', 'digests.json'), 'utf8'),
) as DigestVector[]

const JOB = 'job-a'
let root: string
let scratch: string
let store: ObjectStore

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'crucible-checkpoints-'))
  scratch = await mkdtemp(join(tmpdir(), 'crucible-scratch-'))
  store = openStore(pathToFileURL(root).href)
})
afterEach(async () => {
  await rm(root, { recursive: true, force: true })
  await rm(scratch, { recursive: true, force: true })
})

function checkpoint(step: number, attempt: number): Checkpoint {
  return { id: checkpointId(step, attempt), step, attempt }
}

function sha256(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex')
}

/** Puts a checkpoint of small files; without its manifest when `isComplete` is false. */
async function put(step: number, attempt: number, isComplete = true): Promise<Checkpoint> {
  const folder = `jobs/${JOB}/checkpoints/${checkpointId(step, attempt)}/`
  const bodies = { 'model.pt': Buffer.from(`weights ${step}`), 'deep/empty': Buffer.alloc(0) }
  for (const [path, body] of Object.entries(bodies)) await store.put(`${folder}files/${path}`, body)
  const manifest: Manifest = {
    version: 1,
    jobId: JOB,
    attempt,
    step,
    isStepKnown: true,
    ...COMPLETE,
    createdAtMs: 1,
    totalBytes: bodies['model.pt'].length,
    files: Object.entries(bodies).map(([path, body]) => {
      const parts = body.length === 0 ? [] : [sha256(body)]
      return {
        path,
        sizeBytes: body.length,
        parts,
        digest: sha256(Buffer.from(parts.join(''), 'hex')),
        mode: 0o644,
      }
    }),
    resumePath: '.',
  }
  if (isComplete) await store.put(`${folder}manifest.json`, JSON.stringify(manifest))
  return checkpoint(step, attempt)
}

async function manifestOf(at: Checkpoint): Promise<Manifest> {
  const manifest = await readManifest(store, { jobId: JOB, checkpoint: at }, parseManifest)
  expect(manifest).toBeDefined()
  return manifest!
}

async function ids(): Promise<string[]> {
  return (await listCheckpoints(store, JOB)).map(({ id }) => id)
}

describe('listCheckpoints', () => {
  it('has the complete ones, newest first: by step, then by attempt', async () => {
    for (const [step, attempt] of [
      [5, 1],
      [10, 1],
      [10, 3],
      [10, 2],
      [200, 10],
      [0, 1],
    ] as const)
      await put(step, attempt)
    await put(300, 10, false)
    await store.put(`jobs/${JOB}/checkpoints/stray/manifest.json`, '{}')
    expect(await ids()).toEqual(
      [
        [200, 10],
        [10, 3],
        [10, 2],
        [10, 1],
        [5, 1],
        [0, 1],
      ].map(([step, attempt]) => checkpointId(step!, attempt!)),
    )
    expect((await surveyCheckpoints(store, JOB)).partial).toEqual([checkpoint(300, 10)])
    expect(await listCheckpoints(store, 'job-none')).toEqual([])
  })
})

describe('readManifest', () => {
  it('believes no manifest whose digest says that it is damaged', async () => {
    const golden = readFileSync(join(__dirname, '..', 'runner', 'golden', 'manifest-full.json'), 'utf8')
    const at = { jobId: JOB, checkpoint: checkpoint(120, 2) }
    const key = `jobs/${JOB}/checkpoints/${at.checkpoint.id}/manifest.json`
    await store.put(key, golden)
    expect((await readManifest(store, at, parseManifest))?.resumePath).toBe('checkpoint-120')
    await store.put(key, golden.replace('"resumePath": "checkpoint-120"', '"resumePath": "checkpoint-121"'))
    await expect(readManifest(store, at, parseManifest)).rejects.toThrow(
      /manifest\.json cannot be read: it is damaged/,
    )
  })

  it('is undefined where there is none, and refuses one that is broken', async () => {
    const at = await put(5, 1)
    expect((await manifestOf(at)).step).toBe(5)
    expect(
      await readManifest(store, { jobId: JOB, checkpoint: checkpoint(6, 1) }, parseManifest),
    ).toBeUndefined()
    await store.put(`jobs/${JOB}/checkpoints/${at.id}/manifest.json`, '{"version": 2}')
    await expect(readManifest(store, { jobId: JOB, checkpoint: at }, parseManifest)).rejects.toThrow(
      /manifest\.json cannot be read: .*version/,
    )
  })
})

describe('verifyCheckpoint', () => {
  it('finds nothing wrong with what the runner would upload, whatever the size', async () => {
    const at = checkpoint(7, 1)
    const folder = `jobs/${JOB}/checkpoints/${at.id}/files/`
    const files = VECTORS.map(({ sizeBytes, parts, digest }, i) => ({
      path: `file-${i}`,
      sizeBytes,
      parts,
      digest,
      mode: 0o644,
    }))
    for (const [i, { sizeBytes, fill }] of VECTORS.entries())
      await store.put(`${folder}file-${i}`, Buffer.alloc(sizeBytes, fill))
    const manifest: Manifest = {
      version: 1,
      jobId: JOB,
      attempt: 1,
      step: 7,
      isStepKnown: true,
      ...COMPLETE,
      createdAtMs: 1,
      totalBytes: 0,
      files,
      resumePath: '.',
    }
    expect(await verifyCheckpoint(store, { jobId: JOB, checkpoint: at, manifest }, scratch)).toEqual([])
    // One byte in the second part of a file of three.
    const body = Buffer.alloc(50331648, 1)
    body[20_000_000] = 2
    await store.put(`${folder}file-4`, body)
    expect(await verifyCheckpoint(store, { jobId: JOB, checkpoint: at, manifest }, scratch)).toEqual([
      { path: 'file-4', reason: 'differs in part 2 of 3' },
    ])
    expect(await readdir(scratch)).toEqual([])
  })

  it('names every file that is wrong, and how', async () => {
    const at = await put(5, 1)
    const manifest = await manifestOf(at)
    const [model, empty] = manifest.files
    const folder = `jobs/${JOB}/checkpoints/${at.id}/files/`
    await store.put(`${folder}model.pt`, 'weights 6')
    await store.delete(`${folder}deep/empty`)
    const odd: Manifest = {
      ...manifest,
      files: [
        model!,
        empty!,
        { ...model!, path: 'short' },
        { ...model!, path: 'digest', parts: [sha256(Buffer.from('weights 6'))], digest: '0'.repeat(64) },
        { ...model!, path: '../../escape' },
      ],
    }
    await store.put(`${folder}short`, 'weights')
    await store.put(`${folder}digest`, 'weights 6')
    expect(await verifyCheckpoint(store, { jobId: JOB, checkpoint: at, manifest: odd }, scratch)).toEqual([
      { path: 'model.pt', reason: 'differs in part 1 of 1' },
      { path: 'deep/empty', reason: 'is missing' },
      { path: 'short', reason: 'has 7 bytes instead of 9' },
      { path: 'digest', reason: 'has parts that do not make up its digest' },
      { path: '../../escape', reason: 'has a path that no checkpoint may have' },
    ])
  })

  it('does not take the manifest of another checkpoint', async () => {
    const manifest = await manifestOf(await put(5, 1))
    for (const other of [{ step: 6 }, { attempt: 2 }, { jobId: 'job-b' }]) {
      const at = { jobId: JOB, checkpoint: checkpoint(5, 1), manifest: { ...manifest, ...other } }
      expect(await verifyCheckpoint(store, at, scratch)).toEqual([
        { path: 'manifest.json', reason: 'belongs to another checkpoint' },
      ])
    }
  })
})

describe('expendable', () => {
  it('keeps the newest, what is protected, and the newest that is known to be good', () => {
    const complete = [9, 8, 7, 6, 5, 4].map((step) => checkpoint(step, 1))
    const retention = {
      keep: 2,
      protectedIds: [checkpointId(4, 1)],
      goodIds: [checkpointId(5, 1), checkpointId(6, 1)],
    }
    expect(expendable(complete, retention).map(({ step }) => step)).toEqual([7, 5])
  })

  it('never leaves a job with nothing, whatever it is asked', () => {
    const complete = fc
      .uniqueArray(fc.nat(50), { maxLength: 12 })
      .map((steps) => steps.sort((a, b) => b - a).map((step) => checkpoint(step, 1)))
    const some = fc.array(fc.nat(50).map((step) => checkpointId(step, 1)))
    fc.assert(
      fc.property(
        complete,
        fc.record({ keep: fc.integer({ min: -1, max: 5 }), protectedIds: some, goodIds: some }),
        (all, retention) => {
          const { keep, protectedIds, goodIds } = retention
          const gone = new Set(expendable(all, retention).map(({ id }) => id))
          const kept = all.filter(({ id }) => !gone.has(id))
          expect(kept.slice(0, Math.max(1, keep))).toEqual(all.slice(0, Math.max(1, keep)))
          expect(kept.filter(({ id }) => protectedIds.includes(id))).toEqual(
            all.filter(({ id }) => protectedIds.includes(id)),
          )
          const newestGood = all.find(({ id }) => goodIds.includes(id))
          if (newestGood !== undefined) expect(kept).toContain(newestGood)
          expect(kept.length).toBeLessThanOrEqual(Math.max(1, keep) + protectedIds.length + 1)
        },
      ),
    )
  })
})

describe('thinOutCheckpoints', () => {
  const nothing = { protectedIds: [], goodIds: [], isOver: () => true }

  it('removes what is expendable with all its files, and nothing else', async () => {
    for (const step of [1, 2, 3, 4]) await put(step, 1)
    const gone = await thinOutCheckpoints(store, JOB, {
      ...nothing,
      keep: 2,
      protectedIds: [checkpointId(1, 1)],
    })
    expect(gone).toEqual([checkpointId(2, 1)])
    expect(await ids()).toEqual([4, 3, 1].map((step) => checkpointId(step, 1)))
    expect(await store.listFolders(`jobs/${JOB}/checkpoints/`)).toEqual(
      [1, 3, 4].map((step) => checkpointId(step, 1)),
    )
    for (const step of [1, 3, 4]) {
      const at = checkpoint(step, 1)
      expect(
        await verifyCheckpoint(
          store,
          { jobId: JOB, checkpoint: at, manifest: await manifestOf(at) },
          scratch,
        ),
      ).toEqual([])
    }
  })

  it('removes leftovers of uploads only of attempts that are over', async () => {
    await put(1, 1)
    await put(2, 1, false)
    await put(3, 2, false)
    expect(
      await thinOutCheckpoints(store, JOB, { ...nothing, keep: 5, isOver: (attempt) => attempt === 1 }),
    ).toEqual([checkpointId(2, 1)])
    expect(await surveyCheckpoints(store, JOB)).toEqual({
      complete: [checkpoint(1, 1)],
      partial: [checkpoint(3, 2)],
    })
  })

  it('takes the manifest first, so that one that was interrupted leaves no half checkpoint', async () => {
    await put(1, 1)
    await put(2, 1)
    const deleted: string[] = []
    const reallyDelete = store.delete.bind(store)
    jest.spyOn(store, 'delete').mockImplementation(async (key) => {
      deleted.push(key)
      if (deleted.length === 2) throw new Error('killed')
      await reallyDelete(key)
    })
    await expect(thinOutCheckpoints(store, JOB, { ...nothing, keep: 1 })).rejects.toThrow('killed')
    jest.restoreAllMocks()
    expect(deleted[0]).toBe(`jobs/${JOB}/checkpoints/${checkpointId(1, 1)}/manifest.json`)
    expect(await ids()).toEqual([checkpointId(2, 1)])
    expect(await thinOutCheckpoints(store, JOB, { ...nothing, keep: 1 })).toEqual([checkpointId(1, 1)])
    expect(await store.listFolders(`jobs/${JOB}/checkpoints/`)).toEqual([checkpointId(2, 1)])
  })
})
