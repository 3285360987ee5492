/** What a reservation carries from step to step: its place in the record, the money of its month, and its figures. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import { carrying } from '../../core/failure'
import { RETRY_SIGNAL } from '../../core/messages'
import type { ReservationCarry, ReservationInput } from '../../core/reservation/reserving'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type * as Runs from '../../workflows/reservation/run'
import { INTENT, NOW_MS, quoteOf } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, endPauses, holding, INPUT, turns, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { ReservationRun } = jest.requireActual<typeof Runs>('../../workflows/reservation/run')

const HELD = holding(INPUT)
/** Reserved in the month before. */
const PROMISE = { jobId: `reservation/${INTENT}/1`, month: '2026-10', microUsd: 50 }

const runWith = (input: Partial<ReservationInput> = {}): Runs.ReservationRun =>
  new ReservationRun({ ...INPUT, ...input })
const runOf = (carry: Partial<ReservationCarry>): Runs.ReservationRun =>
  runWith({ carry: { ...HELD.carry!, ...carry } })
const quota = (): never => {
  throw ApplicationFailure.create(
    carrying({ class: 'quota', message: 'The month is full.', hint: 'Raise it.' }),
  )
}

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
})

describe('what a reservation carries into a fresh history', () => {
  it('is nothing but its beginning at first', () => {
    const run = runWith()
    expect(run.carry()).toEqual({
      sends: 0,
      recordSeq: 1,
      paymentFailures: 0,
      earlierMicroUsd: 0,
      parts: [],
      status: run.page.status,
    })
    expect([run.isFirstLook(), run.held, run.lookedAtMs]).toEqual([true, undefined, undefined])
  })

  it('is everything that it knows', () => {
    const carry = {
      ...HELD.carry!,
      sends: 3,
      recordSeq: 40,
      paymentFailures: 1,
      earlierMicroUsd: 5,
      parts: ['res-b'],
      promise: PROMISE,
      askedFor: quoteOf(),
      lookedAtMs: NOW_MS,
    }
    expect(runWith({ carry }).carry()).toEqual({ ...carry, status: { ...carry.status, runId: 'run' } })
  })

  it('is taken along once its history is long, unless somebody has asked something', () => {
    const run = runWith()
    expect(run.isLong).toBe(false)
    world.isLong = true
    expect(run.isLong).toBe(true)
    run.requests.rejected = { by: 'ada' }
    expect(run.isLong).toBe(false)
  })
})

describe('the record of a reservation', () => {
  it('gives each step the next number, or several', () => {
    const run = runWith()
    const common = { reservationId: INTENT, deployment: 'dep', owner: 'ada' }
    expect([run.task(), run.task(20), run.task()]).toEqual([
      { ...common, recordSeq: 1 },
      { ...common, recordSeq: 2 },
      { ...common, recordSeq: 22 },
    ])
    expect(run.isFirstLook()).toBe(false)
  })
})

describe('a pause', () => {
  const pausing = (): { run: Runs.ReservationRun; isOver: () => boolean } => {
    const run = runWith()
    let isOver = false
    void run.pause(HOUR_MS, 'until the next look').then(() => (isOver = true))
    return { run, isOver: () => isOver }
  }

  it('shows the next look until its time is over', async () => {
    const { run, isOver } = pausing()
    await turns()
    expect(isOver()).toBe(false)
    expect(run.page.status.nextLookAtMs).toBe(NOW_MS + HOUR_MS)
    expect(world.pauses).toEqual(['until the next look'])
    expect(await endPauses()).toEqual([HOUR_MS])
    expect(isOver()).toBe(true)
    expect(run.page.status.nextLookAtMs).toBeUndefined()
  })

  it.each<[string, (run: Runs.ReservationRun) => unknown]>([
    ['a request', (run) => (run.requests.rejected = { by: 'ada' })],
    ['the wish to look now', () => world.handlers.get(RETRY_SIGNAL)!.handle()],
  ])('ends with %s', async (_, happens) => {
    const { run, isOver } = pausing()
    await turns()
    happens(run)
    await turns()
    expect(isOver()).toBe(true)
  })

  it('does not begin while a request is open', async () => {
    const run = runWith()
    run.requests.rejected = { by: 'ada' }
    // A timer would be an event, even if it ended at once.
    const pauses = jest.spyOn(run.page.retries, 'pause')
    await run.pause(HOUR_MS, 'until the next look')
    expect(pauses).not.toHaveBeenCalled()
  })
})

describe('money for a purchase', () => {
  it('is reserved in the month of its order, or in this one', async () => {
    const run = runWith()
    expect(await run.promiseMoney({ send: 2 }, 70)).toBeUndefined()
    const november = { jobId: `reservation/${INTENT}/2`, month: '2026-11', microUsd: 70 }
    expect(world.asked).toEqual([['promiseBudget', { ...november, owner: 'ada' }]])
    expect(run.carry().promise).toEqual(november)
    await run.promiseMoney({ send: 2, month: '2026-11' }, 80)
    expect(world.names()).toEqual(['promiseBudget', 'promiseBudget'])
    expect(run.carry().promise).toEqual({ ...november, microUsd: 80 })
  })

  it('is given back first if that of another month is still reserved', async () => {
    const run = runOf({ promise: PROMISE })
    await run.promiseMoney({ send: 1 }, 70)
    expect(world.asked).toEqual([
      [
        'settleBudget',
        { month: '2026-10', jobId: PROMISE.jobId, owner: 'ada', spentMicroUsd: 0, isCertain: true },
      ],
      ['promiseBudget', { jobId: PROMISE.jobId, month: '2026-11', microUsd: 70, owner: 'ada' }],
    ])
  })

  it('is not reserved if a limit refuses it, which says what to do', async () => {
    world.answers['promiseBudget'] = quota
    const run = runWith()
    expect(await run.promiseMoney({ send: 1 }, 70)).toBe('The month is full. Raise it.')
    expect(run.carry().promise).toBeUndefined()
    expect(run.page.status.trouble).toBeUndefined()
  })

  it('is asked for again after any other trouble', async () => {
    world.answers['promiseBudget'] = () => {
      delete world.answers['promiseBudget']
      throw ApplicationFailure.create(carrying({ class: 'transient', message: 'No worker.' }))
    }
    const run = runWith()
    const promised = run.promiseMoney({ send: 1 }, 70)
    await turns()
    expect(run.page.status.trouble).toBe('No worker.')
    await endPauses()
    expect(await promised).toBeUndefined()
    expect(run.page.status.trouble).toBeUndefined()
  })

  it('is settled once, by what was spent', async () => {
    const run = runOf({ promise: PROMISE })
    await run.settleMoney(40)
    await run.settleMoney(40)
    const { jobId, month } = PROMISE
    expect(world.asked).toEqual([
      ['settleBudget', { month, jobId, owner: 'ada', spentMicroUsd: 40, isCertain: true }],
    ])
    expect(run.carry().promise).toBeUndefined()
  })
})

describe('money of what is held', () => {
  it.each<[string, Partial<ReservationCarry>, { jobId: string; month: string }]>([
    ['in the month of its purchase', { promise: PROMISE, sends: 4 }, PROMISE],
    ['for its last purchase', { sends: 4 }, { jobId: `reservation/${INTENT}/4`, month: '2026-11' }],
    ['for a first purchase', { sends: 0 }, { jobId: `reservation/${INTENT}/1`, month: '2026-11' }],
  ])('is raised %s, if a limit allows it', async (_, carry, { jobId, month }) => {
    const run = runOf(carry)
    world.answers['promiseBudget'] = quota
    expect(await run.raiseMoney(90)).toBe('The month is full. Raise it.')
    expect(run.carry().promise).toEqual(carry.promise)
    delete world.answers['promiseBudget']
    expect(await run.raiseMoney(90)).toBeUndefined()
    expect(world.asked.at(-1)).toEqual(['promiseBudget', { jobId, month, owner: 'ada', microUsd: 90 }])
    expect(run.carry().promise).toEqual({ jobId, month, microUsd: 90 })
  })

  it('is lowered to less than what is reserved, and never raised by that', async () => {
    const run = runOf({ promise: PROMISE })
    await run.lowerMoney(51)
    await run.lowerMoney(50)
    expect(world.asked).toEqual([])
    await run.lowerMoney(49)
    expect(world.asked).toEqual([
      ['promiseBudget', { ...PROMISE, owner: 'ada', microUsd: 49, isLowered: true }],
    ])
    expect(run.carry().promise).toEqual({ ...PROMISE, microUsd: 49 })
  })

  it('is not lowered if none is reserved', async () => {
    await runWith().lowerMoney(0)
    expect(world.asked).toEqual([])
  })

  it.each([
    [20, 30],
    [80, 0],
  ])('moves to a part: %i of 50, which leaves %i', async (microUsd, left) => {
    const run = runOf({ promise: PROMISE, sends: 3 })
    const moved = { jobId: 'reservation/res-b/1', month: '2026-10', microUsd }
    expect(await run.moveMoney('res-b', microUsd)).toEqual(moved)
    expect(world.asked).toEqual([['promiseBudget', { ...moved, owner: 'ada', from: PROMISE.jobId }]])
    expect(run.carry().promise).toEqual({ ...PROMISE, microUsd: left })
  })

  it.each([
    [4, 4],
    [0, 1],
  ])('moves from its last purchase if it is not known: %i', async (sends, from) => {
    const run = runOf({ sends })
    const moved = { jobId: 'reservation/res-b/1', month: '2026-11', microUsd: 20 }
    expect(await run.moveMoney('res-b', 20)).toEqual(moved)
    expect(world.inputsOf('promiseBudget')).toEqual([
      { ...moved, owner: 'ada', from: `reservation/${INTENT}/${from}` },
    ])
    expect(run.carry().promise).toBeUndefined()
  })
})

describe('purchases of a reservation', () => {
  it('are numbered on, in this month', () => {
    expect(runOf({ sends: 3 }).order(quoteOf())).toEqual({
      intent: INTENT,
      send: 4,
      deployment: 'dep',
      owner: 'ada',
      backend: 'ec2',
      month: '2026-11',
      quote: quoteOf(),
    })
  })

  it('that an earlier history made count, with the money that it reserved', () => {
    const run = runWith()
    run.tookPlace({ send: 2, month: '2026-10' }, 50)
    const promise = { jobId: `reservation/${INTENT}/2`, month: '2026-10', microUsd: 50 }
    expect(run.carry()).toMatchObject({ sends: 2, promise })
    run.tookPlace({ send: 1 }, 60)
    expect(run.carry()).toMatchObject({ sends: 2, promise })
  })

  it('that an earlier history made count in this month if theirs is unknown', () => {
    const run = runWith()
    run.tookPlace({ send: 1 }, 50)
    expect(run.carry().promise).toMatchObject({ month: '2026-11' })
  })

  it('that this history does not know give back what they have reserved', async () => {
    const run = runOf({ sends: 1 })
    await run.passed(1)
    expect(world.asked).toEqual([])
    await run.passed(3)
    expect(world.asked).toEqual([['releaseBudget', { reservationId: INTENT, sends: [2, 3] }]])
    expect(run.sends).toBe(3)
  })
})

describe('the figures of what is held', () => {
  it('are its cost with that of what was lost before, and since when it is idle', () => {
    const run = runOf({
      held: { ...HELD.carry!.held!, upfrontMicroUsd: 900, idleMicroUsd: 30, idleMs: MINUTE_MS },
      earlierMicroUsd: 5,
    })
    expect(run.figures()).toEqual({
      reservation: HELD.carry!.held!.reservation,
      spentMicroUsd: 935,
      idleMicroUsd: 30,
      idleSinceMs: NOW_MS - MINUTE_MS,
    })
  })

  it('name no idle time while a place is used', () => {
    expect(new ReservationRun(HELD).figures()).toEqual({
      reservation: HELD.carry!.held!.reservation,
      spentMicroUsd: 900,
      idleMicroUsd: 0,
    })
  })
})
