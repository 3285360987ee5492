/** The options of the activities of reservations and of retraining: who is asked, for how long, and how often. */
import { describe, expect, it, jest } from '@jest/globals'
import type { ActivityOptions } from '@temporalio/workflow'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type * as Reserving from '../../workflows/reservation/activities'
import type * as Retraining from '../../workflows/retraining/activities'

/** Every activity of a proxy is the proxy's options. */
jest.mock('@temporalio/workflow', () => {
  const proxying = (options: ActivityOptions): object => new Proxy({}, { get: () => options })
  const local = (options: ActivityOptions): object => new Proxy({}, { get: () => async () => options })
  return { proxyActivities: proxying, proxyLocalActivities: local, defineSignal: String }
})
const reserving = jest.requireActual<typeof Reserving>('../../workflows/reservation/activities')
const retraining = jest.requireActual<typeof Retraining>('../../workflows/retraining/activities')

/** What an activity's proxy was made with. */
const optionsOf = (proxy: object, name: string): ActivityOptions =>
  (proxy as Record<string, ActivityOptions>)[name]!

const STEPS = Object.keys(retraining.retraining)

const effects: [string, ActivityOptions][] = [
  ['hold', optionsOf(reserving.reservingOn('here', 'look'), 'holdReservation')],
  ['buy', optionsOf(reserving.buying('here'), 'buyCapacity')],
  ['find', optionsOf(reserving.looking('here'), 'findPurchase')],
  ['money', optionsOf(reserving.reservationDocuments, 'promiseBudget')],
  ['news of a reservation', optionsOf(reserving.telling, 'tellReservation')],
  ['step of a run', optionsOf(retraining.retraining, 'resolveRun')],
  ['end of a job', optionsOf(retraining.awaited, 'endOfJob')],
  ['news of a run', optionsOf(retraining.attempted, 'tellRun')],
]
const all = (field: keyof ActivityOptions): object =>
  Object.fromEntries(effects.map(([name, options]) => [name, options[field]]))

describe('an activity of a reservation or of a run', () => {
  it.each(effects)('is waited for when it is cancelled, and beats within 20 s: %s', (_, options) => {
    expect(options).toMatchObject({
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      heartbeatTimeout: '20 seconds',
    })
  })

  it('goes to the queue of who does it', () => {
    const orchestrator = 'crucible'
    expect(all('taskQueue')).toEqual({
      hold: 'crucible.here',
      buy: 'crucible.here',
      find: 'crucible.here',
      money: orchestrator,
      'news of a reservation': orchestrator,
      'step of a run': orchestrator,
      'end of a job': orchestrator,
      'news of a run': orchestrator,
    })
  })

  it('may take as long as its work takes, and waits for a worker', () => {
    expect(all('startToCloseTimeout')).toEqual({
      hold: 2 * MINUTE_MS,
      buy: 5 * MINUTE_MS,
      find: 2 * MINUTE_MS,
      money: 2 * MINUTE_MS,
      'news of a reservation': MINUTE_MS,
      'step of a run': '5 minutes',
      'end of a job': '30 days',
      'news of a run': '1 minute',
    })
    expect(all('scheduleToStartTimeout')).toEqual({
      hold: '1 day',
      money: '1 day',
      'news of a reservation': '1 day',
      'step of a run': '1 day',
      'end of a job': '1 day',
      'news of a run': '1 day',
      // A purchase that no worker sends is not sent much later; one that was sent is looked for.
      buy: HOUR_MS,
      find: '365 days',
    })
  })

  it('is sent once if it buys, a few times if it tells, and otherwise as often as it takes', () => {
    const tries = effects.map(([name, { retry }]): [string, unknown] => [name, retry?.maximumAttempts])
    expect(Object.fromEntries(tries)).toEqual({
      buy: 1,
      'news of a reservation': 5,
      'news of a run': 5,
    })
  })

  it('is repeated every few minutes at last: of a reservation after five, of a run after one', () => {
    const pauses = effects.map(([name, { retry }]): [string, unknown] => [name, retry?.maximumInterval])
    expect(Object.fromEntries(pauses)).toEqual({
      hold: '5 minutes',
      find: '5 minutes',
      money: '5 minutes',
      'news of a reservation': '5 minutes',
      'step of a run': '1 minute',
      'end of a job': '1 minute',
      'news of a run': '1 minute',
    })
  })

  it('says in the Temporal UI what it does, each step of a run in words of its own', () => {
    const steps = STEPS.map((name) => optionsOf(retraining.retraining, name).summary)
    expect(steps).not.toContain(undefined)
    expect(new Set(steps).size).toBe(STEPS.length)
  })
})

describe('a decision of a run', () => {
  it('is local, and tried once: a local activity that is retried keeps its run from hearing anything', async () => {
    const page = { trouble: () => undefined } as never
    expect(await retraining.decide(page, 'judgeModel', {} as never)).toEqual({
      startToCloseTimeout: '10 seconds',
      retry: { maximumAttempts: 1 },
    })
  })
})
