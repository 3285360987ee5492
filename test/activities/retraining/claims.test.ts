/** A promotion command publishes a model: what the pointer would refuse must be known before. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError } from '@temporalio/client'
import type { RetrainingDeps } from '../../../activities/retraining/activities'
import { claimPromotion } from '../../../activities/retraining/claims'
import { promoteModel } from '../../../activities/retraining/models'
import type { PromotionTask } from '../../../core/retraining/run'
import { putRunEntry, readPromotionClaim } from '../../../storage/schedules'
import { MemoryStore } from '../../backends/scripted/memory-store'
import { DEPLOYMENT_ID } from '../../workflows/harness'
import { SCHEDULE, SPEC_BY_HAND } from '../../workflows/retraining'

const NOW_MS = Date.UTC(2027, 0, 4)
const MODEL = { jobId: 'job', checkpointId: '1-1', step: 1, digest: 'd', artifactsUrl: 'u' }
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
/** What the server answered about the workflow of each run; it does not know others. */
let states: Record<string, string>
let deps: RetrainingDeps

beforeEach(() => {
  store = new MemoryStore(() => NOW_MS)
  states = {}
  const getHandle = (id: string): object => ({
    describe: async () => {
      if (states[id] === undefined) throw new WorkflowNotFoundError('not found', id, undefined)
      return { status: { name: states[id] } }
    },
  })
  deps = { client: { workflow: { getHandle } }, store, now: () => NOW_MS } as unknown as RetrainingDeps
})

const taskOf = (id: string, more: Partial<PromotionTask> & { end?: string } = {}): PromotionTask => {
  const { end = '2027-01-01', ...rest } = more
  const dates = { nominal: id, opensAtMs: NOW_MS, zone: 'UTC', isByHand: true, notes: [] }
  const run = { id, jobPrefix: id, dates: { ...dates, window: { start: '2026-01-01', end } } }
  return { input: INPUT, run, recordSeq: 1, name: SCHEDULE, judgedAgainst: 0, ...rest }
}
const claim = (id: string, more: Parameters<typeof taskOf>[1] = {}): ReturnType<typeof claimPromotion> =>
  claimPromotion(deps, { ...taskOf(id, more), workflowId: `workflow-${id}` })
const promote = (id: string, more: Parameters<typeof taskOf>[1] = {}): ReturnType<typeof promoteModel> =>
  promoteModel(deps, { ...taskOf(id, more), model: MODEL })

const WAITS = {
  failure: { class: 'transient', message: expect.stringMatching(/^The run one of ranker is putting its/) },
}

describe('the claim to promote', () => {
  it.each(['RUNNING', 'PAUSED'])('is waited for while the run that has it is %s', async (state) => {
    states['workflow-one'] = state
    expect(await claim('one')).toEqual({ production: null })
    await expect(claim('two', { isApproved: true })).rejects.toMatchObject(WAITS)
    // The same run again, after a reset.
    expect(await claim('one')).toEqual({ production: null })
    expect(await readPromotionClaim(store, SCHEDULE)).toMatchObject({ number: 1, run: 'one' })
  })

  it.each([
    ['was ended by hand', async () => void (states['workflow-one'] = 'TERMINATED')],
    ['is not known to the server', async () => void delete states['workflow-one']],
    [
      'is finished',
      () =>
        putRunEntry(
          store,
          { schedule: SCHEDULE, run: 'one' },
          { seq: 9, atMs: NOW_MS, kind: 'finished', summary: '', data: {} },
        ),
    ],
  ])('is free again once its run %s', async (_, end: () => Promise<unknown>) => {
    states['workflow-one'] = 'RUNNING'
    await claim('one')
    await end()
    expect(await claim('two')).toEqual({ production: null })
    expect(await readPromotionClaim(store, SCHEDULE)).toMatchObject({ number: 2, run: 'two' })
  })

  it('is free once its run has promoted, for a model that may replace that one', async () => {
    states['workflow-one'] = 'RUNNING'
    await claim('one')
    await promote('one')
    await expect(claim('two')).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringMatching(/^The run one has put version 1/) },
    })
    expect(await claim('two', { judgedAgainst: 1 })).toMatchObject({ production: { seq: 1, run: 'one' } })
    // A reset run that has promoted before it was reset.
    await promote('two', { judgedAgainst: 1 })
    expect(await claim('two', { judgedAgainst: 1 })).toMatchObject({ production: { seq: 2, run: 'two' } })
  })

  it('is refused for a model of older data that no person has approved, and then blocks no other run', async () => {
    await promote('newer')
    const older = { end: '2026-10-01', judgedAgainst: 1 }
    await expect(claim('older', older)).rejects.toMatchObject({ failure: { class: 'invalid' } })
    expect(await readPromotionClaim(store, SCHEDULE)).toBeUndefined()
    expect(await claim('older', { ...older, isApproved: true })).toMatchObject({ production: { seq: 1 } })
  })

  it('is of one run if two ask at once', async () => {
    states['workflow-one'] = states['workflow-two'] = 'RUNNING'
    const asked = await Promise.allSettled([claim('one'), claim('two')])
    expect(asked.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })
})
