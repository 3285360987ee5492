import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { leftShareOf } from '../../activities/plan/work-left'
import { COPIED_BY, type Manifest } from '../../core/job/checkpoint'
import type { Beat } from '../../core/documents'
import { layout } from '../../storage/layout'
import { MemoryStore } from '../backends/scripted/memory-store'
import { COMPLETE } from '../support/manifests'

const BEAT = JSON.parse(
  readFileSync(join(__dirname, '..', 'runner', 'golden', 'beat-full.json'), 'utf8'),
) as Beat

let store: MemoryStore

beforeEach(() => {
  store = new MemoryStore(() => 1)
})

const saved = (step: number, more: Partial<Manifest> = {}): Manifest => ({
  version: 1,
  jobId: 'job-a',
  attempt: 1,
  step,
  isStepKnown: true,
  createdAtMs: 1,
  totalBytes: 1,
  files: [],
  resumePath: '.',
  ...COMPLETE,
  ...more,
})
const told = (attempt: number, stepsTotal: number | null): Promise<unknown> =>
  store.put(
    layout.beat('job-a', attempt),
    Buffer.from(JSON.stringify({ ...BEAT, progress: { ...BEAT.progress, stepsTotal } })),
  )
const left = (attempt: number, newest?: Manifest): Promise<number | undefined> =>
  leftShareOf(store, { jobId: 'job-a', attempt }, newest)

describe('the share of the work that is left', () => {
  it('is what the newest checkpoint does not hold of the steps that an attempt told', async () => {
    await told(1, 400)
    expect(await left(2, saved(100))).toBe(0.75)
  })

  it('is that of an earlier attempt if the last one ended before it knew', async () => {
    await told(1, 400)
    await told(2, null)
    expect(await left(4, saved(300))).toBe(0.25)
  })

  it('is all of it without a checkpoint, and never nothing', async () => {
    await told(1, 400)
    expect(await left(2)).toBe(1)
    expect(await left(2, saved(400))).toBe(0.01)
    expect(await left(2, saved(900))).toBe(0.01)
  })

  it('is unknown without a total, without a step, and by the steps of another job', async () => {
    expect(await left(2, saved(100))).toBeUndefined()
    await told(1, 400)
    expect(await left(2, saved(100, { isStepKnown: false }))).toBeUndefined()
    expect(await left(2, saved(100, { attempt: COPIED_BY }))).toBeUndefined()
  })

  it('is unknown where the beat is damaged', async () => {
    await store.put(layout.beat('job-a', 1), Buffer.from('{'))
    expect(await left(2, saved(100))).toBeUndefined()
  })
})
