import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { checkpointId, type Manifest } from '../../core/job/checkpoint'
import { CHECKPOINT_PARSERS, parseManifest } from '../../intake/documents'
import { copyCheckpoint, readCopied } from '../../storage/copy-checkpoint'
import {
  listCheckpoints,
  newestGoodCheckpoint,
  readManifest,
  surveyCheckpoints,
  verifyCheckpoint,
} from '../../storage/checkpoints'
import type { ObjectStore } from '../../storage/store'
import { COMPLETE } from '../support/manifests'
import { markedStore } from '../support/marked-store'

const [OLD, NEW] = ['job-old', 'job-new']
const ON = new AbortController().signal
let root: string
let store: ObjectStore

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'crucible-copy-'))
  store = markedStore(join(root, 'store'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const sha256 = (body: Buffer | string): string => createHash('sha256').update(body).digest('hex')
const fileKey = (jobId: string, id: string, path: string): string =>
  `jobs/${jobId}/checkpoints/${id}/files/${path}`
const manifestAt = (jobId: string, id: string): string => `jobs/${jobId}/checkpoints/${id}/manifest.json`

/** A checkpoint of two files and a link, sealed as the runner seals it, with a field of a later version. */
async function save(step: number, attempt: number): Promise<string> {
  const id = checkpointId(step, attempt)
  const bodies = { 'deep/rng': Buffer.from(`rng ${step}`), 'model.pt': Buffer.from(`weights ${step}`) }
  for (const [path, body] of Object.entries(bodies)) await store.put(fileKey(OLD, id, path), body)
  const manifest = {
    ...COMPLETE,
    version: 1,
    jobId: OLD,
    attempt,
    step,
    isStepKnown: true,
    createdAtMs: 7,
    totalBytes: 20,
    files: Object.entries(bodies).map(([path, body]) => ({
      path,
      sizeBytes: body.length,
      parts: [sha256(body)],
      mode: 0o755,
      digest: sha256(Buffer.from(sha256(body), 'hex')),
    })),
    links: [{ path: 'latest', target: 'model.pt' }],
    resumePath: 'model.pt',
    ofLater: { kind: 'zip' },
  }
  const before = `${JSON.stringify(manifest).slice(0, -1)},`
  await store.put(manifestAt(OLD, id), `${before}"sha256":"${sha256(before)}"}`)
  return id
}

async function copy(): Promise<unknown> {
  const good = (await newestGoodCheckpoint(store, OLD, CHECKPOINT_PARSERS))!
  return copyCheckpoint(store, { from: { ...good, jobId: OLD }, toJobId: NEW }, ON)
}

async function copied(id: string): Promise<Manifest> {
  const [checkpoint] = await listCheckpoints(store, NEW)
  expect(checkpoint?.id).toBe(id)
  const manifest = await readManifest(store, { jobId: NEW, checkpoint: checkpoint! }, parseManifest)
  expect(
    await verifyCheckpoint(store, { jobId: NEW, checkpoint: checkpoint!, manifest: manifest! }, root),
  ).toEqual([])
  return manifest!
}

describe('a copied checkpoint', () => {
  it('is a good checkpoint of the new job, says where it is from, and keeps what this version does not know', async () => {
    await save(400, 3)
    expect(await copy()).toEqual([])
    expect(await copied('000000000400-0')).toMatchObject({
      jobId: NEW,
      attempt: 0,
      step: 400,
      createdAtMs: 7,
      resumePath: 'model.pt',
      copiedFrom: { jobId: OLD, checkpoint: '000000000400-3' },
      links: [{ path: 'latest', target: 'model.pt' }],
    })
    const text = (await store.get(manifestAt(NEW, '000000000400-0')))!.toString()
    expect(JSON.parse(text)).toMatchObject({ ofLater: { kind: 'zip' } })
    expect(await readCopied(store, NEW, parseManifest)).toEqual({
      checkpoint: { id: '000000000400-0', step: 400, attempt: 0 },
      source: { jobId: OLD, checkpoint: '000000000400-3' },
    })
    // The source is as it was.
    expect((await listCheckpoints(store, OLD)).map(({ id }) => id)).toEqual(['000000000400-3'])
  })

  it('is older than all that the job saves itself, whatever the steps', async () => {
    await save(400, 3)
    await copy()
    await store.put(manifestAt(NEW, checkpointId(10, 1)), 'its manifest')
    expect((await listCheckpoints(store, NEW)).map(({ id }) => id)).toEqual([
      '000000000010-1',
      '000000000400-0',
    ])
  })

  it.each([
    ['is damaged', async (key: string) => store.put(key, 'WEIGHTS 400'), 'differs in part 1 of 1'],
    ['is too short', async (key: string) => store.put(key, 'weigh'), 'has 5 bytes instead of 11'],
    ['is missing', async (key: string) => store.delete(key), 'is missing'],
  ])('does not come to be where a file %s, and leaves nothing behind', async (_, spoil, reason) => {
    const id = await save(400, 3)
    await spoil(fileKey(OLD, id, 'model.pt'))
    expect(await copy()).toEqual([{ path: 'model.pt', reason }])
    expect(await surveyCheckpoints(store, NEW)).toEqual({ existing: [], partial: [] })
  })

  it('resumes after an interruption with the missing files', async () => {
    const id = await save(400, 3)
    const copyOne = store.copy.bind(store)
    const asked: string[] = []
    const [rng, model] = ['deep/rng', 'model.pt'].map((path) => fileKey(OLD, id, path))
    let copiedRng = (): void => {}
    const isRngCopied = new Promise<void>((resolve) => (copiedRng = resolve))
    let isCut = false
    store.copy = async (from, to) => {
      asked.push(from)
      if (from === rng) return copyOne(from, to).finally(copiedRng)
      await isRngCopied
      if (isCut) return copyOne(from, to)
      isCut = true
      throw new Error('cut')
    }
    await expect(copy()).rejects.toThrow('cut')
    expect((await surveyCheckpoints(store, NEW)).existing).toEqual([])
    expect(await copy()).toEqual([])
    await copied('000000000400-0')
    expect(asked.sort()).toEqual([rng, model, model])
  })

  it('stops between two files when its caller no longer waits', async () => {
    await save(400, 3)
    const good = (await newestGoodCheckpoint(store, OLD, CHECKPOINT_PARSERS))!
    await expect(
      copyCheckpoint(store, { from: { ...good, jobId: OLD }, toJobId: NEW }, AbortSignal.abort()),
    ).rejects.toThrow()
    expect((await surveyCheckpoints(store, NEW)).existing).toEqual([])
  })
})

describe('newestGoodCheckpoint', () => {
  it('passes over manifests that are damaged, or another checkpoint’s', async () => {
    await save(300, 1)
    await save(400, 3)
    await store.put(manifestAt(OLD, checkpointId(500, 3)), '{')
    await store.put(
      manifestAt(OLD, checkpointId(600, 3)),
      (await store.get(manifestAt(OLD, checkpointId(400, 3))))!,
    )
    expect((await newestGoodCheckpoint(store, OLD, CHECKPOINT_PARSERS))?.checkpoint.step).toBe(400)
    expect(await newestGoodCheckpoint(store, 'job-none', CHECKPOINT_PARSERS)).toBeUndefined()
  })
})
