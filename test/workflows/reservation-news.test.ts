/** What a reservation tells: its webhook, and the workflow that waits for it. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { ReservationCarry, ReservationInput } from '../../core/reservation/reserving'
import type * as Runs from '../../workflows/reservation/run'
import { INTENT, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, holding, INPUT, turns, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { ReservationRun } = jest.requireActual<typeof Runs>('../../workflows/reservation/run')

const HELD = holding(INPUT)
const runWith = (input: Partial<ReservationInput> = {}): Runs.ReservationRun =>
  new ReservationRun({ ...INPUT, ...input })
const runOf = (carry: Partial<ReservationCarry>): Runs.ReservationRun =>
  runWith({ carry: { ...HELD.carry!, ...carry } })

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
})

describe('news of a reservation', () => {
  /** Posts that are not answered yet. */
  let posts: { taken: () => void; refused: (error: Error) => void }[]
  beforeEach(() => {
    posts = []
    world.answers['tellReservation'] = () =>
      new Promise<void>((taken, refused) => posts.push({ taken, refused }))
  })
  const noting = (done: Promise<void>): (() => boolean) => {
    let isDone = false
    void done.then(() => (isDone = true))
    return () => isDone
  }

  it('are posted nowhere without a webhook', async () => {
    const run = runWith()
    run.report('begins', 'Soon.')
    await run.told()
    expect(world.asked).toEqual([])
    expect(run.task().recordSeq).toBe(1)
  })

  it('are posted one after the other, with the state of then, and its end waits for them', async () => {
    const run = runWith({ webhookOf: 'res-w', pageUrl: 'https://ui.test/res' })
    run.report('begins', 'Soon.')
    run.page.update({ message: 'Later.' })
    run.report('idle', 'It is unused.')
    const isTold = noting(run.told())
    await turns()
    expect(world.inputsOf('tellReservation')).toHaveLength(1)
    posts.shift()!.taken()
    await turns()
    expect(isTold()).toBe(false)
    posts.shift()!.taken()
    await turns()
    expect(isTold()).toBe(true)
    const common = { reservationId: INTENT, deployment: 'dep', owner: 'ada', webhookOf: 'res-w' }
    const { status } = run.page
    expect(world.asked).toEqual([
      [
        'tellReservation',
        {
          ...common,
          recordSeq: 1,
          pageUrl: 'https://ui.test/res',
          status: { ...status, message: 'Looking for capacity.' },
          news: { event: 'begins', text: 'Soon.' },
        },
      ],
      [
        'tellReservation',
        {
          ...common,
          recordSeq: 2,
          pageUrl: 'https://ui.test/res',
          status,
          news: { event: 'idle', text: 'It is unused.' },
        },
      ],
    ])
  })

  it('that are not taken are shown until others are', async () => {
    const run = runWith({ webhookOf: 'res-w' })
    run.report('begins', 'Soon.')
    await turns()
    posts.shift()!.refused(new Error('404'))
    await turns()
    expect(run.page.status.webhookTrouble).toBe('The webhook refused the event: 404')
    run.report('idle', 'It is unused.')
    await turns()
    posts.shift()!.taken()
    await turns()
    expect(run.page.status).not.toHaveProperty('webhookTrouble')
  })

  it('ask for an approval once for each offer, and not while the same one becomes cheaper', () => {
    const run = runWith({ webhookOf: 'res-w' })
    const dear = quoteOf()
    const cheap = quoteOf({ upfrontMicro: 1 })
    const other = quoteOf({ zone: 'east-b' })
    const reports = jest.spyOn(run, 'report')
    const ask = (quote = dear, message = 'For sale.'): number => {
      run.ask({ quote, machineHourMicro: 1 }, message)
      return reports.mock.calls.length
    }
    expect(ask()).toBe(1)
    expect(reports).toHaveBeenLastCalledWith(
      'waits-for-approval',
      `For sale. Buy it: crucible reservations approve ${INTENT}. Do not: crucible reservations reject ${INTENT}.`,
    )
    expect(run.page.status).toMatchObject({
      state: 'awaiting-approval',
      message: 'For sale.',
      quote: { quote: dear, machineHourMicro: 1 },
    })
    expect([ask(dear), ask(cheap), ask(other)]).toEqual([1, 1, 2])
    expect(run.carry().askedFor).toEqual(other)
    // After a search without any.
    run.page.move('searching', 'Sold out.')
    expect(ask(other)).toBe(3)
  })

  it('do not ask again in a fresh history', () => {
    const status = { ...HELD.carry!.status, state: 'awaiting-approval' as const }
    const run = runOf({ status, askedFor: quoteOf() })
    const reports = jest.spyOn(run, 'report')
    run.ask({ quote: quoteOf(), machineHourMicro: 1 }, 'For sale.')
    expect(reports).not.toHaveBeenCalled()
  })
})

describe('a workflow that waits for a reservation', () => {
  it('hears of every change of its state, and of what it holds', async () => {
    const run = runWith({ notifyWorkflowId: 'retrain/ranker-1' })
    const quote = { quote: quoteOf(), machineHourMicro: 1 }
    run.page.move('awaiting-approval', 'For sale.', { quote })
    run.page.forget('quote')
    run.page.move('scheduled', 'It is bought.', { reservation: ownedOf(), spentMicroUsd: 9 })
    expect(world.signals).toEqual([
      [
        'retrain/ranker-1',
        'reservation',
        { id: INTENT, state: 'awaiting-approval', message: 'For sale.', spentMicroUsd: 0, quote },
      ],
      [
        'retrain/ranker-1',
        'reservation',
        {
          id: INTENT,
          state: 'scheduled',
          message: 'It is bought.',
          spentMicroUsd: 9,
          reservation: ownedOf(),
        },
      ],
    ])
  })

  it('hears of it before the end of the reservation, and may be over itself', async () => {
    const run = runWith({ notifyWorkflowId: 'retrain/ranker-1' })
    let refuse!: (error: Error) => void
    world.answers['signal'] = () => new Promise((_, refused) => (refuse = refused))
    run.page.move('failed', 'So.')
    let isTold = false
    const told = run.told().then(() => (isTold = true))
    await turns()
    expect(isTold).toBe(false)
    refuse(new Error('not found'))
    await told
  })

  it('hears nothing if it is not named', () => {
    runWith().page.move('failed', 'So.')
    expect(world.signals).toEqual([])
  })
})
