import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { JobInput, ResolvedJob } from '../../core/messages'
import type { Pins } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type * as Runs from '../../workflows/job/run'

jest.mock('@temporalio/workflow', () => ({
  defineSignal: () => 'signal',
  defineQuery: () => ({}),
  setHandler: () => undefined,
  setCurrentDetails: () => undefined,
  upsertSearchAttributes: () => undefined,
  patched: () => true,
  workflowInfo: () => ({ runId: 'run-1' }),
}))

const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job/run')

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const INPUT: JobInput = {
  jobId: 'job-a',
  spec: { name: 'train' } as JobSpec,
  bundle: null,
  owner: 'me',
  deployment: 'dep-0',
  submittedAtMs: NOW_MS,
}
const WHY = { reason: 'workload-failed', message: 'Exit code 3.' } as const

beforeEach(() => {
  jest.useFakeTimers({ now: NOW_MS })
})
afterEach(() => {
  jest.useRealTimers()
})

/** A run after an attempt, that is to wait and to leave an offer alone. */
function pausedRun(afterMs: number): Runs.JobRun {
  const run = new JobRun(INPUT)
  run.resolved = {} as ResolvedJob
  const avoid = [{ offerKey: 'scripted/spot/v100/a', forMs: 3 * MINUTE_MS, why: 'capacity' as const }]
  run.goOn({ kind: 'again', ...WHY, afterMs, avoid })
  return run
}

describe('what an order has pinned', () => {
  const order = (backend: string, pins?: Pins): Order =>
    ({ backend, offers: [{ ...(pins === undefined ? {} : { pins }) }] }) as unknown as Order

  it('is kept by backend and by name, in a fresh history too', () => {
    const run = pausedRun(0)
    expect(run.pins).toBeUndefined()
    run.pin(order('local'))
    expect(run.carry().pins).toBeUndefined()
    run.pin(order('cloud', { 'image/x86_64': 'one' }))
    run.pin(order('cloud', { 'image/arm64': 'two' }))
    run.pin(order('other', { 'image/x86_64': 'three' }))
    const pins = {
      cloud: { 'image/x86_64': 'one', 'image/arm64': 'two' },
      other: { 'image/x86_64': 'three' },
    }
    expect(new JobRun({ ...INPUT, carry: run.carry() }).pins).toEqual(pins)
  })
})

describe('what stands against an offer', () => {
  it('is each thing for its own time, the newest of a kind', () => {
    const run = pausedRun(0)
    const offerKey = 'scripted/spot/v100/a'
    const again = (why: 'capacity' | 'interruption', forMs: number): void =>
      run.goOn({ kind: 'again', ...WHY, afterMs: 0, avoid: [{ offerKey, forMs, why }] })
    again('interruption', 10 * MINUTE_MS)
    again('capacity', 2 * MINUTE_MS)
    expect(run.avoid()).toEqual([
      { offerKey, why: 'interruption', forMs: 10 * MINUTE_MS },
      { offerKey, why: 'capacity', forMs: 2 * MINUTE_MS },
    ])
    jest.setSystemTime(NOW_MS + 3 * MINUTE_MS)
    expect(run.avoid()).toMatchObject([{ why: 'interruption', forMs: 7 * MINUTE_MS }])
    jest.setSystemTime(NOW_MS + 10 * MINUTE_MS)
    expect(run.avoid()).toEqual([])
  })
})

it('what is avoided elsewhere, or renewed together with other things, is kept once each', () => {
  const run = pausedRun(0)
  const [near, far] = ['scripted/spot/v100/a', 'scripted/spot/v100/b']
  const avoid = [
    { offerKey: far, forMs: MINUTE_MS, why: 'capacity' as const },
    { offerKey: near, forMs: MINUTE_MS, why: 'quota' as const },
  ]
  run.goOn({ kind: 'again', ...WHY, afterMs: 0, avoid })
  const first = { offerKey: near, forMs: 3 * MINUTE_MS, why: 'capacity' }
  expect(run.avoid()).toEqual([first, ...avoid])
  const renewed = { ...avoid[0]!, forMs: 2 * MINUTE_MS }
  run.goOn({ kind: 'again', ...WHY, afterMs: 0, avoid: [renewed, { ...avoid[1]!, why: 'preference' }] })
  expect(run.avoid()).toEqual([first, avoid[1], renewed, { ...avoid[1]!, why: 'preference' }])
})

describe('the pause before the next order', () => {
  it('counts from the decision, whatever else takes its time meanwhile', () => {
    const run = pausedRun(5 * MINUTE_MS)
    expect(run.pause).toEqual({ ...WHY, forMs: 5 * MINUTE_MS })
    jest.setSystemTime(NOW_MS + 2 * MINUTE_MS)
    expect(run.pause).toEqual({ ...WHY, forMs: 3 * MINUTE_MS })
    jest.setSystemTime(NOW_MS + 5 * MINUTE_MS)
    expect(run.pause).toBeUndefined()
  })

  it('is none where the decision wants none', () => {
    expect(pausedRun(0).pause).toBeUndefined()
  })

  it('continues in a fresh history, with what is still to be left alone', () => {
    const run = pausedRun(5 * MINUTE_MS)
    jest.setSystemTime(NOW_MS + MINUTE_MS)
    run.ledger = { ...EMPTY_LEDGER, attempts: 3, failures: 2 }
    run.page.status.deadlineAtMs = NOW_MS + 60 * MINUTE_MS
    const carry = run.carry()
    expect(carry).toMatchObject({ ledger: run.ledger, pause: { ...WHY, forMs: 4 * MINUTE_MS } })
    jest.setSystemTime(NOW_MS + MINUTE_MS + SECOND_MS)
    const next = new JobRun({ ...INPUT, carry })
    expect(next.pause).toEqual({ ...WHY, forMs: 4 * MINUTE_MS })
    expect(next.avoid()).toMatchObject([{ forMs: 2 * MINUTE_MS }])
    expect(next.nextSeq()).toBe(run.nextSeq())
    expect(next.ledger).toEqual({ ...EMPTY_LEDGER, attempts: 3, failures: 2 })
    expect(next.page.status).toMatchObject({ deadlineAtMs: NOW_MS + 60 * MINUTE_MS })
    expect(next.isResolved).toBe(true)
  })
})
