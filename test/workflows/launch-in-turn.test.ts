/** An order that waits for its turn among the launches of its account. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { DrainReason, DrainRequest } from '../../core/job/drain'
import type { AttemptInput } from '../../core/messages'
import { MINUTE_MS } from '../../core/time/time'
import type * as LaunchInTurn from '../../workflows/job/launch-in-turn'
import {
  activities,
  begin,
  expire,
  openNames,
  reply,
  settle,
  stateOf,
  timers,
  workflowModule,
  world,
} from './scripted'

jest.mock('@temporalio/workflow', () => workflowModule())
jest.mock('../../workflows/activities', () => ({
  inTurn: () => ({ asking: activities(), launching: activities() }),
}))
const { launchInTurn } = jest.requireActual<typeof LaunchInTurn>('../../workflows/job/launch-in-turn')

const CHECK = 'until its workers are checked again'
const LAUNCHED = { kind: 'launched', handle: { id: 'i-1' } }
const INPUT = { order: { backend: 'here' }, launchSeq: 3 } as AttemptInput

let commands: { drain: DrainRequest | null }
let outcome: Promise<unknown>

const stop = async (reason: DrainReason = 'cancelled'): Promise<void> => {
  commands.drain = { reason, windowMs: 1_000 }
  await settle()
}

beforeEach(() => {
  begin()
  commands = { drain: null }
  outcome = launchInTurn(INPUT, commands)
  outcome.catch(() => undefined)
})

describe('an order that waits for its turn', () => {
  it('is sent once a worker of its backend has answered, and has the answer of the launch', async () => {
    expect(openNames()).toEqual(['servesLaunches'])
    await reply('servesLaunches', true)
    expect(timers()).toEqual({ [CHECK]: 10 * MINUTE_MS })
    expect(await reply('launch', LAUNCHED)).toEqual({ order: INPUT.order, recordSeq: 3 })
    expect(await outcome).toEqual(LAUNCHED)
    expect(world.asked).toEqual(['servesLaunches', 'launch'])
  })

  it.each([
    ['says no', false],
    ['says nothing', new Error('no worker')],
  ])('is not sent if the worker %s', async (_, answer) => {
    await reply('servesLaunches', answer)
    expect(await outcome).toEqual({ kind: 'unserved' })
    expect(world.asked).toEqual(['servesLaunches'])
  })

  it('is not sent if it must stop before', async () => {
    await stop()
    await reply('servesLaunches', true)
    expect(await outcome).toEqual({ kind: 'called-off', by: 'cancelled' })
    expect(world.asked).toEqual(['servesLaunches'])
  })

  it('is taken back by a request to stop', async () => {
    await reply('servesLaunches', true)
    await stop('migrated')
    expect(await outcome).toEqual({ kind: 'called-off', by: 'migrated' })
    expect(world.asked).toEqual(['servesLaunches', 'launch'])
  })

  it('waits on while its workers answer, and is taken back when they have stopped', async () => {
    await reply('servesLaunches', true)
    for (const isServed of [true, true, false]) {
      await expire(CHECK)
      expect(await stateOf(outcome)).toBe('open')
      await reply('servesLaunches', isServed)
    }
    expect(await outcome).toEqual({ kind: 'unserved' })
  })

  it('that was answered while its workers were checked has that answer', async () => {
    await reply('servesLaunches', true)
    await expire(CHECK)
    await reply('launch', LAUNCHED)
    await reply('servesLaunches', false)
    expect(await outcome).toEqual(LAUNCHED)
  })

  it('throws what the launch throws', async () => {
    await reply('servesLaunches', true)
    await reply('launch', new Error('no quota'))
    await expect(outcome).rejects.toThrow('no quota')
  })

  it.each([
    ['has the answer of its launch', LAUNCHED, { value: LAUNCHED }],
    ['throws what the launch throws', new Error('no quota'), { error: new Error('no quota') }],
  ])('that had begun when it was to be taken back %s', async (_, answer, state) => {
    await reply('servesLaunches', true)
    world.open[0]!.hasBegun = true
    await stop()
    expect(await stateOf(outcome)).toBe('open')
    await reply('launch', answer)
    expect(await stateOf(outcome)).toEqual(state)
  })
})
