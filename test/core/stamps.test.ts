import { describe, expect, it } from '@jest/globals'
import { Received } from '../../core/received'
import { stampingInterceptors } from '../../core/stamping'
import {
  activityProblem,
  refusalOfArguments,
  refused,
  signalProblem,
  stamped,
  startProblem,
  unstamped,
  updateProblem,
  type Stamp,
} from '../../core/stamps'
import { HOUR_MS } from '../../core/time/time'

const NOW_MS = Date.parse('2027-01-31T12:00:00Z')
const RUN = { workflowType: 'job', startedAtMs: NOW_MS }
const AT = { workflowId: 'job/a' }

describe('a stamp', () => {
  it('is the last argument, and comes off again', () => {
    const stamp: Stamp = { kind: 'signal', name: 'drain' }
    expect(unstamped(stamped([{ reason: 'x' }], stamp))).toEqual({ args: [{ reason: 'x' }], stamp })
    expect(unstamped([{ reason: 'x' }])).toEqual({ args: [{ reason: 'x' }] })
    expect(unstamped([])).toEqual({ args: [] })
  })

  it('stands next to refused arguments without hiding them', () => {
    expect(refusalOfArguments(stamped([1, refused('why')], { kind: 'signal', name: 'x' }))).toBe('why')
    expect(refusalOfArguments([1, null, undefined, { a: 1 }])).toBeUndefined()
  })
})

describe('startProblem', () => {
  it.each<[string, Stamp, Partial<Parameters<typeof startProblem>[1]>]>([
    ['a client', { kind: 'start', name: 'job', atMs: NOW_MS + HOUR_MS }, {}],
    ['a schedule', { kind: 'schedule', name: 'job' }, {}],
    ['its parent', { kind: 'child', name: 'job', run: 'r1' }, { parentRun: 'r1' }],
    ['the run before', { kind: 'continue', name: 'job', run: 'r1' }, { continuedFrom: 'r1' }],
  ])('lets a workflow run that %s starts', (_who, stamp, run) => {
    expect(startProblem(stamp, { ...RUN, ...run })).toBeUndefined()
  })

  it.each<[string, Stamp | undefined, Partial<Parameters<typeof startProblem>[1]>]>([
    ['without a stamp', undefined, {}],
    ['for another type', { kind: 'start', name: 'attempt', atMs: NOW_MS }, {}],
    ['of long ago', { kind: 'start', name: 'job', atMs: NOW_MS - HOUR_MS - 1 }, {}],
    ['of the future', { kind: 'start', name: 'job', atMs: NOW_MS + HOUR_MS + 1 }, {}],
    ['for the child of another run', { kind: 'child', name: 'job', run: 'r1' }, { parentRun: 'r2' }],
    ['for a child that has no parent', { kind: 'child', name: 'job', run: 'r1' }, {}],
    ['of another chain of runs', { kind: 'continue', name: 'job', run: 'r1' }, { continuedFrom: 'r2' }],
    ['of an update', { kind: 'update', name: 'job', updateId: 'u', atMs: NOW_MS }, {}],
    ['of an activity', { kind: 'activity', name: 'job' }, {}],
  ])('refuses an input %s', (_what, stamp, run) => {
    expect(startProblem(stamp, { ...RUN, ...run })).toEqual(expect.any(String))
  })
})

describe('updateProblem', () => {
  const update = { ...AT, name: 'migrate', updateId: 'u1', runStartedAtMs: NOW_MS, received: new Received() }
  const stamp = { kind: 'update', name: 'migrate', updateId: 'u1', atMs: NOW_MS + 1 } as const
  it('accepts an update once', () => {
    expect(updateProblem(stamp, update)).toBeUndefined()
    expect(updateProblem(stamp, { ...update, updateId: 'u2' })).toMatch(/second time/)
  })

  it('accepts one that is dated before the run because the clock of the server was set back', () => {
    const stepped = { ...update, runStartedAtMs: NOW_MS + 2 * HOUR_MS }
    expect(updateProblem(stamp, stepped)).toBeUndefined()
    const next = new Received(new Received().carry(NOW_MS + 2 * HOUR_MS))
    expect(updateProblem(stamp, { ...stepped, received: next })).toBeUndefined()
  })

  it('refuses one that an earlier run may have received and forgotten', () => {
    const received = new Received()
    received.add('u1', NOW_MS + 1)
    const later = new Received(received.carry(NOW_MS + 3 * HOUR_MS))
    expect(updateProblem(stamp, { ...update, received: later })).toMatch(/second time/)
    const muchLater = new Received(later.carry(NOW_MS + 9 * HOUR_MS))
    expect(updateProblem(stamp, { ...update, received: muchLater })).toMatch(/second time/)
    expect(updateProblem({ ...stamp, atMs: NOW_MS + 2 }, { ...update, received: muchLater })).toBeUndefined()
  })

  it('judges by the start of the run what earlier runs of an old version may have received', () => {
    const received = new Received({})
    const later = { ...update, runStartedAtMs: NOW_MS + 2 * HOUR_MS, received }
    expect(updateProblem(stamp, { ...update, received })).toBeUndefined()
    expect(updateProblem(stamp, later)).toMatch(/second time/)
    const next = new Received(received.carry(NOW_MS + 5 * HOUR_MS))
    expect(updateProblem(stamp, { ...later, received: next })).toMatch(/second time/)
  })

  it('leaves a repeated update of one run to the server, and refuses one of an earlier run', () => {
    const received = new Received()
    received.add('u1', NOW_MS)
    expect(updateProblem(stamp, { ...update, received })).toBeUndefined()
    const later = new Received(received.carry(NOW_MS))
    expect(updateProblem(stamp, { ...update, received: later })).toMatch(/second time/)
  })

  it('refuses one that was signed for something else, or not at all', () => {
    expect(updateProblem({ ...stamp, name: 'extend' }, update)).toBe('it was signed as update extend')
    expect(updateProblem(undefined, update)).toBe('it is not signed')
  })
})

describe('signalProblem and activityProblem', () => {
  it('tell one name and one run from another', () => {
    const run = {
      ...AT,
      name: 'drain',
      runStartedAtMs: NOW_MS,
      received: new Received(),
      mayBeOld: () => false,
    }
    expect(signalProblem({ kind: 'signal', name: 'drain' }, run)).toBeUndefined()
    expect(signalProblem({ kind: 'signal', name: 'extend' }, run)).toBe('it was signed as signal extend')
    expect(signalProblem({ kind: 'schedule', name: 'drain' }, run)).toBe('it was signed as schedule drain')
    expect(signalProblem(undefined, run)).toBe('it is not signed')
    const stamp: Stamp = { kind: 'activity', name: 'launch', run: 'r1' }
    expect(activityProblem(stamp, { name: 'launch', run: 'r1' })).toBeUndefined()
    expect(activityProblem(stamp, { name: 'settle', run: 'r1' })).toBe('it was signed as activity launch')
    expect(activityProblem(stamp, { name: 'launch', run: 'r2' })).toMatch(/another run/)
    expect(activityProblem(stamp, { name: 'launch' })).toMatch(/another run/)
    expect(activityProblem(undefined, { name: 'launch' })).toBe('it is not signed')
  })
})

describe('a signal', () => {
  const stamp = { kind: 'signal', name: 'drain', id: 's1', atMs: NOW_MS } as const
  const run = { ...AT, name: 'drain', runStartedAtMs: NOW_MS + HOUR_MS, mayBeOld: () => false }

  it('counts once in a run and in the runs after it', () => {
    const received = new Received()
    expect(signalProblem(stamp, { ...run, received })).toBeUndefined()
    received.add('s1', NOW_MS)
    expect(signalProblem(stamp, { ...run, received })).toMatch(/second time/)
    const later = new Received(received.carry(NOW_MS + HOUR_MS))
    expect(signalProblem(stamp, { ...run, received: later })).toMatch(/second time/)
    expect(signalProblem({ ...stamp, id: 's2' }, { ...run, received: later })).toBeUndefined()
  })

  it('is refused by its time once its id is forgotten', () => {
    const received = new Received({ received: [['s1', NOW_MS]], forgottenUntilMs: 0 })
    expect(received.carry(NOW_MS + 2 * HOUR_MS)).toEqual({ received: [['s1', NOW_MS]], forgottenUntilMs: 0 })
    const carried = received.carry(NOW_MS + 2 * HOUR_MS + 1)
    expect(carried).toEqual({ received: undefined, forgottenUntilMs: NOW_MS })
    expect(signalProblem(stamp, { ...run, received: new Received(carried), mayBeOld: () => true })).toMatch(
      /second time/,
    )
  })
})

describe('a signal that is dated before its run', () => {
  it('is accepted once from a server whose clock was set back, where the history takes it', () => {
    const stamp = { kind: 'signal', name: 'drain', id: 'parent/1', atMs: NOW_MS } as const
    const received = new Received()
    const mayBeOld = (id: string): boolean => id.startsWith('parent/')
    const run = { ...AT, name: 'drain', runStartedAtMs: NOW_MS + 2 * HOUR_MS, received, mayBeOld }
    expect(signalProblem(stamp, run)).toBeUndefined()
    expect(signalProblem({ ...stamp, id: 'other/1' }, run)).toMatch(/second time/)
    received.add(stamp.id, NOW_MS)
    expect(signalProblem(stamp, run)).toMatch(/second time/)
  })
})

describe('the interceptors of a client', () => {
  const { workflow, schedule, activity } = stampingInterceptors(
    () => NOW_MS,
    () => 'made',
  )
  const seen = <I>(input: I): Promise<I> => Promise.resolve(input)

  it('name the deployment whose work an activity outside any workflow is', async () => {
    const { activity: ours } = stampingInterceptors(
      () => NOW_MS,
      () => 'made',
      async () => 'dep-0123456789',
    )
    expect(await ours[0].start({ activityType: 'previewPlan', options: {} }, seen)).toMatchObject({
      options: { args: [{ crucibleStamp: { kind: 'activity', deployment: 'dep-0123456789' } }] },
    })
  })

  it('stamp starts, signals, updates, schedules and activities', async () => {
    const start = { workflowType: 'job', options: { args: [1], ...AT } }
    expect(await workflow[0].startWithDetails(start, seen)).toMatchObject({
      options: { args: [1, { crucibleStamp: { kind: 'start', name: 'job', atMs: NOW_MS } }] },
    })
    expect(
      await workflow[0].signal({ workflowExecution: AT, signalName: 'drain', args: [] }, seen),
    ).toMatchObject({
      args: [{ crucibleStamp: { kind: 'signal', name: 'drain', id: 'made', atMs: NOW_MS, to: 'job/a' } }],
    })
    expect(await activity[0].start({ activityType: 'offers', options: {} }, seen)).toMatchObject({
      options: { args: [{ crucibleStamp: { kind: 'activity', name: 'offers' } }] },
    })
    const creation = { options: { action: { workflowType: 'garbageCollection', args: [{}] } } }
    expect(await schedule[0].create(creation, seen)).toMatchObject({
      options: { action: { args: [{}, { crucibleStamp: { kind: 'schedule', name: 'garbageCollection' } }] } },
    })
  })

  it('stamp what has no arguments of its own: the stamp is then the only one', async () => {
    const only = (stamp: Stamp): object => ({ args: [{ crucibleStamp: stamp }] })
    expect(await workflow[0].startWithDetails({ workflowType: 'job', options: AT }, seen)).toMatchObject({
      options: only({ kind: 'start', name: 'job', atMs: NOW_MS }),
    })
    const creation = { options: { action: { workflowType: 'garbageCollection' } } }
    expect(await schedule[0].create(creation, seen)).toMatchObject({
      options: { action: only({ kind: 'schedule', name: 'garbageCollection' }) },
    })
    const promise = {
      workflowType: 'treasury',
      workflowStartOptions: AT,
      updateName: 'promise',
      updateArgs: [],
      updateOptions: {},
    }
    expect(await workflow[0].startUpdateWithStart(promise, seen)).toMatchObject({
      workflowStartOptions: only({ kind: 'start', name: 'treasury', atMs: NOW_MS }),
      updateOptions: { updateId: 'made' },
      updateArgs: [
        { crucibleStamp: { kind: 'update', name: 'promise', updateId: 'made', atMs: NOW_MS, to: 'job/a' } },
      ],
    })
  })

  it('give an update that has no id one, and sign that', async () => {
    const update = { workflowExecution: AT, updateName: 'migrate', args: [], options: {} }
    expect(await workflow[0].startUpdate(update, seen)).toMatchObject({
      options: { updateId: 'made' },
      args: [
        { crucibleStamp: { kind: 'update', name: 'migrate', updateId: 'made', atMs: NOW_MS, to: 'job/a' } },
      ],
    })
    const own = await workflow[0].startUpdate({ ...update, options: { updateId: 'own' } }, seen)
    expect(own).toMatchObject({
      options: { updateId: 'own' },
      args: [{ crucibleStamp: { updateId: 'own' } }],
    })
  })
})
