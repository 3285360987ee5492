/** How what is held ends: before its time, by the provider's word, or because somebody gives it back. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { OwnedReservation } from '../../core/reservation/reservation'
import type { ReservationCarry, ReservationInput, ReservationState } from '../../core/reservation/reserving'
import { HOUR_MS } from '../../core/time/time'
import type * as Holding from '../../workflows/reservation/hold'
import type * as Runs from '../../workflows/reservation/run'
import { INTENT, NOW_MS, ownedOf } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, endPauses, holding, HOURLY, INPUT, turns, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { holdReservation } = jest.requireActual<typeof Holding>('../../workflows/reservation/hold')
const { ReservationRun } = jest.requireActual<typeof Runs>('../../workflows/reservation/run')

const PAID = 900
const PROMISE = { jobId: `reservation/${INTENT}/1`, month: '2026-11', microUsd: 1_000 }

let run: Runs.ReservationRun

function hold(input: ReservationInput, state: ReservationState, carry: Partial<ReservationCarry> = {}): void {
  const all = holding(input, { held: { state }, status: { state } })
  run = new ReservationRun({ ...all, carry: { ...all.carry!, promise: PROMISE, ...carry } })
}
/** The next look finds it at its end. */
function ends(state: ReservationState, reservation: Partial<OwnedReservation>): void {
  world.answers['holdReservation'] = ({ held }: { held: object }) => ({
    held: { ...held, state, reservation: ownedOf(reservation) },
    next: 'over',
    message: 'It is over.',
    lookInMs: HOUR_MS,
  })
}
const settledBy = (): unknown[] => world.inputsOf('settleBudget').map((input) => input['spentMicroUsd'])

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
})

describe('what is held', () => {
  it('is looked for again, once, if its payment failed', async () => {
    hold(INPUT, 'unpaid', { earlierMicroUsd: 5 })
    run.page.update({ decision: { kind: 'approved', by: 'ada', atMs: 0 } })
    ends('failed', { phase: 'failed' })
    expect(await holdReservation(run)).toBe('lost')
    expect(settledBy()).toEqual([0])
    expect(run.page.status).toMatchObject({
      state: 'searching',
      message: 'It is over. The search begins again.',
      spentMicroUsd: 5,
    })
    expect(run.page.status).not.toHaveProperty('decision')
    expect(run.carry()).toMatchObject({ paymentFailures: 1, earlierMicroUsd: 5 })
  })

  it.each<[string, ReservationInput, string]>([
    ['prepaid', INPUT, "2 payments failed: check the account's means of payment, then reserve again."],
    [
      'hourly',
      HOURLY,
      'The provider took 2 orders and could not hold them: reserve again later, or elsewhere.',
    ],
  ])('is over after a second payment that failed: %s', async (_, input, advice) => {
    hold(input, 'unpaid', { paymentFailures: 1 })
    ends('failed', { phase: 'failed' })
    expect(await holdReservation(run)).toBe('over')
    expect(run.page.status).toMatchObject({
      state: 'failed',
      message: `It is over. ${advice}`,
      spentMicroUsd: 0,
    })
    expect(run.carry()).toMatchObject({ paymentFailures: 2 })
  })

  it('is looked for again if it was taken back before its start, and was paid', async () => {
    hold(INPUT, 'scheduled', { earlierMicroUsd: 5 })
    ends('failed', { phase: 'failed' })
    expect(await holdReservation(run)).toBe('lost')
    expect(settledBy()).toEqual([PAID])
    expect(run.page.status).toMatchObject({ state: 'searching', spentMicroUsd: PAID + 5 })
    expect(run.carry()).toMatchObject({ paymentFailures: 0, earlierMicroUsd: PAID + 5 })
  })

  it.each<[string, ReservationState, Partial<OwnedReservation>]>([
    ['it was in use', 'active', { phase: 'failed' }],
    ['it is only no longer listed', 'unpaid', { phase: 'ended' }],
    ['it is no longer listed before its start', 'scheduled', { phase: 'ended' }],
  ])('is over, and counts as paid, if %s', async (_, state, reservation) => {
    hold(INPUT, state)
    ends('ended', reservation)
    expect(await holdReservation(run)).toBe('over')
    expect(settledBy()).toEqual([PAID])
    expect(run.page.status).toMatchObject({
      state: 'ended',
      message: 'It is over.',
      spentMicroUsd: PAID,
    })
    expect(run.carry()).toMatchObject({ paymentFailures: 0 })
  })
})

describe('a person who gives back what is held', () => {
  /** Looks, asks in the pause before the next look, and lets that be the end. */
  const release = async (): Promise<string> => {
    hold(HOURLY, 'active')
    world.answers['holdReservation'] = ({ held }: { held: object }) => ({
      held,
      next: 'hold',
      message: 'It is held.',
      lookInMs: HOUR_MS,
    })
    const over = holdReservation(run)
    await turns()
    const answer = world.tell('release', { chargeMaxMicroUsd: 70 })
    await turns()
    expect(run.requests.release).toBeUndefined()
    ends('ended', { phase: 'ended' })
    await endPauses()
    expect(await over).toBe('over')
    return answer
  }

  it('hears that it is done', async () => {
    expect(await release()).toBe('It is released.')
    const ref = { id: 'cr-1', region: 'east' }
    expect(world.inputsOf('releaseReservation')).toMatchObject([
      { ref, reason: 'ada asked for it', chargeMaxMicroUsd: 70 },
    ])
  })

  it('hears why not', async () => {
    world.answers['releaseReservation'] = () => {
      throw new Error('It is charged for a month.')
    }
    expect(await release()).toBe('refused: It is charged for a month.')
  })
})
