import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { ActivityOptions } from '@temporalio/workflow'
import type * as Activities from '../../workflows/activities'

/** The options with which activities are proxied, in the order in which they were. */
const proxied: ActivityOptions[] = []
const proxiedLocally: ActivityOptions[] = []

jest.mock('@temporalio/workflow', () => ({
  proxyActivities: (options: ActivityOptions) => {
    proxied.push(options)
    return options
  },
  proxyLocalActivities: (options: ActivityOptions) => {
    proxiedLocally.push(options)
    return options
  },
}))

let activities: typeof Activities

beforeEach(() => {
  proxied.length = 0
  proxiedLocally.length = 0
  jest.resetModules()
  activities = jest.requireActual('../../workflows/activities')
})

/** What a proxy was made with; here every proxy is its options. */
const optionsOf = (proxy: unknown): ActivityOptions => proxy as ActivityOptions

const effects = (): [string, ActivityOptions][] => {
  const { launching, verbs, ending, watching } = activities.on('here')
  return [
    ['documents of the orchestrator', optionsOf(activities.orchestrator)],
    ['launch', optionsOf(launching)],
    ['find', optionsOf(verbs)],
    ['start', optionsOf(activities.starting('here', 60_000))],
    ['settle', optionsOf(ending)],
    ['watch', optionsOf(watching)],
  ]
}

describe('every activity with an effect', () => {
  it.each([0, 1, 2, 3, 4, 5])('is waited for when it is cancelled, and beats within 20 s: %i', (index) => {
    const [name, options] = effects()[index]!
    // By default the SDK would go on at once, and clean up while the machine is still being made.
    expect([name, options.cancellationType]).toEqual([name, 'WAIT_CANCELLATION_COMPLETED'])
    expect([name, options.heartbeatTimeout]).toEqual([name, '20 seconds'])
  })

  it('does not wait for a worker for ever without anybody being told, but for a watch', () => {
    const waits = effects().map(([name, options]): [string, unknown] => [
      name,
      options.scheduleToStartTimeout ?? options.scheduleToCloseTimeout,
    ])
    expect(Object.fromEntries(waits)).toEqual({
      'documents of the orchestrator': '1 day',
      launch: '2 minutes',
      find: '1 day',
      start: 60_000,
      settle: '1 day',
      // While nobody watches, the machine's lease holds.
      watch: undefined,
    })
  })

  it('is retried for as long as it takes: no number of tries is enough', () => {
    for (const [name, { retry }] of effects())
      expect([name, retry?.maximumAttempts]).toEqual([name, undefined])
  })

  it('goes to the queue of who does it', () => {
    expect(effects().map(([, { taskQueue }]) => taskQueue)).toEqual([
      'crucible',
      'crucible.here',
      'crucible.here',
      'crucible.here',
      'crucible.here',
      'crucible.here.watch',
    ])
  })
})

describe('a watch', () => {
  it('lasts as long as any machine, and a lost watcher is replaced at once and for ever', () => {
    const { startToCloseTimeout, scheduleToCloseTimeout, retry } = optionsOf(activities.on('here').watching)
    expect({ startToCloseTimeout, scheduleToCloseTimeout, retry }).toEqual({
      startToCloseTimeout: '3650 days',
      scheduleToCloseTimeout: undefined,
      retry: { initialInterval: '1 second', backoffCoefficient: 1 },
    })
  })
})

describe('waiting for a machine', () => {
  it('is done by the retries of Temporal, none of which leaves an event, and can be given up at once', () => {
    const { retry, cancellationType, scheduleToCloseTimeout } = optionsOf(activities.waiting)
    expect(retry).toEqual({ initialInterval: '5 seconds', backoffCoefficient: 1 })
    expect({ cancellationType, scheduleToCloseTimeout }).toEqual({})
  })
})

describe('plan and decide', () => {
  it('are local: one marker each', () => {
    expect(proxiedLocally).toEqual([optionsOf(activities.local)])
    expect(proxied).not.toContain(optionsOf(activities.local))
  })
})
