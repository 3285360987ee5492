import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkpointId, type Checkpoint, type Manifest } from '../../core/job/checkpoint'
import { parseManifest, parseRestores } from '../../intake/documents'
import {
  goodCheckpoints,
  listCheckpoints,
  newestGoodCheckpoint,
  readManifest,
  surveyCheckpoints,
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

  it('asks again only for what is not known to exist, and forgets what is gone', async () => {
    await put(5, 1)
    await put(10, 1, false)
    const known = new Set<string>()
    const again = async (): Promise<number[]> =>
      (await listCheckpoints(store, JOB, known)).map(({ step }) => step)
    expect(await again()).toEqual([5])
    const asked = jest.spyOn(store, 'list')
    await put(10, 1)
    expect(await again()).toEqual([10, 5])
    expect(asked.mock.calls).toEqual([[`jobs/${JOB}/checkpoints/${checkpointId(10, 1)}/manifest.`]])
    for await (const { key } of store.list(`jobs/${JOB}/checkpoints/${checkpointId(5, 1)}/`))
      await store.delete(key)
    expect(await again()).toEqual([10])
  })
})

describe('readManifest', () => {
  it('rejects a manifest whose digest does not match', async () => {
    const golden = readFileSync(join(__dirname, '..', 'runner', 'golden', 'manifest-full.json'), 'utf8')
    const at = { jobId: JOB, checkpoint: checkpoint(120, 2) }
    const key = `jobs/${JOB}/checkpoints/${at.checkpoint.id}/manifest.2.json`
    await store.put(key, golden)
    expect((await readManifest(store, at, parseManifest))?.resumePath).toBe('checkpoint-120')
    await store.put(key, golden.replace('"resumePath": "checkpoint-120"', '"resumePath": "checkpoint-121"'))
    await expect(readManifest(store, at, parseManifest)).rejects.toThrow(
      /manifest\.2\.json cannot be read: it is damaged/,
    )
  })

  it('answers the highest revision that can be read', async () => {
    const at = await put(5, 1)
    const first = await manifestOf(at)
    const folder = `jobs/${JOB}/checkpoints/${at.id}/`
    const state = 'quiet' as const
    for (const revision of [2, 10])
      await store.put(`${folder}manifest.${revision}.json`, JSON.stringify({ ...first, state, revision }))
    expect((await manifestOf(at)).revision).toBe(10)
    await store.put(`${folder}manifest.10.json`, JSON.stringify({ ...first, revision: 9 }))
    expect((await manifestOf(at)).revision).toBe(2)
    await store.put(`${folder}manifest.2.json`, '{')
    expect(await manifestOf(at)).toEqual(first)
  })

  it('is undefined without a manifest, and refuses a broken one', async () => {
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
      { path: '../../escape', reason: 'has an invalid path' },
    ])
  })

  it('follows a file to the checkpoint that has its bytes', async () => {
    const old = await put(4, 1)
    const at = await put(5, 1)
    const manifest = await manifestOf(at)
    const [model, empty] = (await manifestOf(old)).files
    const shared: Manifest = {
      ...manifest,
      files: [{ ...model!, path: 'renamed.pt', storedAt: `${old.id}/files/model.pt` }, empty!],
    }
    const verify = () => verifyCheckpoint(store, { jobId: JOB, checkpoint: at, manifest: shared }, scratch)
    expect(await verify()).toEqual([])
    await store.delete(`jobs/${JOB}/checkpoints/${old.id}/files/model.pt`)
    expect(await verify()).toEqual([{ path: 'renamed.pt', reason: 'is missing' }])
  })

  it('rejects the manifest of another checkpoint', async () => {
    const manifest = await manifestOf(await put(5, 1))
    for (const other of [{ step: 6 }, { attempt: 2 }, { jobId: 'job-b' }]) {
      const at = { jobId: JOB, checkpoint: checkpoint(5, 1), manifest: { ...manifest, ...other } }
      expect(await verifyCheckpoint(store, at, scratch)).toEqual([
        { path: 'manifest.json', reason: 'belongs to another checkpoint' },
      ])
    }
  })
})

describe('goodCheckpoints', () => {
  async function putAs(step: number, changes: Partial<Manifest>): Promise<void> {
    const at = await put(step, 1)
    const manifest = { ...(await manifestOf(at)), ...changes }
    await store.put(`jobs/${JOB}/checkpoints/${at.id}/manifest.json`, JSON.stringify(manifest))
  }
  const steps = async (): Promise<number[]> => {
    const found: number[] = []
    const parse = { manifest: parseManifest, restores: parseRestores }
    for await (const { checkpoint } of goodCheckpoints(store, JOB, parse)) found.push(checkpoint.step)
    return found
  }

  it('are the complete ones first, then settled and quiet ones, the newest first', async () => {
    await putAs(1, {})
    await putAs(2, { state: 'quiet' })
    await putAs(3, {})
    await putAs(4, { state: 'settled' })
    await putAs(5, { state: 'quiet' })
    await putAs(6, { jobId: 'job-b' })
    await store.put(`jobs/${JOB}/checkpoints/${checkpointId(7, 1)}/manifest.json`, '{')
    expect(await steps()).toEqual([3, 1, 4, 5, 2])
  })

  it('have last those after which programs only failed', async () => {
    for (const step of [1, 2, 3]) await putAs(step, {})
    const restore = { checkpoint: checkpoint(3, 1), revision: 1, state: 'complete', why: 'newest', atMs: 1 }
    const list = (...outcomes: string[]): string =>
      JSON.stringify({
        version: 1,
        attemptId: 'job-a-2',
        restores: outcomes.map((outcome) => ({ ...restore, outcome, message: null })),
      })
    await store.put(`jobs/${JOB}/attempts/2/restores.json`, list('failed'))
    expect(await steps()).toEqual([2, 1, 3])
    await store.put(`jobs/${JOB}/attempts/10/restores.json`, list('failed', 'went-on'))
    expect(await steps()).toEqual([3, 2, 1])
  })

  it('say whether the number in their id is a step', async () => {
    await putAs(1, { isStepKnown: false })
    const parse = { manifest: parseManifest, restores: parseRestores }
    expect((await newestGoodCheckpoint(store, JOB, parse))?.checkpoint).toEqual({
      ...checkpoint(1, 1),
      isStepKnown: false,
    })
    expect(await newestGoodCheckpoint(store, 'job-none', parse)).toBeUndefined()
  })
})
