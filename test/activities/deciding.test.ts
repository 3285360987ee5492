import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { createDecidingActivities } from '../../activities/plan/deciding'
import type { DecideInput, FinishInput } from '../../core/activities'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import { listCheckpoints } from '../../storage/checkpoints'
import { layout } from '../../storage/layout'
import { readJobCosts } from '../../storage/job-costs'
import { putRecord, readRecords } from '../../storage/record'
import { saveCheckpoint, UNTRAINED } from '../backends/scripted/checkpoints'
import { partialEntry } from '../support/record'
import { perform, Place } from './place'

let place: Place
let deciding: ReturnType<typeof createDecidingActivities>

/** The workflows of attempts that are open, by their ids. */
const open = new Set<string>()
const cancelled: string[] = []
const client = {
  workflow: {
    getHandle: (workflowId: string) => ({
      cancel: async () => {
        if (!open.has(workflowId)) throw new WorkflowNotFoundError('closed', workflowId, undefined)
        cancelled.push(workflowId)
      },
    }),
  },
} as unknown as Client

beforeEach(async () => {
  open.clear()
  cancelled.length = 0
  place = await Place.make()
  deciding = createDecidingActivities({ client, store: place.store, now: place.now })
})
afterEach(() => place.dispose())

const LOST: DecideInput = {
  jobId: 'job-a',
  recordSeq: 5,
  attempt: 1,
  drainReason: null,
  offerKeys: ['scripted/spot/v100/a'],
  end: { kind: 'failed', isLaunched: true, failure: { class: 'interrupted', message: 'taken back' } },
  ledger: EMPTY_LEDGER,
  policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
}

describe('decide', () => {
  it('puts what was decided on record with all that it followed from', async () => {
    const verdict = await perform(deciding, 'decide', LOST)
    expect(verdict.decision.kind).toBe('again')
    const { jobId, recordSeq, attempt, ...facts } = LOST
    expect(await readRecords(place.store, jobId)).toMatchObject([
      { seq: recordSeq, attempt, kind: 'decided', data: { facts, verdict } },
    ])
  })

  it('says the same again however often it is asked, also after the policy has changed', async () => {
    const first = await perform(deciding, 'decide', LOST)
    const policy = { ...LOST.policy, interruptionsMax: 0 }
    expect(await perform(deciding, 'decide', { ...LOST, policy })).toEqual(first)
    expect((await perform(deciding, 'decide', { ...LOST, policy, recordSeq: 6 })).decision.kind).toBe(
      'finish',
    )
  })

  it('decides nothing that it cannot put on record', async () => {
    await place.storeDown()
    await expect(perform(deciding, 'decide', LOST)).rejects.toMatchObject({ type: 'transient' })
  })
})

describe('withdraw', () => {
  const STOPPED = { kind: 'stopped', by: 'cancelled' } as const

  it('takes an order back that was not picked up: a later worker must not run it', async () => {
    const order = place.order({ jobId: 'job-a' })
    const { settlement } = await perform(deciding, 'withdraw', { order, end: STOPPED, recordSeq: 4 })
    expect(settlement).toEqual({ end: STOPPED, handle: null, costMicroUsd: 0, artifacts: [], phases: [] })
    expect(await readRecords(place.store, 'job-a')).toEqual([
      expect.objectContaining({ seq: 4, kind: 'settled', attempt: 1, data: settlement }),
    ])
    expect(await place.read(layout.drain('job-a', 1))).toMatchObject({ reason: 'superseded', windowMs: 0 })
  })

  it('tells the newest checkpoint of the attempts before', async () => {
    const saving = { store: place.store, jobId: 'job-a', attempt: 1, nowMs: 1 }
    const saved = await saveCheckpoint({ ...UNTRAINED, step: 3 }, saving)
    const order = place.order({ jobId: 'job-a', attempt: 2 })
    const { settlement } = await perform(deciding, 'withdraw', { order, end: STOPPED, recordSeq: 4 })
    expect(settlement?.checkpoint).toMatchObject({ step: 3, attempt: 1 })
    expect(settlement?.checkpoint?.id).toBe(saved?.id)
  })

  it('tells when the launch was begun after all, so that it is settled', async () => {
    const order = place.order({ jobId: 'job-a' })
    await perform(place.verbs(), 'launch', { order, recordSeq: 1 })
    expect(await perform(deciding, 'withdraw', { order, end: STOPPED, recordSeq: 4 })).toEqual({
      settlement: null,
    })
    expect((await readRecords(place.store, 'job-a')).map(({ kind }) => kind)).toEqual(['launched'])
  })
})

describe('finishJob', () => {
  const status: JobStatus = {
    id: 'job-a',
    name: 'train',
    owner: 'me',
    state: 'succeeded',
    reason: 'completed',
    message: 'done',
    submittedAtMs: 1,
    spentMicroUsd: 42,
    attempts: [],
    attemptsTotal: 2,
    placementReasons: [],
  }
  const input: FinishInput = { jobId: 'job-a', recordSeq: 9, status, artifacts: [] }

  it('answers the result, puts it on record once, and leaves no secrets behind', async () => {
    await place.store.put(layout.secrets('job-a'), 'sealed')
    const result = await perform(deciding, 'finishJob', input)
    expect(result).toMatchObject({ id: 'job-a', state: 'succeeded', attempts: 2, costMicroUsd: 42 })
    expect(await place.store.head(layout.secrets('job-a'))).toBeUndefined()
    place.aheadMs = 60_000
    expect(await perform(deciding, 'finishJob', input)).toEqual(result)
    expect(await readRecords(place.store, 'job-a')).toMatchObject([{ seq: 9, kind: 'finished' }])
  })

  it('puts the cost of the job, once, for the month that pays', async () => {
    const { finishedAtMs } = await perform(deciding, 'finishJob', { ...input, month: '2026-10' })
    await perform(deciding, 'finishJob', { ...input, month: '2026-10' })
    expect((await readJobCosts(place.store)).costs).toEqual([
      expect.objectContaining({
        jobId: 'job-a',
        owner: 'me',
        state: 'succeeded',
        finishedAtMs,
        budgetMonth: '2026-10',
        costMicroUsd: 42,
      }),
    ])
    expect((await readJobCosts(place.store, '2026-10')).costs).toHaveLength(1)
    expect((await readJobCosts(place.store, '2026-09')).costs).toEqual([])
  })

  it('settles what it cost with the budget of the month that pays, and with no other', async () => {
    const settled: unknown[] = []
    const treasury = {
      promise: async () => undefined,
      settle: async (...of: unknown[]) => void settled.push(of),
    }
    const paid = createDecidingActivities({ client, store: place.store, now: place.now, treasury })
    await perform(paid, 'finishJob', input)
    expect(settled).toEqual([])
    await perform(paid, 'finishJob', { ...input, month: '2026-10' })
    const spent = { jobId: 'job-a', owner: 'me', spentMicroUsd: 42 }
    expect(settled).toEqual([['2026-10', spent, expect.any(AbortSignal)]])
  })

  describe('of a job whose workflow was reset, and took other steps than those on record', () => {
    const RESET = { ...input, recordSeq: 3, month: '2026-10' }
    const settled: unknown[] = []
    const treasury = {
      promise: async () => undefined,
      settle: async (_: string, { spentMicroUsd }: { spentMicroUsd: number }) =>
        void settled.push(spentMicroUsd),
    }
    const finish = (): Promise<unknown> => {
      const paid = createDecidingActivities({ client, store: place.store, now: place.now, treasury })
      return perform(paid, 'finishJob', { ...RESET, status: { ...status, budgetMicroUsd: 500 } })
    }
    const put = (seq: number, kind: 'launched' | 'settled', data: object): Promise<unknown> =>
      putRecord(place.store, 'job-a', partialEntry({ seq, atMs: 1, kind, attempt: 1, summary: '', data }))
    beforeEach(async () => {
      settled.length = 0
      await put(3, 'launched', {})
    })

    it('waits until the attempts that it forgot have saved and ended, and counts their cost', async () => {
      open.add('job/job-a/1')
      await expect(finish()).rejects.toMatchObject({ type: 'transient' })
      expect([cancelled, settled]).toEqual([['job/job-a/1'], []])
      await put(4, 'settled', { costMicroUsd: 70 })
      expect(await finish()).toMatchObject({ costMicroUsd: 70 })
      expect(await finish()).toMatchObject({ costMicroUsd: 70 })
      expect(settled).toEqual([70, 70])
      const kinds = (await readRecords(place.store, 'job-a')).map(({ seq, kind }) => `${seq} ${kind}`)
      expect(kinds).toEqual(['3 launched', '4 settled', '5 finished'])
    })

    it('counts the whole budget for one whose workflow ended unsettled, and tells its machine to end', async () => {
      expect(await finish()).toMatchObject({ costMicroUsd: 500 })
      expect(await place.read(layout.drain('job-a', 1))).toMatchObject({ windowMs: 0 })
    })

    it('returns how the job ended, if it had ended before', async () => {
      await put(4, 'settled', { costMicroUsd: 70 })
      const ended = await perform(deciding, 'finishJob', { ...input, recordSeq: 5 })
      expect(await finish()).toEqual(ended)
      expect(settled).toEqual([42])
    })
  })

  it('keeps the two newest checkpoints and the newest that a program went on from, and no broken upload', async () => {
    const saved = []
    for (const step of [1, 2, 3, 4, 5]) {
      const saving = { store: place.store, jobId: 'job-a', attempt: 1, nowMs: 1 }
      saved.push(await saveCheckpoint({ ...UNTRAINED, step }, saving))
    }
    const torn = { store: place.store, jobId: 'job-a', attempt: 2, nowMs: 1, torn: 'no-manifest' } as const
    await saveCheckpoint({ ...UNTRAINED, step: 6 }, torn)
    const wentOn = { checkpoint: saved[1], revision: 1, state: 'complete', outcome: 'went-on', message: null }
    await place.store.put(
      layout.restores('job-a', 2),
      JSON.stringify({ version: 1, attemptId: 'job-a-2', restores: [{ ...wentOn, why: 'newest', atMs: 1 }] }),
    )
    await perform(deciding, 'finishJob', input)
    expect((await listCheckpoints(place.store, 'job-a')).map(({ step }) => step)).toEqual([5, 4, 2])
    expect(await place.store.listFolders(layout.checkpoints('job-a'))).toHaveLength(3)
  })
})
