/** How a job finds its next place: asked once, then as long as it takes, and what ends that. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { PlanOutcome } from '../../core/activities'
import type { JobInput, ResolvedJob } from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Runs from '../../workflows/job/run'
import type * as Orders from '../../workflows/job/next-order'
import { SPEC } from '../support/spec'
import { played, playedActivities, playedWorkflow } from './played-job'
import { untilCancelled } from './scopes'

const ORDER = {
  jobId: 'job-1',
  attempt: 1,
  backend: 'here',
  capacityType: 'spot',
  offers: [],
} as unknown as Order
const PLACE: PlanOutcome = { kind: 'place', order: ORDER, words: { summary: '', reasons: [] } }
const WAIT: PlanOutcome = { kind: 'wait', reason: 'Out of stock.', retryInMs: 1_000, silentBackends: [] }
const NEVER: PlanOutcome = {
  kind: 'never',
  reason: 'no-placement',
  failure: { class: 'invalid', message: 'Nothing fits.' },
}

jest.mock('@temporalio/workflow', () => playedWorkflow())
jest.mock('../../workflows/activities', () => playedActivities())
const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job/run')
const { nextOrder } = jest.requireActual<typeof Orders>('../../workflows/job/next-order')

const NOW_MS = Date.UTC(2026, 10, 21, 12)

let run: Runs.JobRun
let outcomes: PlanOutcome[]
/** What the waiting question answers; it does not while missing. */
let found: PlanOutcome | undefined

const planned = (): Record<string, unknown>[] => played.inputsOf('plan')
const waited = (): Record<string, unknown>[] => played.inputsOf('planWhenAvailable')
const next = (): Promise<unknown> => played.endOf(nextOrder(run))
/** Begins to look for a place, which takes longer. */
async function begin(): Promise<Promise<unknown>[]> {
  const ended = nextOrder(run)
  await played.settled()
  return [ended]
}

beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  played.reset()
  outcomes = []
  found = undefined
  played.answers = {
    plan: () => outcomes.shift(),
    planWhenAvailable: () => found ?? untilCancelled(),
    decide: () => ({
      decision: { kind: 'finish', state: 'cancelled', reason: 'cancelled', message: 'Cancelled.' },
    }),
  }
  run = new JobRun({
    jobId: 'job-1',
    spec: SPEC,
    bundle: null,
    owner: 'ada',
    deployment: 'dep-1',
    submittedAtMs: 0,
  } satisfies JobInput)
  run.resolved = { spec: SPEC, timing: DEFAULT_TIMING } as ResolvedJob
})

const cancel = (): void => run.drains.add({ reason: 'cancelled', windowMs: 1_000 })

describe('the next place of a job', () => {
  it('is the one that is planned, with the limits that it was planned with', async () => {
    outcomes = [PLACE]
    run.limitsVersion = 3
    expect(await next()).toMatchObject({ kind: 'order', order: ORDER, limitsVersion: 3 })
    expect(planned()).toMatchObject([{ jobId: 'job-1', deployment: 'dep-1', attempt: 1 }])
    expect(waited()).toEqual([])
  })

  it('is waited for, and the page says for what', async () => {
    outcomes = [WAIT]
    found = PLACE
    expect(await next()).toMatchObject({ kind: 'order', order: ORDER })
    expect(run.page.status).toMatchObject({ reason: 'waiting-for-capacity', message: 'Out of stock.' })
    // Each question has a record number of its own.
    expect(waited()[0]!.recordSeq).not.toBe(planned()[0]!.recordSeq)
  })

  it('is asked for again with new limits, under the same record number', async () => {
    outcomes = [WAIT]
    const [ended] = await begin()
    run.limitsVersion += 1
    run.page.status.budgetMicroUsd = 7
    found = PLACE
    expect(await played.endOf(ended!)).toMatchObject({ kind: 'order', limitsVersion: run.limitsVersion - 1 })
    expect(waited().map(({ budgetMicroUsd }) => budgetMicroUsd)).toEqual([undefined, 7])
    expect(new Set(waited().map(({ recordSeq }) => recordSeq)).size).toBe(1)
  })

  it('has at least the limits that changed while it was first asked for', async () => {
    played.answers['plan'] = () => ((run.limitsVersion += 1), WAIT)
    found = PLACE
    expect(await next()).toMatchObject({ kind: 'order', limitsVersion: 1 })
  })

  it('is asked for with the rest of the pause before it', async () => {
    const message = 'Taken back.'
    run.goOn({ kind: 'again', reason: 'interrupted', message, afterMs: 60_000, avoid: [] })
    jest.spyOn(Date, 'now').mockReturnValue(NOW_MS + 20_000)
    outcomes = [PLACE]
    await next()
    expect(planned()).toMatchObject([{ startsInMs: 40_000 }])
  })

  it('is not found while the question for it fails', async () => {
    outcomes = [WAIT]
    played.answers['planWhenAvailable'] = () => Promise.reject(new Error('no worker for a day'))
    await expect(next()).rejects.toThrow('no worker for a day')
  })

  it('is in any pool if a move finds nothing at its target, and the move is then over', async () => {
    run.drains.add({ reason: 'migrated', windowMs: 1_000 }, { backend: 'there' })
    outcomes = [NEVER, PLACE]
    expect(await next()).toMatchObject({ kind: 'order' })
    expect(planned().map(({ target }) => target)).toEqual([{ backend: 'there' }, undefined])
    expect(run.drains.current).toBeNull()
  })

  it.each([
    [undefined, 'Nothing fits.'],
    ['Ask for less.', 'Nothing fits. Ask for less.'],
  ])('is none where no offer fits, with what to do about it: %s', async (hint, message) => {
    const failure = { class: 'invalid', message: 'Nothing fits.', ...(hint && { hint }) } as const
    outcomes = [{ ...NEVER, failure }]
    expect(await next()).toEqual({ kind: 'finish', state: 'failed', reason: 'no-placement', message })
  })
})

describe('a job that is to stop while no attempt runs', () => {
  const finished = { kind: 'finish', state: 'cancelled' }

  it('plans nothing', async () => {
    cancel()
    expect(await next()).toMatchObject(finished)
    expect(planned()).toEqual([])
    expect(played.inputsOf('decide')).toMatchObject([
      { end: { kind: 'stopped', by: 'cancelled' }, drainReason: 'cancelled', offerKeys: [], attempt: 0 },
    ])
  })

  it('takes no place that was found meanwhile', async () => {
    outcomes = [PLACE]
    const ended = nextOrder(run)
    cancel()
    expect(await played.endOf(ended)).toMatchObject(finished)
  })

  it('fails loudly if the policy would go on', async () => {
    cancel()
    played.answers['decide'] = () => ({ decision: { kind: 'again' } })
    await expect(next()).rejects.toThrow('must finish')
  })

  it('waits no longer', async () => {
    outcomes = [WAIT]
    const [ended] = await begin()
    cancel()
    expect(await played.endOf(ended!)).toMatchObject(finished)
    expect(waited()).toHaveLength(1)
  })
})
