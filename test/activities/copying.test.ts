import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createCopyingActivities } from '../../activities/copying'
import type { CopyOutcome } from '../../core/activities'
import { checkpointId } from '../../core/job/checkpoint'
import { readRecords } from '../../storage/record'
import { MemoryStore } from '../backends/scripted/memory-store'
import { COMPLETE } from '../support/manifests'

const [OLD, NEW] = ['job-old', 'job-new']
let store: MemoryStore

beforeEach(() => void (store = new MemoryStore(() => 0)))

async function save(step: number, attempt = 1): Promise<void> {
  const folder = `jobs/${OLD}/checkpoints/${checkpointId(step, attempt)}/`
  const part = createHash('sha256').update(`weights ${step}`).digest()
  await store.put(`${folder}files/model.pt`, `weights ${step}`)
  const file = {
    path: 'model.pt',
    sizeBytes: `weights ${step}`.length,
    parts: [part.toString('hex')],
    mode: 0o644,
    digest: createHash('sha256').update(part).digest('hex'),
  }
  const manifest = {
    ...COMPLETE,
    version: 1,
    jobId: OLD,
    attempt,
    step,
    isStepKnown: true,
    createdAtMs: 1,
    totalBytes: 9,
    files: [file],
    resumePath: '.',
  }
  await store.put(`${folder}manifest.json`, JSON.stringify(manifest))
}

function copy(step: number): Promise<CopyOutcome> {
  const checkpoint = { id: checkpointId(step, 1), step, attempt: 1 }
  const input = { jobId: NEW, source: { jobId: OLD, checkpoint }, recordSeq: 2 }
  const { copyCheckpoint } = createCopyingActivities({ store, now: () => 5 })
  return new MockActivityEnvironment().run(copyCheckpoint, input)
}

describe('copyCheckpoint', () => {
  it('copies the checkpoint that was promised, and puts it on record', async () => {
    await save(300)
    await save(400)
    await save(500)
    const outcome = {
      checkpoint: { id: '000000000400-0', step: 400, attempt: 0 },
      source: { jobId: OLD, checkpoint: '000000000400-1' },
      damaged: [],
    }
    expect(await copy(400)).toEqual(outcome)
    expect(await readRecords(store, NEW)).toEqual([
      expect.objectContaining({
        seq: 2,
        kind: 'copied',
        data: outcome,
        summary: 'Resumes from step 400 of job-old (000000000400-1)',
      }),
    ])
  })

  it('answers the same when it is repeated, also when the source is gone', async () => {
    await save(400)
    const first = await copy(400)
    for await (const { key } of store.list(`jobs/${OLD}/`)) await store.delete(key)
    expect(await copy(400)).toEqual(first)
  })

  it('takes the one before where the newest is damaged, and says so', async () => {
    await save(300)
    await save(400)
    await store.put(`jobs/${OLD}/checkpoints/${checkpointId(400, 1)}/files/model.pt`, 'short')
    expect(await copy(400)).toMatchObject({
      checkpoint: { step: 300 },
      damaged: ['000000000400-1 (model.pt has 5 bytes instead of 11)'],
    })
    expect((await readRecords(store, NEW))[0]!.summary).toContain('skipped as damaged: 000000000400-1')
  })

  it('fails for good where none is left, and says how to start over', async () => {
    await save(400)
    await store.delete(`jobs/${OLD}/checkpoints/${checkpointId(400, 1)}/files/model.pt`)
    await expect(copy(400)).rejects.toMatchObject({
      failure: {
        class: 'invalid',
        code: 'NO_CHECKPOINT',
        message: expect.stringContaining('model.pt is missing'),
        hint: expect.stringContaining('--from job-old --fresh'),
      },
    })
    expect(await readRecords(store, NEW)).toEqual([])
  })

  it('is tried again while the store does not answer', async () => {
    await save(400)
    store.isDown = true
    await expect(copy(400)).rejects.toMatchObject({ isTransient: true })
    store.isDown = false
    expect((await copy(400)).checkpoint.step).toBe(400)
  })
})
