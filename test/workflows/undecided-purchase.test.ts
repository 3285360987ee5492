/** A purchase with an unknown outcome: it is looked for every day, until a look or a person knows. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { ReservationOrder } from '../../core/reservation/reservation'
import type { UndecidedPurchase } from '../../core/reservation/reserving'
import { DAY_MS } from '../../core/time/time'
import type * as Purchasing from '../../workflows/reservation/purchasing'
import type * as Runs from '../../workflows/reservation/run'
import { INTENT, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, endPauses, INPUT, turns, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { decision, lookForUndecided } = jest.requireActual<typeof Purchasing>(
  '../../workflows/reservation/purchasing',
)
const { ReservationRun } = jest.requireActual<typeof Runs>('../../workflows/reservation/run')

const ORDER: ReservationOrder = {
  ...{ intent: INTENT, send: 1, deployment: 'dep', owner: 'ada', backend: 'ec2', quote: quoteOf() },
}
const TASK = { reservationId: INTENT, deployment: 'dep', owner: 'ada' }
const FOUND = { kind: 'found', reservation: ownedOf() }
const failure = { class: 'capacity', message: 'It was never sent.' }
const candidates = [ownedOf({ id: 'cr-9' })]
const absent = (saw: string): object => ({ kind: 'absent', saw, candidates })

let run: Runs.ReservationRun
let undecided: UndecidedPurchase

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  run = new ReservationRun({ ...INPUT, rule: { upfrontMaxMicroUsd: 5 }, webhookOf: INTENT })
  undecided = { order: ORDER, sentAtMs: NOW_MS, account: ['Sent.'], candidates: [] }
})
const looks = (): string[] => world.names().filter((name) => name !== 'tellReservation')

describe('a purchase that a person must decide', () => {
  it('is shown and told, and looked for every day, until a look finds it', async () => {
    world.answers['findPurchase'] = () => absent('Nothing.')
    const decided = decision(run, undecided)
    await turns()
    expect(run.page.status).toMatchObject({
      ...{ state: 'undecided', undecided },
      message: 'A purchase was sent, and it is unknown whether it was made. A person must decide.',
    })
    const [post] = world.inputsOf('tellReservation') as [{ news: object }]
    expect(post.news).toEqual({
      event: 'undecided',
      text:
        'Purchase 1 of 4 × p5 for $960.00 was sent, and it is unknown whether it was made. Nothing else is bought meanwhile. ' +
        "Look at the account's reservations and bill, then: " +
        `crucible reservations decide ${INTENT} --bought RESERVATION, or --not-bought.`,
    })
    expect(looks()).toEqual([])
    expect([await endPauses(), await endPauses()]).toEqual([[DAY_MS], [DAY_MS]])
    expect(looks()).toEqual(['findPurchase', 'findPurchase'])
    expect(run.page.status.undecided).toMatchObject({
      account: ['Sent.', 'Nothing.', 'Nothing.'],
      candidates,
    })
    world.answers['findPurchase'] = () => FOUND
    await endPauses()
    expect(await decided).toEqual({ kind: 'reserved', reservation: ownedOf() })
  })

  it('is checked as soon as one has decided', async () => {
    world.answers['decidePurchase'] = () => FOUND
    const decided = decision(run, undecided)
    await turns()
    const answer = world.tell('decidePurchase', { kind: 'bought', reservationId: 'cr-1' })
    await turns()
    expect(await answer).toBe('It is cr-1.')
    expect(await decided).toEqual({ kind: 'reserved', reservation: ownedOf() })
  })
})

describe('a look for a purchase that is in question', () => {
  const look = (): ReturnType<typeof lookForUndecided> => lookForUndecided(run, undecided)
  const decide = (update: object): Promise<string> => world.tell('decidePurchase', update)
  /** A decision that comes during the look. */
  let late: Promise<string>
  const meanwhile = (answer: object) => (): object => {
    late = decide({ kind: 'not-bought' })
    return answer
  }
  beforeEach(() => run.page.move('undecided', 'Unknown.'))

  it('asks the provider by the rule, and says what it saw', async () => {
    world.answers['findPurchase'] = () => absent('Nothing.')
    expect(await look()).toBeUndefined()
    expect(world.asked).toEqual([
      ['findPurchase', { ...TASK, recordSeq: 1, order: ORDER, rule: { upfrontMaxMicroUsd: 5 } }],
    ])
    expect(run.page.status.undecided).toEqual({ ...undecided, account: ['Sent.', 'Nothing.'], candidates })
  })

  it.each<[string, object, object]>([
    ['that it was made', FOUND, { kind: 'reserved', reservation: ownedOf() }],
    ['that it had no effect', { kind: 'no-effect', failure }, { kind: 'refused', failure }],
  ])('may find out %s', async (_, found, result) => {
    world.answers['findPurchase'] = () => found
    expect(await look()).toEqual(result)
  })

  it('that fails shows why, and is not the last', async () => {
    world.answers['findPurchase'] = () => {
      throw new Error('no worker')
    }
    expect(await look()).toBeUndefined()
    expect(run.page.status.trouble).toBe('no worker')
  })

  it.each<[string, object, string | null, object, string]>([
    ['bought', { kind: 'bought', reservationId: 'cr-1' }, 'cr-1', FOUND, 'It is cr-1.'],
    [
      ...(['not bought', { kind: 'not-bought' }, null, { kind: 'no-effect', failure }] as const),
      'Nothing was bought. The search continues.',
    ],
  ])('checks what a person says: %s', async (_, update, ownedId, found, words) => {
    world.answers['decidePurchase'] = () => found
    const answer = decide(update)
    expect(await look()).toBeDefined()
    expect(world.asked).toEqual([
      ['decidePurchase', { ...TASK, recordSeq: 1, order: ORDER, by: 'ada', ownedId }],
    ])
    expect(await answer).toBe(words)
    expect(run.requests.decision).toBeUndefined()
  })

  it('that contradicts a person says so, and leaves the question open', async () => {
    world.answers['decidePurchase'] = () => {
      throw new Error('cr-1 is of another purchase.')
    }
    const answer = decide({ kind: 'bought', reservationId: 'cr-1' })
    expect(await look()).toBeUndefined()
    expect(await answer).toBe('refused: cr-1 is of another purchase.')
    expect(run.requests.decision).toBeUndefined()
    expect(run.page.status).not.toHaveProperty('trouble')
  })

  it('answers a person who decides what it has found out itself', async () => {
    world.answers['findPurchase'] = meanwhile({ kind: 'no-effect', failure })
    expect(await look()).toEqual({ kind: 'refused', failure })
    expect(await late).toBe('refused: That is known meanwhile. Nothing was bought. The search continues.')
    expect(run.requests.decision).toBeUndefined()
  })

  it('leaves a decision that came during it to the next, if it found out nothing', async () => {
    world.answers['findPurchase'] = meanwhile(absent('Nothing.'))
    await look()
    world.answers['decidePurchase'] = () => FOUND
    expect(await look()).toEqual({ kind: 'reserved', reservation: ownedOf() })
    expect(await late).toBe('It is cr-1.')
  })

  it('of an extension says that the end stays, if it was not bought', async () => {
    undecided.order = { ...ORDER, quote: quoteOf({ extends: 'cr-1' }) }
    world.answers['decidePurchase'] = () => ({ kind: 'no-effect', failure })
    const answer = decide({ kind: 'not-bought' })
    await look()
    expect(await answer).toBe('Nothing was bought. Its end stays.')
  })
})
