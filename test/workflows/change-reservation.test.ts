/** Changes of what is held, on request: its machines, its end, its limit and its share, and parts that are split off. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import { carrying, type FailureClass } from '../../core/failure'
import type { ReservationInput } from '../../core/reservation/reserving'
import { HOUR_MS } from '../../core/time/time'
import type * as Changes from '../../workflows/reservation/change'
import type * as Runs from '../../workflows/reservation/run'
import { INTENT, NOW_MS, ownedOf, without } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, endPauses, holding, HOURLY, INPUT, turns, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { resizeOnRequest, splitOnRequest } = jest.requireActual<typeof Changes>(
  '../../workflows/reservation/change',
)
const { ReservationRun } = jest.requireActual<typeof Runs>('../../workflows/reservation/run')

const PROMISE = { jobId: `reservation/${INTENT}/1`, month: '2026-10', microUsd: 1_000 }
const TASK = { reservationId: INTENT, deployment: 'dep', owner: 'ada', recordSeq: 7 }
const REF = { id: 'cr-1', region: 'east' }
const failing = (failureClass: FailureClass, message: string) => (): never => {
  throw ApplicationFailure.create(carrying({ class: failureClass, message }))
}

let run: Runs.ReservationRun

/** Four active machines by the hour, one of them in use, that have cost 900. */
function hold(input: Partial<ReservationInput> = {}): void {
  const held = holding({ ...HOURLY, rule: { spendMaxMicroUsd: 1_000 }, ...input })
  run = new ReservationRun({ ...held, carry: { ...held.carry!, promise: PROMISE } })
}

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  hold()
})

const changed = ownedOf({ kind: 'hourly', phase: 'active', total: 5 })

describe('a change of what is held', () => {
  const resize = async (update: object): Promise<string> => {
    const answer = world.tell('resizeReservation', update)
    await resizeOnRequest(run)
    expect(run.requests.resize).toBeUndefined()
    return answer
  }
  beforeEach(() => void (world.answers['changeReservation'] = () => changed))

  it('of the number is made by the provider, and shown as it says', async () => {
    expect(await resize({ count: 5 })).toBe('cr-1 has 5 machines, until 2026-11-05T00:00:00Z.')
    expect(world.asked).toEqual([
      [
        'changeReservation',
        { ...TASK, ref: REF, rule: { spendMaxMicroUsd: 1_000 }, spentMicroUsd: 900, count: 5 },
      ],
    ])
    expect(run.page.status).toMatchObject({
      reservation: changed,
      wish: { ...HOURLY.wish, count: 5 },
      rule: { spendMaxMicroUsd: 1_000 },
    })
  })

  it.each([null, NOW_MS + HOUR_MS])('of the end alone is made by the provider: %s', async (endsAtMs) => {
    const endless = without(ownedOf({ kind: 'hourly', total: 1 }), 'endsAtMs')
    world.answers['changeReservation'] = () => endless
    expect(await resize({ endsAtMs })).toBe('cr-1 has 1 machine, until it is released.')
    expect(world.inputsOf('changeReservation')).toEqual([
      { ...TASK, ref: REF, rule: { spendMaxMicroUsd: 1_000 }, spentMicroUsd: 900, endsAtMs },
    ])
  })

  it('of the share alone is put on record, and asks no provider', async () => {
    expect(await resize({ share: 'all' })).toBe(
      'cr-1 has 4 machines, until 2026-11-05T00:00:00Z. Idle places are for jobs of all owners.',
    )
    expect(world.asked).toEqual([['shareReservation', { ...TASK, share: 'all' }]])
    expect(run.page.status.rule).toEqual({ spendMaxMicroUsd: 1_000, share: 'all' })
  })

  it('to a higher limit reserves its money first, in the month of the purchase', async () => {
    expect(await resize({ count: 5, spendMaxMicroUsd: 2_000_000 })).toBe(
      'cr-1 has 5 machines, until 2026-11-05T00:00:00Z. Its unused time may cost $2.00 before it is released.',
    )
    expect(world.names()).toEqual(['promiseBudget', 'changeReservation'])
    expect(world.inputsOf('promiseBudget')).toEqual([{ ...PROMISE, owner: 'ada', microUsd: 2_000_000 }])
    expect(world.inputsOf('changeReservation')).toMatchObject([{ rule: { spendMaxMicroUsd: 2_000_000 } }])
    expect(run.page.status.rule).toEqual({ spendMaxMicroUsd: 2_000_000 })
  })

  it('to a higher limit that no budget allows is not made', async () => {
    world.answers['promiseBudget'] = failing('quota', 'The month is full.')
    expect(await resize({ count: 5, spendMaxMicroUsd: 2_000 })).toBe('refused: The month is full.')
    expect(world.names()).toEqual(['promiseBudget'])
    expect(run.page.status).toMatchObject({ rule: { spendMaxMicroUsd: 1_000 }, wish: { count: 4 } })
  })

  it('that is refused leaves all as it was, with the money that is reserved', async () => {
    world.answers['changeReservation'] = failing('invalid', 'There are no more.')
    expect(await resize({ count: 5 })).toBe('refused: There are no more.')
    expect(world.names()).toEqual(['changeReservation'])
    expect(run.page.status).toMatchObject({ rule: { spendMaxMicroUsd: 1_000 }, wish: { count: 4 } })
  })

  it('of the share of what is not paid for yet leaves its money reserved, if it fails', async () => {
    hold({ ...INPUT, rule: {} })
    run.page.move('unpaid', 'It is bought.')
    world.answers['shareReservation'] = failing('transient', 'The store does not answer.')
    expect(await resize({ share: 'all' })).toBe('refused: The store does not answer.')
    expect(world.names()).toEqual(['shareReservation'])
    expect(run.carry()).toMatchObject({ promise: PROMISE })
  })

  it('that is refused gives back all that a first limit has reserved', async () => {
    hold({ rule: {} })
    world.answers['changeReservation'] = failing('invalid', 'There are no more.')
    await resize({ count: 5, spendMaxMicroUsd: 2_000 })
    expect(world.inputsOf('promiseBudget')).toMatchObject([
      { microUsd: 2_000 },
      { microUsd: 0, isLowered: true },
    ])
  })
})

describe('a part that is split off', () => {
  const split = async (count = 1): Promise<string> => {
    const answer = world.tell('splitReservation', { count, newId: 'res-b' })
    await splitOnRequest(run)
    expect(run.requests.split).toBeUndefined()
    return answer
  }
  const reservation = ownedOf({ id: 'cr-2', kind: 'hourly', phase: 'active', total: 1, free: 1 })
  beforeEach(() => void (world.answers['splitReservation'] = () => reservation))
  /** A quarter of the 100 of the limit that are left. */
  const rule = { spendMaxMicroUsd: 25 }
  const wish = { ...HOURLY.wish, count: 1 }
  const part = { owner: 'ada', deployment: 'dep', submittedAtMs: NOW_MS, wish, rule }

  it('is a reservation of its own that holds it already, with its share of the limit', async () => {
    hold({ purpose: 'training of ranker', webhookOf: INTENT })
    expect(await split()).toBe('1 machine of cr-1 is cr-2 now, held by res-b.')
    const input = { ...part, reservationId: 'res-b', purpose: 'training of ranker', webhookOf: INTENT }
    expect(world.inputsOf('splitReservation')).toEqual([{ ...TASK, ref: REF, count: 1, part: input }])
    const promise = { jobId: 'reservation/res-b/1', month: '2026-10', microUsd: 25 }
    expect(world.inputsOf('promiseBudget')).toEqual([{ ...promise, owner: 'ada', from: PROMISE.jobId }])
    const [options] = world.inputsOf('reserveCapacity') as [Record<string, unknown>]
    const attributes = options['typedSearchAttributes'] as { getAll: () => { value: unknown }[] }
    expect(attributes.getAll().map(({ value }) => value)).toEqual([
      'training of ranker',
      'ada',
      'active',
      'ec2',
    ])
    expect(options).toMatchObject({
      workflowId: 'reservation/res-b',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: 'crucible',
      parentClosePolicy: 'ABANDON',
      staticSummary: 'capacity: 1 × p5',
    })
    expect(options['args']).toEqual([
      {
        ...input,
        carry: {
          sends: 1,
          recordSeq: 1,
          paymentFailures: 0,
          promise,
          held: {
            state: 'active',
            reservation,
            upfrontMicroUsd: 0,
            idleMicroUsd: 0,
            idleMs: 0,
            misses: 0,
          },
          status: {
            id: 'res-b',
            owner: 'ada',
            purpose: 'training of ranker',
            wish,
            rule,
            reservation,
            submittedAtMs: NOW_MS,
            state: 'active',
            message: 'cr-2 was split off another reservation.',
            alternatives: [],
            spentMicroUsd: 0,
            idleMicroUsd: 0,
          },
        },
      },
    ])
  })

  it('leaves the rest with the one that it was split off', async () => {
    expect(await split(2)).toBe('2 machines of cr-1 are cr-2 now, held by res-b.')
    const left = { ...run.page.status.reservation, total: 2, free: 1 }
    expect(run.held?.reservation).toEqual(left)
    expect(run.page.status).toMatchObject({
      rule: { spendMaxMicroUsd: 950 },
      wish: { ...HOURLY.wish, count: 2 },
      reservation: left,
    })
    expect(run.carry()).toMatchObject({ parts: ['res-b'], promise: { ...PROMISE, microUsd: 950 } })
  })

  it('has its id for a name if it has no purpose', async () => {
    await split()
    const [options] = world.inputsOf('reserveCapacity') as [Record<string, unknown>]
    const attributes = options['typedSearchAttributes'] as { getAll: () => { value: unknown }[] }
    expect(attributes.getAll()[0]?.value).toBe('res-b')
  })

  it('has no limit if the other one has none', async () => {
    hold({ rule: { idleMaxMs: HOUR_MS } })
    await split()
    expect(world.inputsOf('splitReservation')).toMatchObject([{ part: { rule: { idleMaxMs: HOUR_MS } } }])
    expect(world.inputsOf('promiseBudget')).toMatchObject([{ microUsd: 0 }])
    expect(run.page.status.rule).toEqual({ idleMaxMs: HOUR_MS })
  })

  it('is not made if the provider refuses it', async () => {
    world.answers['splitReservation'] = failing('capacity', 'They are in use.')
    expect(await split()).toBe('refused: They are in use.')
    expect(world.names()).toEqual(['splitReservation'])
    expect(run.carry().parts).toEqual([])
  })

  it('is asked for again while it is unknown whether it was made', async () => {
    world.answers['splitReservation'] = () => {
      world.answers['splitReservation'] = () => reservation
      return failing('unclassified', 'No answer.')()
    }
    const answer = split()
    await turns()
    expect(run.page.status.trouble).toBe('No answer.')
    await endPauses()
    expect(await answer).toBe('1 machine of cr-1 is cr-2 now, held by res-b.')
    expect(world.inputsOf('splitReservation')).toHaveLength(2)
    expect(run.page.status).not.toHaveProperty('trouble')
  })

  it('may have been started already', async () => {
    world.answers['reserveCapacity'] = () => {
      throw new WorkflowExecutionAlreadyStartedError('there', 'reservation/res-b', 'reserveCapacity')
    }
    expect(await split()).toBe('1 machine of cr-1 is cr-2 now, held by res-b.')
    expect(run.page.status.wish.count).toBe(3)
  })

  it('that cannot be started is an error', async () => {
    world.answers['reserveCapacity'] = () => {
      throw new Error('no such namespace')
    }
    expect(await split()).toBe('refused: no such namespace')
  })
})
