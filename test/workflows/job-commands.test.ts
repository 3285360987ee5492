/** What a job can be told, by its handlers alone: what each changes, and what it refuses. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { JobInput, ResolvedJob } from '../../core/messages'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { microUsd } from '../../core/money/money'
import type * as Commands from '../../workflows/job/commands'
import type * as Runs from '../../workflows/job/run'
import { SPEC } from '../support/spec'
import { played, playedActivities, playedWorkflow } from './played-job'
import { CancellationScope } from './scopes'

jest.mock('@temporalio/workflow', () => playedWorkflow())
jest.mock('../../workflows/activities', () => playedActivities())
const { listen } = jest.requireActual<typeof Commands>('../../workflows/job/commands')
const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job/run')

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const { drainMs, powerOffMs } = DEFAULT_TIMING
const INPUT: JobInput = {
  jobId: 'job-1',
  spec: SPEC,
  bundle: null,
  owner: 'ada',
  deployment: 'dep-1',
  submittedAtMs: NOW_MS,
}

let run: Runs.JobRun

beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  played.reset()
  run = new JobRun(INPUT)
  run.resolved = { spec: SPEC, timing: DEFAULT_TIMING } as ResolvedJob
  run.page.move('running', 'under-way', 'Attempt 1 is under way.')
  Object.assign(run.page.status, { state: 'running' })
  listen(run)
})

const tell = (name: string, argument?: unknown): Promise<unknown> => played.endOf(played.tell(name, argument))
const timers = (): number[] => played.timers.map(({ forMs }) => forMs)

describe('cancel', () => {
  it('gives the workload the whole time to save', async () => {
    CancellationScope.root.cancel()
    await played.settled()
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

it('cancelling now is refused once the job is over', async () => {
  run.page.move('succeeded', 'completed', 'Done.')
  await expect(tell('cancelNow')).rejects.toThrow('The job is over (succeeded).')
  expect(run.drains.current).toBeNull()
})

it('a refusal is final: the caller gets it as an invalid request and does not repeat it', async () => {
  await expect(tell('extend', {})).rejects.toMatchObject({
    type: 'invalid',
    nonRetryable: true,
    details: [{ class: 'invalid', message: 'Set a new deadline or a new budget.' }],
  })
})

it('every handler has a description in the Temporal UI', () => {
  for (const [name, { description = '' }] of played.handlers)
    expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z].*\.$/)])
  expect([...played.handlers.keys()].sort()).toEqual(
    ['status', 'retry', 'cancelNow', 'migrate', 'extend', 'interrupt', 'warning'].sort(),
  )
})

it('a warning of the runner is shown with its attempt', async () => {
  const warning = { kind: 'no-checkpoint', text: 'Nothing was saved for 20 min.', sinceMs: 1 }
  run.page.status.attempts = [{ number: 1, state: 'provisioning', reason: 'launching' } as never]
  await tell('warning', { attempt: 1, warning })
  expect(run.page.status.attempts).toMatchObject([{ warning }])
  expect(played.details).toContain('Nothing was saved for 20 min.')
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

  it('needs no running machine: one that starts can be left for another', async () => {
    Object.assign(run.page.status, { state: 'provisioning' })
    await expect(tell('migrate', {})).resolves.toMatchObject({ message: expect.stringMatching(/^Moving/) })
  })

  it('to one of several backends that the job allows is accepted, also before the job is resolved', async () => {
    const backends = [{ backend: 'ec2' }, { backend: 'modal' }]
    run = new JobRun({ ...INPUT, spec: { ...SPEC, backends } })
    Object.assign(run.page.status, { state: 'running' })
    listen(run)
    await tell('migrate', { to: { backend: 'modal' } })
    expect(run.drains.target).toEqual({ backend: 'modal' })
    await expect(tell('migrate', { to: { backend: 'lambda' } })).rejects.toThrow(
      'The job allows only ec2, modal: it cannot move to lambda.',
    )
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
    expect(timers()).toEqual([HOUR_MS - drainMs - powerOffMs])
    await tell('extend', { deadlineAtMs: deadlineAtMs + MINUTE_MS })
    expect(run.page.status).toMatchObject({ budgetMicroUsd: microUsd(20) })
    expect(run.limitsVersion).toBe(2)
    expect(timers().at(-1)).toBe(HOUR_MS + MINUTE_MS - drainMs - powerOffMs)
  })

  it('has the money of the month promised first, and changes nothing where that is refused', async () => {
    run.resolved = { ...run.resolved, month: '2026-11' }
    await tell('extend', { budgetMicroUsd: microUsd(20) })
    expect(played.inputsOf('promiseBudget')).toEqual([
      { jobId: 'job-1', owner: 'ada', month: '2026-11', microUsd: microUsd(20) },
    ])
    played.answers['promiseBudget'] = () => Promise.reject(new Error('No money is left.'))
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

  it.each([
    [{ deadlineAtMs }, 'Now the deadline is 2026-11-21T13:00:00Z.'],
    [{ budgetMicroUsd: microUsd(20) }, 'Now the budget is $20.00.'],
  ])('of one limit names that one: %j', async (update, message) => {
    expect(await tell('extend', update)).toEqual({ message })
    expect(played.inputsOf('promiseBudget')).toEqual([])
  })

  it('before the job is resolved arms no timer yet, and reserves money only once its month is known', async () => {
    run = new JobRun(INPUT)
    listen(run)
    await tell('extend', { deadlineAtMs })
    expect([run.page.status.deadlineAtMs, played.timers]).toEqual([deadlineAtMs, []])
    const told = played.tell('extend', { budgetMicroUsd: microUsd(20) })
    await played.settled()
    expect(run.page.status.budgetMicroUsd).toBeUndefined()
    run.resolved = { spec: SPEC, timing: DEFAULT_TIMING, month: '2026-11' } as ResolvedJob
    expect(await played.endOf(told)).toEqual({ message: 'Now the budget is $20.00.' })
    expect(played.inputsOf('promiseBudget')).toHaveLength(1)
  })

  it('is refused to a job that ends before it is resolved, or while money is reserved', async () => {
    run = new JobRun(INPUT)
    listen(run)
    const early = played.tell('extend', { budgetMicroUsd: microUsd(20) })
    await played.settled()
    run.page.move('cancelled', 'cancelled', 'Cancelled.')
    await expect(played.endOf(early)).rejects.toThrow('The job is over (cancelled).')
    expect(played.asked).toEqual([])
    run = new JobRun(INPUT)
    run.resolved = { spec: SPEC, timing: DEFAULT_TIMING, month: '2026-11' } as ResolvedJob
    listen(run)
    played.answers['promiseBudget'] = () => run.page.move('cancelled', 'cancelled', 'Cancelled.')
    await expect(tell('extend', { budgetMicroUsd: microUsd(20) })).rejects.toThrow(
      'The job is over (cancelled).',
    )
    expect(run.page.status.budgetMicroUsd).toBeUndefined()
  })

  it('is refused to a job that is being stopped, and not to one that only moves', async () => {
    run.drains.add({ reason: 'migrated', windowMs: drainMs })
    await tell('extend', { deadlineAtMs })
    run.drains.add({ reason: 'cancelled', windowMs: drainMs })
    await expect(tell('extend', { deadlineAtMs })).rejects.toThrow(/being stopped; continue it as a new job/)
  })
})

describe('an interruption', () => {
  function rehearse(): Runs.JobRun {
    const rehearsal = new JobRun({ ...INPUT, isRehearsal: true })
    rehearsal.page.status.attempts = [
      ...[1, 2].map((number) => ({
        number,
        backend: 'there',
        state: 'failed',
        reason: 'gone',
        endedAtMs: 1,
      })),
      { number: 3, backend: 'here', state: 'provisioning', reason: 'launching' },
    ] as never[]
    listen(rehearsal)
    return rehearsal
  }

  it.each([
    [null, 'The machine of attempt 3 is taken back without notice.'],
    [0, 'The machine of attempt 3 got notice that it ends in 0s.'],
    [120_000, 'The machine of attempt 3 got notice that it ends in 2m.'],
  ])('takes back the newest machine of a rehearsal, with the notice %s', async (noticeMs, message) => {
    rehearse()
    expect(await tell('interrupt', { attempt: 3, noticeMs })).toEqual({ message })
    expect(played.inputsOf('interrupt')).toEqual([
      { backend: 'here', jobId: 'job-1', attempt: 3, noticeMs, recordSeq: 2 },
    ])
  })

  it('says why if its backend refuses it', async () => {
    rehearse()
    played.answers['interrupt'] = () => Promise.reject(new Error('The machine is gone.'))
    await expect(tell('interrupt', { attempt: 3, noticeMs: null })).rejects.toThrow('The machine is gone.')
  })

  it('is refused once the job is over, and of an attempt that has ended', async () => {
    const rehearsal = rehearse()
    await expect(tell('interrupt', { attempt: 2, noticeMs: null })).rejects.toThrow(/is not running/)
    rehearsal.page.move('cancelled', 'cancelled', 'Cancelled.')
    await expect(tell('interrupt', { attempt: 3, noticeMs: null })).rejects.toThrow(
      'The job is over (cancelled).',
    )
  })

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
