import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { ActivityOptions } from '@temporalio/workflow'
import { without } from '../../core/defined'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Activities from '../../workflows/activities'

/** The options with which activities are proxied, in the order in which they were. */
const proxied: ActivityOptions[] = []
const proxiedLocally: ActivityOptions[] = []

/** Every activity of a proxy is the proxy's options. */
jest.mock('@temporalio/workflow', () => {
  const proxying = (into: ActivityOptions[]) => (options: ActivityOptions) => {
    into.push(options)
    return new Proxy<object>({}, { get: () => options })
  }
  const none = (): void => undefined
  return {
    proxyActivities: proxying(proxied),
    proxyLocalActivities: proxying(proxiedLocally),
    defineSignal: none,
    setHandler: none,
    condition: none,
  }
})

let activities: typeof Activities

beforeEach(() => {
  proxied.length = 0
  proxiedLocally.length = 0
  jest.resetModules()
  activities = jest.requireActual('../../workflows/activities')
})

/** What an activity's proxy was made with. */
const optionsOf = <T extends object>(proxy: T, name: keyof T): ActivityOptions =>
  proxy[name] as ActivityOptions

/** What follows a local activity that failed. */
const ORDINARY = ['plan', 'decide'] as const

const DOCUMENTS = ['resolveJob', 'drain', 'withdraw', 'extend', 'finishJob'] as const

/** Options of the watch of a machine. */
const watch = (timing = { silenceMs: 0, leaseMs: 0 }): ActivityOptions =>
  optionsOf(activities.watching('here', timing), 'watch')

const effects = (): [string, ActivityOptions][] => {
  const { launching, verbs, ending } = activities.on('here')
  const { launching: inTurn } = activities.inTurn('here')
  return [
    ...DOCUMENTS.map((name): [string, ActivityOptions] => [name, optionsOf(activities.orchestrator, name)]),
    ...ORDINARY.map((name): [string, ActivityOptions] => [name, optionsOf(activities.ordinary, name)]),
    ['launch', optionsOf(launching, 'launch')],
    ['launch in turn', optionsOf(inTurn, 'launch')],
    ['find', optionsOf(verbs, 'find')],
    ['start', optionsOf(activities.starting('here', 60_000), 'start')],
    ['settle', optionsOf(ending, 'settle')],
    ['watch', watch()],
  ]
}

describe('every activity with an effect', () => {
  it('is waited for when it is cancelled, and beats within 20 s unless it is a watch', () => {
    for (const [name, options] of effects()) {
      // By default the SDK would return at once, and clean up while the machine is still being made.
      expect([name, options.cancellationType]).toEqual([name, 'WAIT_CANCELLATION_COMPLETED'])
      expect([name, options.heartbeatTimeout]).toEqual([name, name === 'watch' ? 20_000 : '20 seconds'])
    }
  })

  it('does not wait for a worker for ever without anybody being told, but for a watch', () => {
    const waits = effects().map(([name, options]): [string, unknown] => [
      name,
      options.scheduleToStartTimeout,
    ])
    expect(Object.fromEntries(waits)).toEqual({
      resolveJob: '1 day',
      drain: '1 day',
      withdraw: '1 day',
      extend: '1 day',
      finishJob: '1 day',
      plan: '1 day',
      decide: '1 day',
      launch: '2 minutes',
      // Behind others of its account; whether the backend has a worker is asked for separately.
      'launch in turn': '1 day',
      find: '1 day',
      start: 60_000,
      settle: '1 day',
      // While no watch runs, the machine's lease holds.
      watch: undefined,
    })
  })

  it('is retried for as long as it takes: no number of tries is enough', () => {
    for (const [name, { retry }] of effects())
      expect([name, retry?.maximumAttempts]).toEqual([name, undefined])
  })

  it('goes to the queue of who does it', () => {
    const queues = effects().map(([name, { taskQueue }]) => [name, taskQueue])
    expect(Object.fromEntries(queues)).toEqual({
      resolveJob: 'crucible',
      drain: 'crucible',
      withdraw: 'crucible',
      extend: 'crucible',
      finishJob: 'crucible',
      plan: 'crucible',
      decide: 'crucible',
      launch: 'crucible.here',
      'launch in turn': 'crucible.here.launch',
      find: 'crucible.here',
      start: 'crucible.here',
      settle: 'crucible.here',
      watch: 'crucible.here.watch',
    })
  })
})

/** All that are not local, by what they do. */
const all = (): Record<string, ActivityOptions> => {
  const { asking } = activities.inTurn('here')
  return {
    ...Object.fromEntries(effects()),
    promiseBudget: optionsOf(activities.orchestrator, 'promiseBudget'),
    copyCheckpoint: optionsOf(activities.copying, 'copyCheckpoint'),
    planWhenAvailable: optionsOf(activities.waiting, 'planWhenAvailable'),
    servesLaunches: optionsOf(asking, 'servesLaunches'),
    drainMachine: optionsOf(activities.pressing('here'), 'drainMachine'),
    interrupt: optionsOf(activities.interrupting('here'), 'interrupt'),
  }
}

describe('one try of an activity', () => {
  it('has as long as the slowest store, provider or machine that it waits for may take', () => {
    const limits = Object.entries(all()).map(([name, options]): unknown[] => [
      name,
      options.startToCloseTimeout,
    ])
    const documents = [...DOCUMENTS, ...ORDINARY, 'promiseBudget'].map((name) => [name, '2 minutes'])
    expect(Object.fromEntries(limits)).toEqual({
      ...(Object.fromEntries(documents) as object),
      copyCheckpoint: '1 day',
      planWhenAvailable: '1 minute',
      servesLaunches: '10 seconds',
      launch: '10 minutes',
      // It waits for its turn, too.
      'launch in turn': '1 hour',
      find: '10 minutes',
      start: '10 minutes',
      // A drain window and a slow provider.
      settle: '1 hour',
      watch: '3650 days',
      drainMachine: '1 minute',
      interrupt: '1 minute',
    })
  })

  it('is soon repeated, then each minute, but for what is only useful now', () => {
    const usual = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' }
    const others = without(all(), ['planWhenAvailable', 'watch'])
    const retries = Object.entries(others).map(([name, { retry }]) => [name, retry])
    expect(Object.fromEntries(retries)).toEqual({
      ...(Object.fromEntries(Object.keys(others).map((name) => [name, usual])) as object),
      servesLaunches: { ...usual, maximumAttempts: 3 },
      // A machine that boots is asked every few seconds.
      start: { ...usual, maximumInterval: '10 seconds' },
      // The document says it too, and the moment passes.
      drainMachine: { maximumAttempts: 2 },
      interrupt: { maximumAttempts: 3 },
    })
  })
})

describe('what is only useful now', () => {
  it('waits ten seconds for a worker of its backend, and beats like everything else', () => {
    const { drainMachine, interrupt } = all()
    for (const options of [drainMachine, interrupt])
      expect(options).toMatchObject({
        taskQueue: 'crucible.here',
        scheduleToStartTimeout: '10 seconds',
        heartbeatTimeout: '20 seconds',
        cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      })
  })
})

describe('an order and the start of a runner', () => {
  it('are given up after a while, tries and waits together', () => {
    const limits = Object.entries(all()).flatMap(([name, { scheduleToCloseTimeout }]) =>
      scheduleToCloseTimeout === undefined ? [] : [[name, scheduleToCloseTimeout]],
    )
    expect(limits).toEqual([
      ['launch', '30 minutes'],
      ['start', 60_000],
    ])
  })

  it('ask first whether the backend has a worker, which is known within two minutes', () => {
    expect(all()['servesLaunches']).toMatchObject({
      taskQueue: 'crucible.here',
      scheduleToStartTimeout: '2 minutes',
    })
  })
})

describe('the copy of a checkpoint', () => {
  it('is left alone by a job that stops: a late copy is harmless', () => {
    expect(all()['copyCheckpoint']).toMatchObject({
      taskQueue: 'crucible',
      scheduleToStartTimeout: '1 day',
      cancellationType: 'TRY_CANCEL',
      heartbeatTimeout: '20 seconds',
    })
  })
})

describe('a watch', () => {
  it('lasts as long as any machine, and a lost watcher is replaced at once and for ever', () => {
    const { startToCloseTimeout, scheduleToCloseTimeout, retry } = watch()
    expect({ startToCloseTimeout, scheduleToCloseTimeout, retry }).toEqual({
      startToCloseTimeout: '3650 days',
      scheduleToCloseTimeout: undefined,
      retry: { initialInterval: '1 second', backoffCoefficient: 1 },
    })
  })
})

describe('the loss of a watch', () => {
  it.each([
    [DEFAULT_TIMING, 300_000],
    [{ silenceMs: 60 * 60_000, leaseMs: 60 * 60_000 }, 300_000],
    [{ silenceMs: 4 * 60_000, leaseMs: 60 * 60_000 }, 40_000],
    [{ silenceMs: 60 * 60_000, leaseMs: 5 * 60_000 }, 50_000],
    [{ silenceMs: 1_000, leaseMs: 1_000 }, 20_000],
  ])('is noticed well before a silence or the end of a lease counts: %j', (timing, lostAfterMs) => {
    expect(watch(timing).heartbeatTimeout).toBe(lostAfterMs)
  })
})

describe('waiting for a machine', () => {
  it('is done by the retries of Temporal, which leave no event, and can be given up at once', () => {
    const { retry, cancellationType, scheduleToCloseTimeout } = optionsOf(
      activities.waiting,
      'planWhenAvailable',
    )
    expect(retry).toEqual({ initialInterval: '5 seconds', backoffCoefficient: 1 })
    expect({ cancellationType, scheduleToCloseTimeout }).toEqual({})
    expect(all()['planWhenAvailable']).toMatchObject({
      taskQueue: 'crucible',
      heartbeatTimeout: '15 seconds',
    })
  })
})

describe('plan, decide, the signal to an attempt, and the decision on a budget', () => {
  it('are local: one marker each', () => {
    const { local } = activities
    const names = ['plan', 'decide', 'stopAttempt', 'admitBudget'] as const
    expect(proxiedLocally).toEqual(names.map((name) => optionsOf(local, name)))
    expect(proxied).not.toContain(optionsOf(local, 'plan'))
  })

  it('are tried locally once: a local activity that is retried keeps its workflow from hearing anything', () => {
    for (const { retry } of proxiedLocally) expect(retry).toEqual({ maximumAttempts: 1 })
  })

  it('are given up within seconds, since nothing else happens in their workflow meanwhile', () => {
    expect(proxiedLocally.map((options): unknown => options.startToCloseTimeout)).toEqual([
      '20 seconds',
      '10 seconds',
      '10 seconds',
      '10 seconds',
    ])
  })
})

describe('every activity', () => {
  it('says in the Temporal UI what it does, each in words of its own', () => {
    const { local, waiting } = activities
    const others = [
      optionsOf(local, 'plan'),
      optionsOf(local, 'decide'),
      optionsOf(waiting, 'planWhenAvailable'),
    ]
    const summaries = [...effects().map(([, options]) => options), ...others].map(({ summary }) => summary)
    expect(summaries).not.toContain(undefined)
    expect(new Set(summaries).size).toBe(16)
  })
})
