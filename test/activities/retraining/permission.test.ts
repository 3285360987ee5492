/** What lets a run of a schedule begin: the record of the store, whatever Temporal holds. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError } from '@temporalio/client'
import type { RetrainingDeps } from '../../../activities/retraining/activities'
import { resolveRun } from '../../../activities/retraining/resolve'
import type { RetrainSpec } from '../../../core/retraining/retraining'
import type { RunRef } from '../../../core/retraining/run'
import { CATCH_UP_MS } from '../../../core/retraining/schedule-dates'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { putPause, putPermit, type RunPermit } from '../../../storage/schedule-permits'
import { putRevision, putRunEntry, type ScheduleRevision } from '../../../storage/schedules'
import { StoreError } from '../../../storage/store'
import { MemoryStore } from '../../backends/scripted/memory-store'
import { DEPLOYMENT_ID } from '../../workflows/harness'
import { SCHEDULE, SPEC_BY_HAND } from '../../workflows/retraining'

/** The first of each month, at midnight. */
const SPEC: RetrainSpec = {
  ...SPEC_BY_HAND,
  calendar: { ...SPEC_BY_HAND.calendar, months: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] },
}
const CREATED_MS = Date.UTC(2027, 0, 20)
const FEBRUARY_MS = Date.UTC(2027, 1, 1)
const MARCH_MS = Date.UTC(2027, 2, 1)

const NOT_ALLOWED = { failure: { class: 'auth', code: 'NOT_ALLOWED' } }

let store: MemoryStore
let nowMs: number
/** Starts of the runs of workflows that the server has. */
let known: Map<string, Date>
let deps: RetrainingDeps

const inputOf = (revision: number, spec = SPEC): ScheduleRevision['input'] => ({
  schedule: SCHEDULE,
  revision,
  spec,
  bundle: null,
  secrets: [],
  owner: 'ada',
  deployment: DEPLOYMENT_ID,
})

const revise = (
  revision: number,
  atMs: number,
  { kind = 'updated', spec = SPEC }: { kind?: ScheduleRevision['kind']; spec?: RetrainSpec } = {},
): Promise<boolean> => putRevision(store, { revision, atMs, by: 'ada', kind, input: inputOf(revision, spec) })

beforeEach(async () => {
  nowMs = FEBRUARY_MS + SECOND_MS
  store = new MemoryStore(() => nowMs)
  known = new Map()
  const getHandle = (id: string, runId: string): object => ({
    describe: async () => {
      const startTime = known.get(runId)
      if (startTime === undefined) throw new WorkflowNotFoundError('not found', id, runId)
      return { startTime }
    },
  })
  const client = { workflow: { getHandle }, schedule: { getHandle: () => ({}) } }
  deps = { client, store, now: () => nowMs } as unknown as RetrainingDeps
  await revise(1, CREATED_MS, { kind: 'created' })
})

interface Start {
  dateMs?: number
  startedAtMs?: number
  revision?: number
  spec?: RetrainSpec
  workflowId?: string
}

/** A run that Temporal starts, by its schedule or for a stranger who has copied the signed input. */
function start(runId: string, { dateMs = FEBRUARY_MS, ...more }: Start = {}): Promise<RunRef> {
  const { revision = 1, spec, startedAtMs = nowMs, workflowId = `retrain/${SCHEDULE}-${runId}` } = more
  known.set(runId, new Date(startedAtMs))
  const input = inputOf(revision, spec)
  return resolveRun(deps, { input, workflowId, runId, scheduledAtMs: dateMs })
}

const allow = (permit: Partial<RunPermit> & Pick<RunPermit, 'id'>): Promise<void> =>
  putPermit(store, SCHEDULE, { kind: 'trigger', atMs: nowMs, by: 'ada', ...permit } as RunPermit)

describe('a date of a schedule', () => {
  it('starts one run, which may ask again', async () => {
    const first = await start('run-1')
    expect(first).toMatchObject({ id: '2027-02-01', dates: { nominal: '2027-02-01' } })
    expect(await start('run-1')).toEqual(first)
    await expect(start('run-2')).rejects.toMatchObject(NOT_ALLOWED)
    await expect(start('run-3', { workflowId: `retrain/${SCHEDULE}-run-1` })).rejects.toMatchObject(
      NOT_ALLOWED,
    )
  })

  it('starts one run of many that begin at once', async () => {
    const runs = Array.from({ length: 8 }, (_, index) => start(`run-${index}`))
    const ended = await Promise.allSettled(runs)
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it('is used up by a run of Crucible 0.1.0, which left only its record', async () => {
    await start('run-1')
    await store.delete(layout.scheduleUse(SCHEDULE, `date-${FEBRUARY_MS}`))
    await putRunEntry(
      store,
      { schedule: SCHEDULE, run: '2027-02-01' },
      { seq: 1, atMs: nowMs, kind: 'finished', summary: '', data: {} },
    )
    for (const workflowId of [`retrain/${SCHEDULE}-run-1`, 'retrain/other'])
      await expect(start('run-2', { workflowId })).rejects.toMatchObject(NOT_ALLOWED)
  })

  it('starts no run again that is over, after a reset of its workflow', async () => {
    const { id: run } = await start('run-1')
    const entry = { seq: 1, atMs: nowMs, kind: 'finished', summary: '', data: {} } as const
    await putRunEntry(store, { schedule: SCHEDULE, run }, entry)
    await expect(start('run-1')).rejects.toMatchObject({
      failure: { code: 'NOT_ALLOWED', message: `The run ${run} of ${SCHEDULE} is over.` },
    })
  })

  it('starts its run again on a server that was restored before the run was recorded', async () => {
    await start('run-1')
    await store.delete(layout.runRecord(SCHEDULE, '2027-02-01', 0))
    known.delete('run-1')
    expect(await start('run-2', { workflowId: `retrain/${SCHEDULE}-run-1` })).toMatchObject({
      id: '2027-02-01',
    })
  })

  it.each([
    ['before its instant', { dateMs: MARCH_MS }, { failure: { class: 'transient' } }],
    ['that is not in the calendar', { dateMs: FEBRUARY_MS + HOUR_MS }, NOT_ALLOWED],
    ['before the schedule was created', { dateMs: Date.UTC(2027, 0, 1) }, NOT_ALLOWED],
  ])('starts no run %s', async (_, asked, refusal) => {
    await expect(start('run-1', asked)).rejects.toMatchObject(refusal)
  })

  it('starts a run late, after an outage or after the run before, within the rule of the schedule', async () => {
    nowMs = FEBRUARY_MS + CATCH_UP_MS
    expect(await start('run-1')).toMatchObject({ id: '2027-02-01' })
    nowMs = MARCH_MS + 2 * CATCH_UP_MS
    expect(await start('run-2', { dateMs: MARCH_MS })).toMatchObject({ id: '2027-03-01' })
    await revise(2, CREATED_MS + 1, { spec: { ...SPEC, overlap: 'skip' } })
    const april = Date.UTC(2027, 3, 1)
    nowMs = april + CATCH_UP_MS + 2 * HOUR_MS
    await expect(start('run-3', { dateMs: april, revision: 2 })).rejects.toMatchObject(NOT_ALLOWED)
  })

  it('starts no run in a pause, and again after it', async () => {
    await putPause(store, SCHEDULE, { kind: 'paused', atMs: FEBRUARY_MS - DAY_MS, by: 'ada' })
    await expect(start('run-1')).rejects.toMatchObject(NOT_ALLOWED)
    await putPause(store, SCHEDULE, { kind: 'resumed', atMs: FEBRUARY_MS + DAY_MS, by: 'ada' })
    await expect(start('run-1')).rejects.toMatchObject(NOT_ALLOWED)
    nowMs = MARCH_MS
    expect(await start('run-2', { dateMs: MARCH_MS })).toMatchObject({ id: '2027-03-01' })
  })
})

describe('a copied input of a schedule', () => {
  it('starts nothing after the schedule was deleted, also if it is created again', async () => {
    await revise(2, nowMs, { kind: 'deleted' })
    await expect(start('run-1')).rejects.toMatchObject({
      failure: {
        code: 'NOT_ALLOWED',
        message: expect.stringMatching(/^The schedule ranker was deleted by ada at/),
      },
    })
    await revise(3, nowMs + HOUR_MS, { kind: 'created' })
    nowMs = MARCH_MS
    await expect(start('run-1', { dateMs: MARCH_MS })).rejects.toMatchObject(NOT_ALLOWED)
    await expect(start('run-1', { revision: 3 })).rejects.toMatchObject(NOT_ALLOWED)
    expect(await start('run-2', { dateMs: MARCH_MS, revision: 3 })).toMatchObject({ id: '2027-03-01' })
  })

  it('starts nothing after the schedule was revised', async () => {
    await revise(2, FEBRUARY_MS + 1)
    nowMs = MARCH_MS
    await expect(start('run-1', { dateMs: MARCH_MS })).rejects.toMatchObject({
      failure: {
        code: 'NOT_ALLOWED',
        message: expect.stringContaining('revision 2'),
        hint: expect.any(String),
      },
    })
    expect(await start('run-2', { dateMs: MARCH_MS, revision: 2 })).toMatchObject({ id: '2027-03-01' })
  })

  it('starts the run of a date before the revision, which waited for a worker or for the run before', async () => {
    const may: RetrainSpec = { ...SPEC, calendar: { ...SPEC.calendar, months: [5] } }
    await revise(2, FEBRUARY_MS + HOUR_MS, { spec: may })
    nowMs += DAY_MS
    expect(await start('run-1')).toMatchObject({ id: '2027-02-01' })
    await store.delete(layout.runRecord(SCHEDULE, '2027-02-01', 0))
    await store.delete(layout.scheduleUse(SCHEDULE, `date-${FEBRUARY_MS}`))
    expect(await start('run-2', { revision: 2, spec: may })).toMatchObject({ id: '2027-02-02' })
  })

  it('starts nothing for a schedule that the store does not have', async () => {
    store = new MemoryStore(() => nowMs)
    deps = { ...deps, store }
    await expect(start('run-1')).rejects.toMatchObject(NOT_ALLOWED)
  })

  it('waits while the store is away', async () => {
    const away = new StoreError('The store is away.', { isTransient: true })
    deps = {
      ...deps,
      store: Object.assign(Object.create(store) as MemoryStore, { get: () => Promise.reject(away) }),
    }
    await expect(start('run-1')).rejects.toBe(away)
  })
})

describe('a run that the owner asks for', () => {
  const BY_HAND = { dateMs: FEBRUARY_MS + 5 * HOUR_MS }
  beforeEach(() => {
    nowMs = BY_HAND.dateMs
  })

  it('is one, within an hour, and in a pause too', async () => {
    await expect(start('run-1', BY_HAND)).rejects.toMatchObject(NOT_ALLOWED)
    await allow({ id: 'trigger-1' })
    await putPause(store, SCHEDULE, { kind: 'paused', atMs: nowMs, by: 'ada' })
    await expect(start('run-1', { ...BY_HAND, startedAtMs: nowMs + 2 * HOUR_MS })).rejects.toMatchObject(
      NOT_ALLOWED,
    )
    const run = await start('run-1', BY_HAND)
    expect(run).toMatchObject({ id: '2027-02-01', dates: { isByHand: true } })
    expect(await start('run-1', BY_HAND)).toEqual(run)
    await expect(start('run-2', BY_HAND)).rejects.toMatchObject(NOT_ALLOWED)
    await allow({ id: 'trigger-2' })
    expect(await start('run-2', BY_HAND)).toMatchObject({ id: '2027-02-01b' })
  })

  it('is not one that was allowed before the schedule was deleted', async () => {
    await allow({ id: 'trigger-1' })
    await revise(2, nowMs + 1, { kind: 'deleted' })
    await revise(3, nowMs + 2, { kind: 'created' })
    await expect(start('run-1', { ...BY_HAND, revision: 3 })).rejects.toMatchObject(NOT_ALLOWED)
  })

  it('makes up for a date once, whether or not the date was used up', async () => {
    const january = { dateMs: Date.UTC(2027, 0, 1) }
    await allow({ id: 'backfill-1', kind: 'backfill', startsAtMs: january.dateMs })
    expect(await start('run-1', january)).toMatchObject({ id: '2027-01-01' })
    await expect(start('run-2', january)).rejects.toMatchObject(NOT_ALLOWED)
    await allow({ id: 'backfill-2', kind: 'backfill', startsAtMs: FEBRUARY_MS })
    expect(await start('run-3')).toMatchObject({ id: '2027-02-01' })
    await expect(start('run-4')).rejects.toMatchObject(NOT_ALLOWED)
  })
})
