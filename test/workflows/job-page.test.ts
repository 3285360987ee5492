import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { DRAIN_REASONS, type DrainReason } from '../../core/documents'
import type { JobInput } from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { SPEC } from '../support/spec'
import type * as Pages from '../../workflows/job/page'

/** The search attributes that were set, in order. */
let published: unknown[]

jest.mock('@temporalio/workflow', () => ({
  defineSignal: () => 'signal',
  defineQuery: () => 'query',
  setHandler: () => undefined,
  setCurrentDetails: () => undefined,
  workflowInfo: () => ({ runId: 'run-1' }),
}))
jest.mock('../../workflows/attributes', () => ({
  setAttributes: (attributes: unknown) => published.push(attributes),
}))
const { JobPage } = jest.requireActual<typeof Pages>('../../workflows/job/page')

const INPUT: JobInput = {
  jobId: 'job-1',
  spec: SPEC,
  bundle: null,
  owner: 'ada',
  deployment: 'dep-1',
  submittedAtMs: 0,
}
const ORDER = {
  jobId: 'job-1',
  attempt: 1,
  backend: 'here',
  capacityType: 'spot',
  offers: [],
} as unknown as Order

let page: Pages.JobPage

beforeEach(() => {
  published = []
  page = new JobPage(INPUT)
})

describe('the page of a job', () => {
  const SHOWN: Record<DrainReason, [reason: string, message: RegExp]> = {
    cancelled: ['cancelling', /^Cancelled:/],
    migrated: ['migrating', /^Moving:/],
    deadline: ['deadline-reached', /^The deadline is near:/],
    budget: ['budget-reached', /^The budget is nearly used up:/],
    expired: ['reservation-ended', /^The time of its machine is nearly up:/],
    superseded: ['attempt-ended-by-hand', /terminated by hand/],
  }

  it.each(DRAIN_REASONS)('shows why the job is being stopped: %s', (reason) => {
    page.begin(ORDER, [])
    page.stopping(reason)
    const [shown, message] = SHOWN[reason]
    expect(page.status).toMatchObject({ state: 'stopping', reason: shown })
    expect(page.status.message).toMatch(message)
    expect(published.at(-1)).toEqual({ state: 'stopping', reason: shown })
  })

  it('publishes each change once, and leaves the index to the next step between two attempts', () => {
    page.begin(ORDER, ['cheapest'])
    expect(published).toEqual([{ state: 'running', reason: 'under-way', backend: 'here:spot' }])
    page.move('running', 'under-way', 'Other words.')
    expect(page.status.message).toBe('Other words.')
    page.recovering('interrupted', 'Taken back.')
    expect(published).toHaveLength(1)
    expect(page.status).toMatchObject({ state: 'recovering', placementReasons: [] })
    page.trouble({ class: 'transient', message: 'no store' })
    expect(published.at(-1)).toEqual({ state: 'recovering', reason: 'interrupted' })
    page.trouble(undefined)
    expect(published).toHaveLength(2)
  })

  it('has the newest attempts only, and counts them all', () => {
    for (let attempt = 1; attempt <= 60; attempt += 1) page.begin({ ...ORDER, attempt }, [])
    expect(page.status.attempts.map(({ number }) => number)).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 11),
    )
    expect(page.status.attemptsTotal).toBe(60)
  })

  it('changes its words without an event once a checkpoint is copied', () => {
    const checkpoint = { id: '000000000005-0', step: 5, attempt: 0 }
    page.copied({ checkpoint } as never)
    expect(page.status).toMatchObject({ checkpoint, reason: 'planning', message: 'Looking for an offer.' })
    expect(published).toEqual([])
  })

  it('keeps the trouble of the moment out of the record', () => {
    page.trouble({ class: 'transient', message: 'no store' })
    expect(page.status.trouble).toBe('no store')
    expect(page.settledStatus.trouble).toBeUndefined()
    expect(page.status.trouble).toBe('no store')
  })

  it('says of a rehearsal that it is one, and of no other job', () => {
    expect(page.status.isRehearsal).toBeUndefined()
    expect(new JobPage({ ...INPUT, isRehearsal: true }).status).toHaveProperty('isRehearsal', true)
  })

  it('has no reasons for a place while it recovers', () => {
    page.begin(ORDER, ['cheapest'])
    page.move('recovering', 'interrupted', 'Taken back.')
    expect(page.status).toMatchObject({ state: 'recovering', placementReasons: [] })
  })

  it('leaves no final state', () => {
    page.begin(ORDER, [])
    page.move('succeeded', 'completed', 'Done.')
    expect(page.isOver).toBe(true)
    page.move('running', 'under-way', 'Again.')
    expect(page.status).toMatchObject({ state: 'succeeded', message: 'Done.' })
  })

  it('adds up what attempts cost, and shows a warning of the attempt that runs only', () => {
    page.begin(ORDER, [])
    const warning = { kind: 'no-checkpoint', text: 'None.', sinceMs: 1 } as const
    page.warned({ attempt: 2, warning })
    expect(page.status.attempts[0]?.warning).toBeUndefined()
    page.warned({ attempt: 1, warning })
    expect(page.status.attempts[0]).toMatchObject({ warning })
    page.warned({ attempt: 1, warning: null })
    expect(page.status.attempts[0]?.warning).toBeUndefined()
    const settlement = { end: { kind: 'succeeded' }, handle: null, artifacts: [], phases: [] }
    page.settled({ ...settlement, costMicroUsd: 30 } as never)
    page.settled({ ...settlement, costMicroUsd: 12 } as never)
    expect(page.status.spentMicroUsd).toBe(42)
  })

  it('says how long an attempt is held back, with the reason of the pause', () => {
    jest.useFakeTimers({ now: Date.UTC(2026, 10, 21, 12) })
    page.begin(ORDER, [], { forMs: 60_000, reason: 'interrupted', message: 'Taken back.' })
    expect(page.status).toMatchObject({
      reason: 'interrupted',
      message: 'Taken back. Attempt 1 waits until 2026-11-21T12:01:00Z.',
    })
    jest.useRealTimers()
  })
})
