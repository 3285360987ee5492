/** What a job can be told, by its handlers alone: what each changes, and what it refuses. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { PromiseInput } from '../../core/treasury'
import type { JobInput, ResolvedJob } from '../../core/messages'
import { HOUR_MS, MINUTE_MS } from '../../core/time'
import { DEFAULT_TIMING } from '../../core/timing'
import { microUsd } from '../../core/money'
import type * as Commands from '../../workflows/job-commands'
import type * as Runs from '../../workflows/job-run'
import { SPEC } from '../support/spec'

interface Handler {
  handle: (argument?: unknown) => unknown
  validate: (argument?: unknown) => void
}

const handlers = new Map<string, Handler>()
let cancel: () => void
let timers: number[]
let promised: PromiseInput[]
let refusal: Error | undefined

jest.mock('@temporalio/workflow', () => {
  class CancellationScope {
    static nonCancellable = (work: () => unknown) => work()
    static current = () => ({
      cancelRequested: new Promise((_, reject) => (cancel = () => reject(new Error('cancelled')))),
    })
    run = (work: () => unknown) => work()
    cancel = () => undefined
  }
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope,
    condition: async () => true,
    sleep: (forMs: number) => (timers.push(forMs), new Promise(() => undefined)),
    defineUpdate: (name: string) => name,
    defineSignal: (name: string) => name,
    defineQuery: (name: string) => name,
    setHandler: (name: string, handle: Handler['handle'], options?: { validator?: Handler['validate'] }) =>
      handlers.set(name, { handle, validate: options?.validator ?? (() => undefined) }),
    setCurrentDetails: () => undefined,
    upsertSearchAttributes: () => undefined,
    workflowInfo: () => ({ runId: 'run' }),
  }
})
jest.mock('../../workflows/activities', () => ({
  orchestrator: {
    promiseBudget: async (input: PromiseInput) => {
      if (refusal !== undefined) throw refusal
      promised.push(input)
    },
  },
}))
const { listen } = jest.requireActual<typeof Commands>('../../workflows/job-commands')
const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job-run')

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const { drainMs, powerOffMs } = DEFAULT_TIMING
const INPUT: JobInput = {
  ...{ jobId: 'job-1', spec: SPEC, bundle: null, owner: 'ada', deployment: 'dep-1', submittedAtMs: NOW_MS },
}

let run: Runs.JobRun

beforeEach(() => {
  jest.useFakeTimers({ now: NOW_MS })
  handlers.clear()
  timers = []
  promised = []
  refusal = undefined
  run = new JobRun(INPUT)
  run.resolved = { spec: SPEC, timing: DEFAULT_TIMING } as ResolvedJob
  run.page.move('running', 'under-way', 'Attempt 1 is under way.')
  Object.assign(run.page.status, { state: 'running' })
  listen(run)
})
afterEach(() => {
  jest.useRealTimers()
})

/** As the server does it: what the validator refuses is not handled. */
async function tell(name: string, argument?: unknown): Promise<unknown> {
  const { validate, handle } = handlers.get(name)!
  validate(argument)
  return handle(argument)
}

describe('cancel', () => {
  it('gives the workload the whole time to save', async () => {
    cancel()
    await Promise.resolve()
    await Promise.resolve()
    expect(run.drains.current).toEqual({ reason: 'cancelled', windowMs: drainMs })
    expect(run.page.status).toMatchObject({ state: 'stopping', reason: 'cancelling' })
  })

  it('now gives it five seconds, and two where it was asked before', async () => {
    expect(await tell('cancelNow')).toEqual({ message: 'Cancelling; the workload has 5 s to save.' })
    expect(run.drains.current).toEqual({ reason: 'cancelled', windowMs: 5_000 })
    expect(run.page.status).toMatchObject({ state: 'stopping', reason: 'cancelling' })
    expect(await tell('cancelNow')).toEqual({ message: 'Cancelling; the workload has 2 s to save.' })
    expect(run.drains.current).toEqual({ reason: 'cancelled', windowMs: 2_000 })
  })
})

describe('a move', () => {
  it('asks to save first, and remembers where to', async () => {
    const to = { backend: 'scripted', capacityType: 'spot' }
    expect(await tell('migrate', { to })).toEqual({
      message: 'Moving to scripted:spot; the workload saves first.',
    })
    expect(run.drains).toMatchObject({ current: { reason: 'migrated', windowMs: drainMs }, target: to })
    expect(await tell('migrate', {})).toEqual({
      message: 'Moving to the best other place; the workload saves first.',
    })
  })

  it.each([
    [
      'is being stopped',
      { current: { reason: 'cancelled', windowMs: 1 } },
      {},
      /being stopped and cannot be moved/,
    ],
    ['waits', {}, { state: 'pending' }, /Nothing to move: the job is pending/],
    ['is over', {}, { state: 'succeeded' }, /The job is over \(succeeded\)/],
  ])('is refused while the job %s', async (_, requests, status, words) => {
    Object.assign(run.drains, requests)
    Object.assign(run.page.status, status)
    await expect(tell('migrate', {})).rejects.toThrow(words)
  })

  it.each([
    [{ backend: 'ec2' }, { backend: 'ec2', capacityType: 'spot' }, true],
    [{ backend: 'ec2', capacityType: 'spot' }, { backend: 'ec2' }, true],
    [{ backend: 'ec2', capacityType: 'spot' }, { backend: 'ec2', capacityType: 'on-demand' }, false],
    [{ backend: 'ec2' }, { backend: 'modal' }, false],
  ] as const)('of a job that allows only %j to %j: %s', async (allowed, to, isAccepted) => {
    run.resolved = { ...run.resolved, spec: { ...SPEC, backends: [allowed] } }
    const told = tell('migrate', { to })
    await (isAccepted
      ? expect(told).resolves.toMatchObject({ message: expect.stringMatching(/^Moving to/) })
      : expect(told).rejects.toThrow(/^The job allows only \S+: it cannot move to/))
  })
})

describe('an extension', () => {
  const deadlineAtMs = NOW_MS + HOUR_MS

  it('sets the deadline and its timer anew, and has the machine read both limits', async () => {
    const update = { deadlineAtMs, budgetMicroUsd: microUsd(20) }
    expect(await tell('extend', update)).toEqual({
      message: 'Now the deadline is 2026-11-21T13:00:00Z and the budget is $20.00.',
    })
    expect(run.page.status).toMatchObject(update)
    expect(run.limitsVersion).toBe(1)
    expect(timers).toEqual([HOUR_MS - drainMs - powerOffMs])
    await tell('extend', { deadlineAtMs: deadlineAtMs + MINUTE_MS })
    expect(run.page.status).toMatchObject({ budgetMicroUsd: microUsd(20) })
    expect(run.limitsVersion).toBe(2)
    expect(timers.at(-1)).toBe(HOUR_MS + MINUTE_MS - drainMs - powerOffMs)
  })

  it('has the money of the month promised first, and changes nothing where that is refused', async () => {
    run.resolved = { ...run.resolved, month: '2026-11' }
    await tell('extend', { budgetMicroUsd: microUsd(20) })
    expect(promised).toEqual([{ jobId: 'job-1', owner: 'ada', month: '2026-11', microUsd: microUsd(20) }])
    refusal = new Error('No money is left.')
    await expect(tell('extend', { budgetMicroUsd: microUsd(30) })).rejects.toThrow('No money is left.')
    expect(run.page.status.budgetMicroUsd).toBe(microUsd(20))
    expect(run.limitsVersion).toBe(1)
  })

  it.each([
    ['of nothing', {}, /Set a new deadline or a new budget/],
    ['into the past', { deadlineAtMs: NOW_MS }, /has already passed/],
    [
      'that leaves no time to save and stop',
      { deadlineAtMs: NOW_MS + drainMs + powerOffMs },
      /is too soon: saving and stopping take up to/,
    ],
    ['to what is spent', { budgetMicroUsd: microUsd(5) }, /\$5.00 is not more than the \$5.00 already spent/],
  ])('%s is refused', async (_, update, words) => {
    run.page.status.spentMicroUsd = microUsd(5)
    await expect(tell('extend', update)).rejects.toThrow(words)
    expect(run.limitsVersion).toBe(0)
  })

  it('is refused to a job that is being stopped, and not to one that only moves', async () => {
    run.drains.add({ reason: 'migrated', windowMs: drainMs })
    await tell('extend', { deadlineAtMs })
    run.drains.add({ reason: 'cancelled', windowMs: drainMs })
    await expect(tell('extend', { deadlineAtMs })).rejects.toThrow(/being stopped; continue it as a new job/)
  })
})

describe('an interruption', () => {
  it('is refused to a job that is no rehearsal, of an attempt that does not run, and with a notice that is none', async () => {
    await expect(tell('interrupt', { attempt: 1, noticeMs: null })).rejects.toThrow(/crucible rehearse/)
    const rehearsal = new JobRun({ ...INPUT, isRehearsal: true })
    listen(rehearsal)
    await expect(tell('interrupt', { attempt: 1, noticeMs: null })).rejects.toThrow(/is not running/)
    rehearsal.page.status.attempts = [{ number: 1, backend: 'here' } as never]
    await expect(tell('interrupt', { attempt: 2, noticeMs: null })).rejects.toThrow(
      /Attempt 2 is not running/,
    )
    await expect(tell('interrupt', { attempt: 1, noticeMs: -1 })).rejects.toThrow(/whole milliseconds/)
    await expect(tell('interrupt', { attempt: 1, noticeMs: 1.5 })).rejects.toThrow(/whole milliseconds/)
    rehearsal.page.status.attempts[0]!.endedAtMs = NOW_MS
    await expect(tell('interrupt', { attempt: 1, noticeMs: 0 })).rejects.toThrow(/is not running/)
  })
})
