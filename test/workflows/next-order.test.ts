/** How a job finds its next place: asked once, then as long as it takes, and what ends that. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { DecideInput, PlanInput, PlanOutcome } from '../../core/activities'
import type { JobInput, ResolvedJob } from '../../core/messages'
import type { Order } from '../../core/plan'
import { DEFAULT_TIMING } from '../../core/timing'
import type * as Runs from '../../workflows/job-run'
import type * as Orders from '../../workflows/next-order'
import { SPEC } from '../support/spec'

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
  ...{ kind: 'never', reason: 'no-placement' },
  failure: { class: 'invalid', message: 'Nothing fits.' },
}

let planned: PlanInput[]
let waited: PlanInput[]
let decided: DecideInput[]
let outcomes: PlanOutcome[]
/** What the waiting question answers; it does not while missing. */
let found: PlanOutcome | undefined

jest.mock('@temporalio/workflow', () => {
  const none = (): void => undefined
  class CancellationScope {
    consideredCancelled = false
    run = (work: () => unknown) => work()
    cancel = () => void (this.consideredCancelled = true)
  }
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope,
    condition: async (isMet: () => boolean) => {
      for (let turn = 0; turn < 100 && !isMet(); turn += 1) await new Promise(setImmediate)
      return isMet() || new Promise(() => undefined)
    },
    ...{ defineSignal: none, defineQuery: none, setHandler: none },
    ...{ setCurrentDetails: none, upsertSearchAttributes: none },
    workflowInfo: () => ({ runId: 'run-1' }),
  }
})
jest.mock('../../workflows/activities', () => ({
  plan: async (_page: unknown, input: PlanInput) => (planned.push(input), outcomes.shift()),
  waiting: {
    planWhenAvailable: async (input: PlanInput) => {
      waited.push(input)
      if (found !== undefined) return found
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
      throw new Error('cancelled')
    },
  },
  decide: async (_page: unknown, input: DecideInput) => {
    decided.push(input)
    return { decision: { kind: 'finish', state: 'cancelled', reason: 'cancelled', message: 'Cancelled.' } }
  },
}))
const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job-run')
const { nextOrder } = jest.requireActual<typeof Orders>('../../workflows/next-order')

let run: Runs.JobRun

beforeEach(() => {
  planned = []
  waited = []
  decided = []
  outcomes = []
  found = undefined
  run = new JobRun({
    ...{ jobId: 'job-1', spec: SPEC, bundle: null, owner: 'ada', deployment: 'dep-1', submittedAtMs: 0 },
  } satisfies JobInput)
  run.resolved = { spec: SPEC, timing: DEFAULT_TIMING } as ResolvedJob
})

const cancel = (): void => run.drains.add({ reason: 'cancelled', windowMs: 1_000 })

describe('the next place of a job', () => {
  it('is the one that is planned, with the limits that it was planned with', async () => {
    outcomes = [PLACE]
    run.limitsVersion = 3
    expect(await nextOrder(run)).toMatchObject({ kind: 'order', order: ORDER, limitsVersion: 3 })
    expect(planned).toMatchObject([{ jobId: 'job-1', deployment: 'dep-1', attempt: 1 }])
    expect(waited).toEqual([])
  })

  it('is waited for, and the page says for what', async () => {
    outcomes = [WAIT]
    found = PLACE
    expect(await nextOrder(run)).toMatchObject({ kind: 'order', order: ORDER })
    expect(run.page.status).toMatchObject({ reason: 'waiting-for-capacity', message: 'Out of stock.' })
    // Each question has a record number of its own.
    expect(waited[0]!.recordSeq).not.toBe(planned[0]!.recordSeq)
  })

  it('is asked for again with new limits, under the same record number', async () => {
    outcomes = [WAIT]
    const next = nextOrder(run)
    await new Promise(setImmediate)
    run.limitsVersion += 1
    run.page.status.budgetMicroUsd = 7
    found = PLACE
    expect(await next).toMatchObject({ kind: 'order', limitsVersion: run.limitsVersion - 1 })
    expect(waited.map(({ budgetMicroUsd }) => budgetMicroUsd)).toEqual([undefined, 7])
    expect(new Set(waited.map(({ recordSeq }) => recordSeq)).size).toBe(1)
  })

  it('is in any pool if a move finds nothing at its target, and the move is then over', async () => {
    run.drains.add({ reason: 'migrated', windowMs: 1_000 }, { backend: 'there' })
    outcomes = [NEVER, PLACE]
    expect(await nextOrder(run)).toMatchObject({ kind: 'order' })
    expect(planned.map(({ target }) => target)).toEqual([{ backend: 'there' }, undefined])
    expect(run.drains.current).toBeNull()
  })

  it.each([
    [undefined, 'Nothing fits.'],
    ['Ask for less.', 'Nothing fits. Ask for less.'],
  ])('is none where no offer fits, with what to do about it: %s', async (hint, message) => {
    const failure = { class: 'invalid', message: 'Nothing fits.', ...(hint && { hint }) } as const
    outcomes = [{ ...NEVER, failure }]
    expect(await nextOrder(run)).toEqual({ kind: 'finish', state: 'failed', reason: 'no-placement', message })
  })
})

describe('a job that is to stop while no attempt runs', () => {
  const finished = { kind: 'finish', state: 'cancelled' }

  it('plans nothing', async () => {
    cancel()
    expect(await nextOrder(run)).toMatchObject(finished)
    expect(planned).toEqual([])
    expect(decided).toMatchObject([{ end: { kind: 'stopped', by: 'cancelled' }, drainReason: 'cancelled' }])
  })

  it('takes no place that was found meanwhile', async () => {
    outcomes = [PLACE]
    const next = nextOrder(run)
    cancel()
    expect(await next).toMatchObject(finished)
  })

  it('waits no longer', async () => {
    outcomes = [WAIT]
    const next = nextOrder(run)
    await new Promise(setImmediate)
    cancel()
    expect(await next).toMatchObject(finished)
    expect(waited).toHaveLength(1)
  })
})
