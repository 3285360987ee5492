/** How an attempt obeys a request to save and stop: what its machine gets to know, and how long it gets. */
import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { DrainRequest } from '../../core/job/drain'
import type { MachineHandle } from '../../core/handle'
import type { AttemptInput } from '../../core/messages'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type { AttemptPage } from '../../workflows/job/attempt-page'
import type * as Commands from '../../workflows/job/attempt-commands'

const { drainMs, powerOffMs, beatMs } = DEFAULT_TIMING
/** How long the attempt paused, during which the clock continues. */
let pauses: number[]
const PAGE = {
  stopping: () => undefined,
  trouble: () => undefined,
  retries: {
    pause: async (forMs: number) => {
      pauses.push(forMs)
      jest.setSystemTime(Date.now() + forMs)
      isStoreAway = pauses.length < refusals
    },
  },
} as unknown as AttemptPage
/** Requests that a store refuses before it takes one. */
let refusals: number
const HANDLE = { id: 'm-1' } as MachineHandle

let handlers: Map<string, (argument: unknown) => void>
let cancel: () => void
/** Requests written to the store, and told to the machine by a call, in order. */
let written: object[]
let told: object[]
/** The answer of the call; missing while it does not answer. */
let answer: { isOnRecord: boolean } | undefined
/** Lengths of the timers, which fire once a test lets them. */
let timers: number[]
let isTimeUp: boolean
/** Times within which a request must be written, and whether it cannot be. */
let limits: number[]
let isStoreAway: boolean
/** Whether a store that is away fails no request, but leaves each open. */
let isStoreHanging: boolean
/** Waits of an earlier test never end. */
let testNumber = 0

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: {
    current: () => ({
      cancelRequested: new Promise((_, reject) => (cancel = () => reject(new Error('cancelled')))),
      consideredCancelled: false,
    }),
  },
  condition: async (isMet: () => boolean, forMs?: number) => {
    if (forMs !== undefined) timers.push(forMs)
    const own = testNumber
    while (!isMet()) {
      if (own !== testNumber) return new Promise(() => undefined)
      if (forMs !== undefined && isTimeUp) return false
      await new Promise(setImmediate)
    }
    return true
  },
  defineSignal: (name: string) => name,
  patched: () => true,
  setHandler: (name: string, handle: (argument: unknown) => void) => handlers.set(name, handle),
}))
const mockDrain = async ({ drain }: { drain: object }): Promise<void> => {
  if (isStoreAway && isStoreHanging) return new Promise(() => undefined)
  if (isStoreAway) throw new Error('the time for the activity is up')
  written.push(drain)
}
jest.mock('../../workflows/activities', () => ({
  orchestrator: { drain: mockDrain },
  drainWithin: (limitMs: number) => {
    limits.push(limitMs)
    return { drain: mockDrain }
  },
  pressing: () => ({
    drainMachine: async ({ drain, patienceMs }: { drain: object; patienceMs: number }) => {
      told.push({ ...drain, patienceMs })
      const own = testNumber
      while (answer === undefined && own === testNumber) await new Promise(setImmediate)
      return own === testNumber ? answer : new Promise(() => undefined)
    },
  }),
}))
const { giveUpStore, listen, obeyDrain } = jest.requireActual<typeof Commands>(
  '../../workflows/job/attempt-commands',
)

afterAll(() => void (testNumber += 1))
afterEach(() => void jest.useRealTimers())
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] })
  testNumber += 1
  pauses = []
  refusals = Infinity
  handlers = new Map()
  written = []
  told = []
  answer = undefined
  timers = []
  isTimeUp = false
  limits = []
  isStoreAway = false
  isStoreHanging = false
})

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
}

/** An attempt whose machine runs, and its end by a drain. */
function attemptOf(runnerStart: 'with-launch' | 'after-launch' = 'with-launch') {
  const order = { jobId: 'job-1', attempt: 1, backend: 'here', runnerStart }
  const input = { order, timing: DEFAULT_TIMING } as AttemptInput
  const commands = listen(input)
  const obeyed = obeyDrain(input, PAGE, { commands, machine: { handle: HANDLE } })
  const end = Promise.race([obeyed, giveUpStore(input, commands)])
  return { commands, end, drain: (request: DrainRequest) => handlers.get('drain')!(request) }
}

describe('a request to save and stop', () => {
  it('is written, and waited for: its window, the power-off, and two beats until the runner has read it', async () => {
    const { end, drain } = attemptOf()
    drain({ reason: 'cancelled', windowMs: 20_000 })
    await settled()
    expect(written).toEqual([{ reason: 'cancelled', windowMs: 20_000 }])
    expect(timers).toEqual([20_000 + powerOffMs + 2 * beatMs])
    isTimeUp = true
    expect(await end).toBeNull()
  })

  it('of a cancelled job is given up after its window and the power-off if the store does not take it', async () => {
    isStoreAway = true
    const { end, drain } = attemptOf()
    drain({ reason: 'cancelled', windowMs: 20_000 })
    expect(await end).toBeNull()
    const limitMs = 20_000 + powerOffMs
    expect([limits[0], pauses.reduce((sum, each) => sum + each)]).toEqual([limitMs, limitMs])
    expect(timers).toEqual([])
  })

  it('of a cancelled job is written when the store is back within its window', async () => {
    isStoreAway = true
    refusals = 2
    const { commands, drain } = attemptOf()
    drain({ reason: 'cancelled', windowMs: 20_000 })
    await settled()
    expect([pauses, written]).toEqual([[10_000, 10_000], [{ reason: 'cancelled', windowMs: 20_000 }]])
    commands.close()
  })

  it('of any other job waits for the store', async () => {
    const { drain } = attemptOf()
    drain({ reason: 'migrated', windowMs: 20_000 })
    await settled()
    expect([limits, written]).toEqual([[], [{ reason: 'migrated', windowMs: 20_000 }]])
  })

  it.each<[string, DrainRequest[], DrainRequest]>([
    [
      'a job that is cancelled while it moves',
      [
        { reason: 'migrated', windowMs: 20_000 },
        { reason: 'cancelled', windowMs: 20_000 },
      ],
      { reason: 'cancelled', windowMs: 20_000 },
    ],
    [
      'a job that is cancelled a second time, with less time',
      [
        { reason: 'cancelled', windowMs: 20_000 },
        { reason: 'cancelled', windowMs: 2_000 },
      ],
      { reason: 'cancelled', windowMs: 2_000 },
    ],
  ])('of %s is given up after the window of its cancellation', async (_, requests, last) => {
    isStoreAway = isStoreHanging = true
    const { commands, end, drain } = attemptOf()
    for (const request of requests) {
      drain(request)
      await settled()
    }
    expect([commands.drain, timers]).toEqual([last, [last.windowMs + powerOffMs]])
    isTimeUp = true
    expect(await end).toBeNull()
  })

  it('that the store has taken is not given up', async () => {
    const { commands, drain } = attemptOf()
    drain({ reason: 'migrated', windowMs: 20_000 })
    await settled()
    drain({ reason: 'cancelled', windowMs: 20_000 })
    await settled()
    expect(timers).toEqual([20_000 + powerOffMs + 2 * beatMs])
    commands.close()
  })

  it('that is shortened is written again with its number, and waited for anew', async () => {
    const { commands, end, drain } = attemptOf()
    for (const windowMs of [20_000, 30_000, 5_000]) {
      drain({ reason: 'cancelled', windowMs })
      await settled()
      expect(commands.drain).toEqual({ reason: 'cancelled', windowMs: Math.min(windowMs, 20_000) })
    }
    expect(written).toEqual([
      { reason: 'cancelled', windowMs: 20_000 },
      { reason: 'cancelled', windowMs: 5_000, seq: 2 },
    ])
    expect(timers).toEqual([20_000, 5_000].map((windowMs) => windowMs + powerOffMs + 2 * beatMs))
    isTimeUp = true
    expect(await end).toBeNull()
  })

  it('by cancellation from outside, or for the budget, has the window of the job', async () => {
    const first = attemptOf()
    cancel()
    await settled()
    first.commands.close()
    const second = attemptOf()
    second.commands.reachBudget()
    await settled()
    expect(written).toEqual([
      { reason: 'superseded', windowMs: drainMs },
      { reason: 'budget', windowMs: drainMs },
    ])
    second.commands.close()
  })

  it('because the reservation ends is the end that the job reports, if no checkpoint results from it', async () => {
    const { commands, end } = attemptOf()
    commands.expire(7_000)
    await settled()
    isTimeUp = true
    expect(await end).toEqual({ kind: 'stopped', by: 'expired' })
  })

  it('keeps its first reason, unless its job is cancelled', async () => {
    const { commands, drain } = attemptOf()
    drain({ reason: 'migrated', windowMs: 20_000 })
    drain({ reason: 'superseded', windowMs: 5_000 })
    expect(commands.drain).toEqual({ reason: 'migrated', windowMs: 5_000 })
    drain({ reason: 'cancelled', windowMs: 20_000 })
    expect(commands.drain).toEqual({ reason: 'cancelled', windowMs: 5_000 })
    await settled()
    commands.close()
  })

  it('of an attempt that has ended is not written', async () => {
    const { commands, drain } = attemptOf()
    commands.close()
    await settled()
    drain({ reason: 'cancelled', windowMs: 20_000 })
    await settled()
    expect(written).toEqual([])
  })
})

describe('a machine that can be called', () => {
  it('is called, which puts the request on record', async () => {
    const { end, drain } = attemptOf('after-launch')
    drain({ reason: 'cancelled', windowMs: 60_000 })
    await settled()
    expect(told).toEqual([{ reason: 'cancelled', windowMs: 60_000, patienceMs: 2 * beatMs + 5_000 }])
    answer = { isOnRecord: true }
    await settled()
    expect(written).toEqual([])
    expect(timers).toHaveLength(1)
    expect(timers[0]).toBeLessThanOrEqual(60_000 + powerOffMs + 2 * beatMs)
    isTimeUp = true
    expect(await end).toBeNull()
  })

  it('gets at least half of its window after the call', async () => {
    const { commands, drain } = attemptOf('after-launch')
    drain({ reason: 'cancelled', windowMs: 4_000 })
    await settled()
    expect(told).toMatchObject([{ patienceMs: 2_000 }])
    commands.close()
  })

  it('that did not get it finds it in the store', async () => {
    const { commands, drain } = attemptOf('after-launch')
    answer = { isOnRecord: false }
    drain({ reason: 'cancelled', windowMs: 60_000 })
    await settled()
    expect(written).toEqual([{ reason: 'cancelled', windowMs: 60_000 }])
    commands.close()
  })

  it('that does not answer does not hold up a shorter window', async () => {
    const { commands, drain } = attemptOf('after-launch')
    drain({ reason: 'cancelled', windowMs: 60_000 })
    await settled()
    drain({ reason: 'cancelled', windowMs: 5_000 })
    await settled()
    expect(written).toContainEqual({ reason: 'cancelled', windowMs: 60_000 })
    expect(told.at(-1)).toMatchObject({ windowMs: 5_000, seq: 2 })
    commands.close()
  })

  it('is not called where no time is left', async () => {
    const { commands, drain } = attemptOf('after-launch')
    drain({ reason: 'cancelled', windowMs: 0 })
    await settled()
    expect([told, written]).toEqual([[], [{ reason: 'cancelled', windowMs: 0 }]])
    commands.close()
  })
})
