import { beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError } from '@temporalio/client'
import type { RetrainingDeps } from '../../../activities/retraining/activities'
import { promoteModel, productionOf } from '../../../activities/retraining/models'
import { resolveRun } from '../../../activities/retraining/resolve'
import type { RunRef } from '../../../core/retraining/run'
import { putPermit } from '../../../storage/schedule-permits'
import { putRevision, putRunEntry, readProduction, readRun } from '../../../storage/schedules'
import { MemoryStore } from '../../backends/scripted/memory-store'
import { DEPLOYMENT_ID } from '../../workflows/harness'
import { SCHEDULE, SPEC_BY_HAND } from '../../workflows/retraining'

const NOW_MS = Date.UTC(2027, 0, 4)
const WORKFLOW = `retrain/${SCHEDULE}-2027-01-01T00:00:00Z`
const INPUT = {
  schedule: SCHEDULE,
  revision: 1,
  spec: SPEC_BY_HAND,
  bundle: null,
  secrets: [],
  owner: 'ada',
  deployment: DEPLOYMENT_ID,
}

let store: MemoryStore
/** Runs of workflows that the server knows. */
let known: string[]
/** The run that is resolved. */
let asking: string
let deps: RetrainingDeps

beforeEach(async () => {
  store = new MemoryStore(() => NOW_MS)
  known = []
  const getHandle = (id: string, runId: string): object => ({
    describe: async () => {
      if (runId !== asking && !known.includes(runId)) throw new WorkflowNotFoundError('not found', id, runId)
      return { startTime: new Date(NOW_MS) }
    },
  })
  const client = { workflow: { getHandle }, schedule: { getHandle: () => ({}) } }
  deps = { client, store, now: () => NOW_MS } as unknown as RetrainingDeps
  await putRevision(store, { revision: 1, atMs: 0, by: 'ada', kind: 'created', input: INPUT })
  for (const id of ['trigger-1', 'trigger-2', 'trigger-3'])
    await putPermit(store, SCHEDULE, { id, kind: 'trigger', atMs: NOW_MS, by: 'ada' })
})

function resolve(runId: string, { workflowId = WORKFLOW, firstRunId = runId } = {}): Promise<RunRef> {
  asking = runId
  return resolveRun(deps, { input: INPUT, workflowId, runId, firstRunId, scheduledAtMs: NOW_MS })
}

const finish = (run: string): Promise<unknown> =>
  putRunEntry(store, { schedule: SCHEDULE, run }, entry(5, 'finished'))

const entry = (seq: number, kind: 'finished' | 'capacity') => ({
  seq,
  atMs: NOW_MS,
  kind,
  summary: '',
  data: {},
})

describe('a run that a restored server starts again', () => {
  it('is the same run, so that it buys nothing again, and its record continues', async () => {
    const first = await resolve('run-1')
    await putRunEntry(store, { schedule: SCHEDULE, run: first.id }, entry(1, 'capacity'))
    const again = await resolve('run-2')
    expect(again).toEqual({ ...first, firstSeq: 3 })
    // A repeated activity, and the server set back once more.
    expect(await resolve('run-2')).toEqual(again)
    expect(await resolve('run-3')).toEqual({ ...first, firstSeq: 4 })
    const kinds = (await readRun(store, SCHEDULE, first.id)).map(({ kind }) => kind)
    expect(kinds).toEqual(['started', 'capacity', 'started', 'started'])
  })

  it('is another run if the server knows the first one, or if that is finished', async () => {
    const first = await resolve('run-1')
    known = ['run-1']
    expect((await resolve('run-2')).id).toBe(`${first.id}b`)
    known = []
    await finish(first.id)
    await finish(`${first.id}b`)
    expect((await resolve('run-3')).id).toBe(`${first.id}c`)
  })

  it('is another run for another start of the same day', async () => {
    const first = await resolve('run-1')
    expect((await resolve('run-2', { workflowId: `${WORKFLOW}-by-hand` })).id).toBe(`${first.id}b`)
  })

  it('is the same run after a reset of its workflow', async () => {
    const first = await resolve('run-1')
    known = ['run-1']
    expect(await resolve('run-2', { firstRunId: 'run-1' })).toEqual(first)
  })
})

describe('a run that was made up for', () => {
  const MODEL = { jobId: 'job', checkpointId: '1-1', step: 1, digest: 'd', artifactsUrl: 'u' }
  const promoteFor = (
    id: string,
    end: string,
    isApproved = false,
    judgedAgainst = 0,
  ): ReturnType<typeof promoteModel> => {
    const dates = { nominal: id, opensAtMs: NOW_MS, zone: 'UTC', isByHand: true, notes: [] }
    const run = { id, jobPrefix: id, dates: { ...dates, window: { start: '2026-01-01', end } } }
    const task = { input: INPUT, run, recordSeq: 1, name: SCHEDULE, model: MODEL, isApproved }
    return promoteModel(deps, { ...task, judgedAgainst })
  }

  it('does not replace a model that it was not judged against', async () => {
    await promoteFor('one', '2027-01-01', false, 0)
    await expect(promoteFor('two', '2027-01-01', false, 0)).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringMatching(/^The run one has put version 1/) },
    })
    expect(await promoteFor('two', '2027-01-01', false, 1)).toMatchObject({ seq: 2 })
  })

  it('does not put a model of older data into production, unless a person has approved it', async () => {
    await promoteFor('newer', '2027-01-01')
    await expect(promoteFor('older', '2026-10-01')).rejects.toMatchObject({
      failure: {
        class: 'invalid',
        message: expect.stringMatching(/up to 2026-10-01.*version 1.*up to 2027-01-01/),
      },
    })
    expect(await readProduction(store, SCHEDULE)).toMatchObject({ seq: 1, run: 'newer' })
    const window = { start: '2026-07-01', end: '2026-10-01' }
    expect((await productionOf(store, { model: SCHEDULE, window }))?.older).toMatch(/newer data/)
    expect(await promoteFor('older', '2026-10-01', true)).toMatchObject({ seq: 2, run: 'older' })
    // Repeating the promotion changes nothing, whatever its data.
    expect(await promoteFor('older', '2026-10-01')).toMatchObject({ seq: 2, run: 'older' })
  })
})
