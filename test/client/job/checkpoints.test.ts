import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { checkpointsOf, verifyCheckpoints } from '../../../client/job/checkpoints'
import { CHECKPOINT_PART_BYTES, checkpointId, type Manifest } from '../../../core/job/checkpoint'
import { filesFolder, layout, manifestName } from '../../../storage/layout'
import { COMPLETE } from '../../support/manifests'
import { ClientWorld, JOB, NOW } from '../world'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
  await world.submitted()
})

afterEach(() => world.remove())

const digestOf = (...bytes: Uint8Array[]): Buffer =>
  createHash('sha256').update(Buffer.concat(bytes)).digest()

/** A checkpoint of one file, as the runner leaves it. */
async function save(step: number, attempt: number, body: Buffer): Promise<string> {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += CHECKPOINT_PART_BYTES)
    parts.push(digestOf(body.subarray(at, at + CHECKPOINT_PART_BYTES)))
  const manifest: Manifest = {
    version: 1,
    jobId: JOB,
    attempt,
    step,
    isStepKnown: true,
    createdAtMs: NOW,
    ...COMPLETE,
    totalBytes: body.length,
    files: [
      {
        path: 'model.bin',
        sizeBytes: body.length,
        parts: parts.map((part) => part.toString('hex')),
        digest: digestOf(...parts).toString('hex'),
        mode: 0o644,
      },
    ],
    resumePath: 'model.bin',
  }
  const folder = layout.checkpoint(JOB, step, attempt)
  await world.store.put(`${folder}${filesFolder()}model.bin`, body)
  await world.store.put(`${folder}${manifestName()}`, JSON.stringify(manifest))
  return checkpointId(step, attempt)
}

const fileOf = (step: number, attempt: number): string =>
  `${layout.checkpoint(JOB, step, attempt)}${filesFolder()}model.bin`

describe('checkpoints', () => {
  it('are listed newest first; a folder without a manifest is no checkpoint', async () => {
    expect(await checkpointsOf(world.context, JOB)).toEqual([])
    const older = await save(5, 2, Buffer.from('old'))
    const newer = await save(12, 1, Buffer.from('newer'))
    await world.store.put(fileOf(99, 1), 'half')
    const { state, evidence, revision, savedAtMs } = COMPLETE
    const known = {
      state,
      evidence,
      revision,
      savedAtMs,
      isStepKnown: true,
      epoch: null,
      files: 1,
      createdAtMs: NOW,
    }
    expect(await checkpointsOf(world.context, JOB)).toEqual([
      { id: newer, step: 12, attempt: 1, sizeBytes: 5, ...known },
      { id: older, step: 5, attempt: 2, sizeBytes: 3, ...known },
    ])
    await expect(checkpointsOf(world.context, 'job-other')).rejects.toMatchObject({ kind: 'not-found' })
  })

  it('with a manifest that cannot be read are listed too, as damaged', async () => {
    const id = await save(5, 1, Buffer.from('x'))
    await world.store.put(`${layout.checkpoint(JOB, 5, 1)}${manifestName()}`, '{')
    expect(await checkpointsOf(world.context, JOB)).toMatchObject([{ id, files: null, sizeBytes: null }])
    expect(await verifyCheckpoints(world.context, JOB)).toMatchObject([{ id, isGood: false }])
  })

  it('are good as long as every part of every file is what it was', async () => {
    const body = Buffer.alloc(CHECKPOINT_PART_BYTES + 10, 7)
    const [good, bad] = [await save(1, 1, body), await save(2, 1, body)]
    body[CHECKPOINT_PART_BYTES + 3] = 8
    await world.store.put(fileOf(2, 1), body)
    expect(await verifyCheckpoints(world.context, JOB)).toEqual([
      {
        id: bad,
        step: 2,
        attempt: 1,
        isGood: false,
        badFiles: [{ path: 'model.bin', reason: expect.stringContaining('part 2 of 2') }],
      },
      { id: good, step: 1, attempt: 1, isGood: true, badFiles: [] },
    ])
    await world.store.delete(fileOf(2, 1))
    expect(await verifyCheckpoints(world.context, JOB, bad)).toMatchObject([{ id: bad, isGood: false }])
  })

  it('are compared one by one too, and an unknown id is reported with the known ones', async () => {
    const id = await save(1, 1, Buffer.from('x'))
    expect(await verifyCheckpoints(world.context, JOB, id)).toMatchObject([{ id, isGood: true }])
    await expect(verifyCheckpoints(world.context, JOB, 'nope')).rejects.toMatchObject({
      kind: 'not-found',
      hint: expect.stringContaining(id),
    })
  })
})
