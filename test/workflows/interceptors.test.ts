/** What a workflow refuses to do for a stranger, and what it signs; `strangers.e2e.test.ts` shows the same with a server. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { answering, refused, stamped, unstamped, type Stamp } from '../../core/stamps'
import type * as Interceptors from '../../workflows/interceptors'

const NOW_MS = Date.UTC(2026, 10, 21)
const sandbox = globalThis as { crucibleRequiresSeals?: boolean }

let warnings: string[]
let continuedFrom: string | undefined
let firstRun: string
let workflowId: string
let isReplayed: boolean

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  ...jest.requireActual<object>('@temporalio/workflow/lib/errors'),
  CancellationScope: {},
  defineSignal: () => undefined,
  log: { warn: (text: string) => warnings.push(text) },
  patched: () => !isReplayed,
  workflowInfo: () => ({
    workflowType: 'job',
    workflowId,
    startTime: new Date(NOW_MS),
    runId: 'run-1',
    firstExecutionRunId: firstRun,
    parent: { runId: 'run-0' },
    continuedFromExecutionRunId: continuedFrom,
  }),
}))
const { interceptors } = jest.requireActual<typeof Interceptors>('../../workflows/interceptors')

beforeEach(() => {
  warnings = []
  continuedFrom = undefined
  isReplayed = false
  workflowId = 'job/a'
  firstRun = '01a22720-b20c-7215-9e64-000000000001'
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  sandbox.crucibleRequiresSeals = true
})
afterEach(() => {
  delete sandbox.crucibleRequiresSeals
})

const INPUT = { deployment: 'dep-1', spec: {} }
const START: Stamp = { kind: 'start', name: 'job', atMs: NOW_MS }
const headers = {}
/** Workflows of one schedule. */
const [OWN_RUN, OTHER_RUN] = ['retrain/a-2027-01-02T00:00:00Z', 'retrain/a-2027-01-01T00:00:00Z']
const result = async (input: unknown): Promise<unknown> => input

function made() {
  const { inbound, outbound } = interceptors()
  const [{ execute, handleSignal, handleUpdate, validateUpdate }] = inbound as [
    Required<NonNullable<typeof inbound>[number]>,
  ]
  const [out] = outbound as [Required<NonNullable<typeof outbound>[number]>]
  const updated = {
    handle: (name: string, ...args: unknown[]) =>
      handleUpdate({ name, updateId: 'u-1', args, headers }, result),
    check: (name: string, ...args: unknown[]) =>
      validateUpdate({ name, updateId: 'u-1', args, headers }, () => undefined),
  }
  return {
    start: (...args: unknown[]) => execute({ args, headers }, result),
    signal: (...args: unknown[]) => handleSignal({ signalName: 'drain', args, headers }, result as never),
    update: (...args: unknown[]) => updated.handle('migrate', ...args),
    check: (...args: unknown[]) => updated.check('migrate', ...args),
    updated,
    out,
  }
}

describe('a workflow of a deployment with a key', () => {
  it('runs on an input that was signed for it, without the stamp', async () => {
    expect(await made().start(...stamped([INPUT], START))).toMatchObject({ args: [INPUT] })
  })

  it.each<[string, unknown[]]>([
    ['is not signed', [INPUT]],
    ['was signed for another type', stamped([INPUT], { ...START, name: 'attempt' })],
    ['could not be opened', stamped([refused('signed with another key')], START)],
  ])('refuses an input that %s', async (_name, args) => {
    await expect(made().start(...args)).rejects.toMatchObject({ type: 'auth', nonRetryable: true })
  })

  it('ignores a signal of a stranger, and says so in its log', async () => {
    const { signal } = made()
    const stamp: Stamp = { kind: 'signal', name: 'drain' }
    expect(await signal(...stamped([1], stamp))).toMatchObject({ args: [1] })
    expect(warnings).toEqual([])
    expect(await signal(1)).toBeUndefined()
    expect(warnings).toEqual([expect.stringContaining('Refused the signal drain: it is not signed.')])
  })

  it('takes a signal once, also in its next run', async () => {
    const { signal, out } = made()
    const stamp: Stamp = { kind: 'signal', name: 'drain', id: 's-1', atMs: NOW_MS }
    const signed = stamped([1], stamp)
    expect(await signal(...signed)).toMatchObject({ args: [1] })
    expect(await signal(...signed)).toBeUndefined()
    const fresh = { options: { workflowType: 'job' }, args: [INPUT], headers } as never
    const { args } = (await out.continueAsNew(fresh, result as never)) as unknown as { args: unknown[] }
    const next = made()
    continuedFrom = 'run-1'
    await next.start(...args)
    expect(await next.signal(...signed)).toBeUndefined()
    expect(await next.signal(...stamped([1], { ...stamp, id: 's-2' }))).toMatchObject({ args: [1] })
    expect(warnings).toHaveLength(2)
  })

  it('takes an update of its earlier run no second time', async () => {
    const { update, out } = made()
    const own = stamped([1], { kind: 'update', name: 'migrate', updateId: 'u-1', atMs: NOW_MS })
    expect(await update(...own)).toMatchObject({ args: [1] })
    const fresh = { options: { workflowType: 'job' }, args: [INPUT], headers } as never
    const { args } = (await out.continueAsNew(fresh, result as never)) as unknown as { args: unknown[] }
    const next = made()
    continuedFrom = 'run-1'
    await next.start(...args)
    expect(() => next.check(...own)).toThrow('it was sent a second time')
    await expect(next.update(...own)).rejects.toMatchObject({ type: 'auth' })
  })

  it('refuses an update of a stranger, whether or not a validator sees it first', async () => {
    const { update, check } = made()
    const own = stamped([1], { kind: 'update', name: 'migrate', updateId: 'u-1', atMs: NOW_MS })
    expect(await update(...own)).toMatchObject({ args: [1] })
    expect(() => check(...own)).not.toThrow()
    await expect(update(1)).rejects.toMatchObject({ type: 'auth' })
    expect(() => check(1)).toThrow('Refused the update migrate')
    const other = stamped([1], { kind: 'update', name: 'migrate', updateId: 'u-2', atMs: NOW_MS })
    await expect(update(...other)).rejects.toMatchObject({ type: 'auth' })
  })

  it('signs what it asks activities, children, other workflows and its next run', async () => {
    isReplayed = true
    const { start, out } = made()
    await start(...stamped([INPUT], START))
    const args = [1]
    const activity = { crucibleStamp: { kind: 'activity', name: 'plan', run: 'run-1', deployment: 'dep-1' } }
    const asked = { activityType: 'plan', args, headers } as never
    const asks = '000000000001'
    expect(await out.scheduleActivity(asked, result)).toMatchObject({
      args: [1, { crucibleStamp: { ...activity.crucibleStamp, asks } }],
    })
    expect(await out.scheduleLocalActivity(asked, result)).toMatchObject({ args: [1, activity] })
    const target = { type: 'child', childWorkflowId: 'job/a/1' }
    const signal = { signalName: 'drain', target, args, headers } as never
    for (const id of ['run-1/1', 'run-1/2'])
      expect(await out.signalWorkflow(signal, result as never)).toMatchObject({
        args: [1, { crucibleStamp: { kind: 'signal', name: 'drain', id, atMs: NOW_MS, to: 'job/a/1' } }],
      })
    const fresh = { options: { workflowType: 'job' }, args, headers } as never
    expect(await out.continueAsNew(fresh, result as never)).toMatchObject({
      args: [1, { crucibleStamp: { kind: 'continue', name: 'job', run: 'run-1' } }],
    })
    const child = { workflowType: 'attempt', options: {}, headers } as never
    const [started] = await out.startChildWorkflowExecution(
      child,
      async (input) => [Promise.resolve(input as never), Promise.resolve()] as never,
    )
    expect(await started).toMatchObject({
      options: { args: [{ crucibleStamp: { kind: 'child', name: 'attempt', run: 'run-1', asks } }] },
    })
  })

  it('takes a result that was signed for its own history, and no copy from another one', async () => {
    const { out } = made()
    const done = { kind: 'refused' }
    const asked = { activityType: 'buy', args: [], headers } as never
    const child = { workflowType: 'buyer', options: {}, headers } as never
    let copy: unknown
    const perform = async ({ args }: { args: unknown[] }): Promise<unknown> => {
      const { stamp } = unstamped(args)
      return (copy = answering(done, stamp))
    }
    const runChild = async ({ options }: { options: { args?: unknown[] } }): Promise<unknown> => [
      Promise.resolve('run-2'),
      perform({ args: options.args! }),
    ]
    const sent = async (): Promise<unknown> => copy
    expect(await out.scheduleActivity(asked, perform)).toEqual(done)
    expect(await out.scheduleActivity(asked, sent)).toEqual(done)
    firstRun = '01a22720-b20c-7215-9e64-000000000002'
    await expect(out.scheduleActivity(asked, sent)).rejects.toThrow(
      'the result of buy: it was signed for another run',
    )
    const [, closed] = await out.startChildWorkflowExecution(child, runChild as never)
    expect(await closed).toEqual(done)
    continuedFrom = firstRun
    const [, again] = await out.startChildWorkflowExecution(
      child,
      async () => [Promise.resolve('run-2'), sent()] as never,
    )
    await expect(again).rejects.toThrow('the result of buyer: it was signed for another run')
  })

  it.each([[{ kind: 'refused' }], [undefined], [null], [0], ['done'], [[1]]])(
    'takes the result %j of an activity only with the name of its own history',
    async (done) => {
      const { out } = made()
      const asked = { activityType: 'release', args: [], headers } as never
      let copy: unknown
      const perform = async ({ args }: { args: unknown[] }): Promise<unknown> =>
        (copy = answering(done, unstamped(args).stamp))
      const sent = async (): Promise<unknown> => JSON.parse(JSON.stringify(copy))
      expect(await out.scheduleActivity(asked, perform)).toEqual(done)
      expect(await out.scheduleActivity(asked, sent)).toEqual(done)
      firstRun = '01a22720-b20c-7215-9e64-000000000002'
      await expect(out.scheduleActivity(asked, sent)).rejects.toThrow('it was signed for another run')
      const bare = async (): Promise<unknown> => done
      await expect(out.scheduleActivity(asked, bare)).rejects.toThrow('it names no run')
      expect(await out.scheduleLocalActivity(asked, bare)).toEqual(done)
      isReplayed = true
      expect(await out.scheduleActivity(asked, bare)).toEqual(done)
    },
  )

  it('takes no update that approves another run of its schedule', async () => {
    workflowId = OWN_RUN
    const { check, update } = made()
    const stamp: Stamp = { kind: 'update', name: 'migrate', updateId: 'u-1', atMs: NOW_MS }
    const other = stamped([1], { ...stamp, to: OTHER_RUN })
    expect(() => check(...other)).toThrow('it was signed for another workflow')
    await expect(update(...other)).rejects.toMatchObject({ type: 'auth' })
    const own = stamped([1], { ...stamp, to: OWN_RUN })
    expect(await update(...own)).toMatchObject({ args: [1] })
  })

  it.each([
    ['approveModel', false],
    ['startNow', false],
    ['skipRun', true],
    ['rejectModel', true],
  ])('asks to upgrade a client whose %s names no run, unless it spends nothing', async (name, isTaken) => {
    workflowId = OWN_RUN
    const { updated } = made()
    const old = stamped([1], { kind: 'update', name, updateId: 'u-1', atMs: NOW_MS })
    const refusal = `Refused the update ${name}: it names no run of its schedule. Upgrade the client that sent it.`
    const check = expect(() => updated.check(name, ...old))
    if (isTaken) check.not.toThrow()
    else check.toThrow(refusal)
    // A history in which an older worker took it replays.
    expect(await updated.handle(name, ...old)).toMatchObject({ args: [1] })
    workflowId = 'retrain/a'
    expect(() => updated.check(name, ...old)).not.toThrow()
  })

  it('takes no signal for another run of its schedule', async () => {
    workflowId = OWN_RUN
    const { signal } = made()
    const stamp: Stamp = { kind: 'signal', name: 'drain', id: 's-1', atMs: NOW_MS }
    expect(await signal(...stamped([1], { ...stamp, to: OTHER_RUN }))).toBeUndefined()
    expect(warnings).toEqual(['Refused the signal drain: it was signed for another workflow.'])
    expect(await signal(...stamped([1], { ...stamp, to: OWN_RUN }))).toMatchObject({ args: [1] })
  })

  it('names its asker in the result of a child, also after it has continued as new', async () => {
    const { start, out } = made()
    const child: Stamp = { kind: 'child', name: 'job', run: 'run-0', asks: 'asker' }
    expect(await start(...stamped([INPUT], child))).toMatchObject({ args: [INPUT], crucibleAnswers: 'asker' })
    const fresh = { options: { workflowType: 'job' }, args: [INPUT], headers } as never
    const { args } = (await out.continueAsNew(fresh, result as never)) as unknown as { args: unknown[] }
    continuedFrom = 'run-1'
    expect(await made().start(...args)).toMatchObject({ args: [INPUT], crucibleAnswers: 'asker' })
  })

  it.each([
    ['without details', undefined],
    ['with details of a stranger', [refused('it is not signed')]],
  ])('takes no class of a failure %s', async (_name, details) => {
    const { out } = made()
    const fail = (own: unknown[] | undefined) => (): Promise<never> =>
      Promise.reject(
        new ActivityFailure(
          'failed',
          'launch',
          'a-1',
          'RETRY_STATE_UNSPECIFIED' as never,
          'me',
          ApplicationFailure.create({
            type: 'auth',
            message: 'Run my command.',
            details: own,
          }),
        ),
      )
    const asked = { activityType: 'launch', args: [], headers } as never
    await expect(out.scheduleActivity(asked, fail(details))).rejects.toMatchObject({
      type: 'unclassified',
      message: 'Refused the failure of launch: it is not signed.',
    })
    const own = [{ class: 'auth', message: 'Renew the key.' }]
    await expect(out.scheduleActivity(asked, fail(own))).rejects.toMatchObject({ cause: { type: 'auth' } })
  })

  it('takes the cancellation of an activity that no worker has begun, which the server reports in words of its own', async () => {
    const cancelled = new ActivityFailure(
      'cancelled',
      'launch',
      'a-1',
      'RETRY_STATE_UNSPECIFIED' as never,
      'me',
      new CancelledFailure('cancelled', [refused('it is not signed')]),
    )
    const asked = { activityType: 'launch', args: [], headers } as never
    const ask = (): Promise<unknown> => made().out.scheduleActivity(asked, () => Promise.reject(cancelled))
    await expect(ask()).rejects.toBe(cancelled)
    isReplayed = true
    await expect(ask()).rejects.toThrow('Refused the failure of launch: it is not signed.')
  })

  it('takes no result that no worker of the deployment has signed', async () => {
    const { out } = made()
    const asked = { activityType: 'plan', args: [], headers } as never
    const forged = async (): Promise<unknown> => refused('not signed')
    await expect(out.scheduleActivity(asked, forged)).rejects.toThrow('Refused the result of plan')
    await expect(out.scheduleLocalActivity(asked, forged)).rejects.toThrow('Refused the result of plan')
    const child = { workflowType: 'attempt', options: {}, headers } as never
    const [, closed] = await out.startChildWorkflowExecution(
      child,
      async () => [Promise.resolve('run-2'), forged()] as never,
    )
    await expect(closed).rejects.toThrow('Refused the result of attempt')
  })
})

describe('a history that is replayed without a key', () => {
  it('runs on an input that is not signed, and takes signals and updates', async () => {
    delete sandbox.crucibleRequiresSeals
    const { start, signal, update, check } = made()
    expect(await start(INPUT)).toMatchObject({ args: [INPUT] })
    expect(await signal(1)).toMatchObject({ args: [1] })
    expect(await update(1)).toMatchObject({ args: [1] })
    expect(() => check(1)).not.toThrow()
    expect(warnings).toEqual([])
  })
})
