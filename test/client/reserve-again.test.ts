import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { reserve, type Reserved } from '../../client/reservation/reserve'
import type { CapacityRequest } from '../../core/reservation/reservation'
import type { PurchaseRule } from '../../core/reservation/reserving'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { OWN_START } from './own-start'
import { ClientWorld, NOW } from './world'

const ID = 'res-ranker'

let world: ClientWorld
/** The inputs of the workflows that the server was asked to start. */
let started: { submittedAtMs: number; rule: PurchaseRule }[]

beforeEach(async () => {
  world = await ClientWorld.make()
  started = []
  world.client = {
    ...OWN_START,
    withDeadline: (_: number, call: () => unknown) => call(),
    withAbortSignal: () => Promise.reject(new Error('no server')),
    workflow: {
      start: startWorkflow,
      getHandle: () => ({ describe: () => Promise.resolve({ status: { name: 'RUNNING' } }) }),
    },
    schedule: { getHandle: () => ({ describe: () => Promise.reject(named('ScheduleNotFoundError')) }) },
  } as unknown as Partial<Client>
})
afterEach(() => world.remove())

async function startWorkflow(_type: string, { args }: { args: [(typeof started)[0]] }): Promise<void> {
  if (started.length > 0) throw named('WorkflowExecutionAlreadyStartedError')
  started.push(args[0])
}

function named(name: string): Error {
  return Object.assign(new Error(name), { name })
}

/** As `--from 2d --start-by 9d --end-by 20d` and the end of the search, counted from the moment of the command. */
function ask(
  changes: { wish?: Partial<CapacityRequest>; rule?: Partial<PurchaseRule>; takesMs?: number } = {},
): Promise<Reserved> {
  const nowMs = world.nowMs - (changes.takesMs ?? 0)
  const wish: CapacityRequest = {
    backend: 'ec2',
    kind: 'prepaid',
    types: ['p5'],
    count: 2,
    durationMs: DAY_MS,
    earliestStartAtMs: nowMs + 2 * DAY_MS,
    latestStartAtMs: nowMs + 9 * DAY_MS,
    latestEndAtMs: nowMs + 20 * DAY_MS,
    ...changes.wish,
  }
  const rule = { unaskedMaxMicroUsd: 5, searchUntilAtMs: nowMs + 56 * DAY_MS, ...changes.rule }
  return reserve(world.context, { id: ID, wish, rule })
}

describe('a command that reserves capacity', () => {
  it('is the same when it is repeated with its id, whenever that is, and starts nothing more', async () => {
    expect(await ask()).toEqual({ id: ID, workflowId: `reservation/${ID}`, isNew: true })
    for (const laterMs of [0, 1, HOUR_MS]) {
      world.nowMs = NOW + laterMs
      expect(await ask({ takesMs: 5 * SECOND_MS })).toMatchObject({ id: ID, isNew: false })
    }
    expect(started).toMatchObject([{ submittedAtMs: NOW, rule: { searchUntilAtMs: NOW + 56 * DAY_MS } }])
  })

  it('starts what was asked first if its first start was lost', async () => {
    const { client } = world
    world.client = { ...client, workflow: { start: () => Promise.reject(new Error('lost')) } } as never
    await expect(ask()).rejects.toThrow('lost')
    world.client = client
    world.nowMs = NOW + HOUR_MS
    expect((await ask()).isNew).toBe(true)
    expect(started).toMatchObject([{ submittedAtMs: NOW, rule: { searchUntilAtMs: NOW + 56 * DAY_MS } }])
  })

  it('may name the same instants when it is repeated', async () => {
    const wish = { earliestStartAtMs: NOW + DAY_MS, latestStartAtMs: NOW + 2 * DAY_MS }
    const fixed = {
      wish: { ...wish, latestEndAtMs: NOW + 4 * DAY_MS },
      rule: { searchUntilAtMs: NOW + DAY_MS },
    }
    await ask(fixed)
    world.nowMs = NOW + HOUR_MS
    expect((await ask(fixed)).isNew).toBe(false)
  })

  it.each<[string, Parameters<typeof ask>[0]]>([
    ['a price', { rule: { unaskedMaxMicroUsd: 6 } }],
    ['a count', { wish: { count: 3 } }],
    ['a start', { wish: { earliestStartAtMs: NOW + 2 * DAY_MS + MINUTE_MS } }],
    ['no end of the search', { rule: { searchUntilAtMs: undefined as never } }],
  ])('is refused if its id belongs to another request: %s', async (_, changes) => {
    await ask()
    await expect(ask(changes)).rejects.toThrow(`A different reservation ${ID} already exists.`)
  })
})
