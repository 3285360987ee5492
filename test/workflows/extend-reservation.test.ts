/** What is held is extended: on request, for jobs that need it, and by a purchase whose outcome is unknown at first. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import { carrying } from '../../core/failure'
import type { OwnedReservation } from '../../core/reservation/reservation'
import type { UndecidedPurchase } from '../../core/reservation/reserving'
import type { HoldState } from '../../core/reservation/activities'
import { DAY_MS } from '../../core/time/time'
import type * as Extending from '../../workflows/reservation/extend'
import type * as Runs from '../../workflows/reservation/run'
import { INTENT, NOW_MS, ownedOf, quoteOf, without } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, holding, INPUT, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { checkUndecided, extendByForecast, extendOnRequest } = jest.requireActual<typeof Extending>(
  '../../workflows/reservation/extend',
)
const { ReservationRun } = jest.requireActual<typeof Runs>('../../workflows/reservation/run')

/** What is held ends in three days; the extension ends a day later. */
const END_MS = NOW_MS + 3 * DAY_MS
const NEXT_END_MS = NOW_MS + 4 * DAY_MS
const QUOTE = quoteOf({ extends: 'cr-1', endsAtMs: NEXT_END_MS, upfrontMicro: 500_000 })
const PAID = 900_000
const SOLD = 'cr-1 is extended to 2026-11-06T00:00:00Z, once $0.50 are paid.'

let run: Runs.ReservationRun

function hold(held: Partial<HoldState> = {}, undecided?: UndecidedPurchase): void {
  const status = undecided === undefined ? {} : { undecided }
  run = new ReservationRun(holding(INPUT, { held: { upfrontMicroUsd: PAID, ...held }, status }))
}

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  world.answers = {
    lookForCapacity: ({ sends }: { sends: number }) => ({
      kind: 'buy',
      sends,
      judged: { quote: QUOTE },
      account: '1234',
      alternatives: [],
    }),
    buyCapacity: () => ({ kind: 'reserved', reservation: ownedOf() }),
  }
  hold()
})

const durations = (): unknown[] =>
  world.inputsOf('lookForCapacity').map((input) => (input['wish'] as { durationMs: number }).durationMs)
const settledBy = (): unknown[] => world.inputsOf('settleBudget').map((input) => input['spentMicroUsd'])

describe('an extension on request', () => {
  const extend = async (update: object): Promise<string> => {
    const answer = world.tell('extendReservation', { upfrontMaxMicroUsd: 600_000, ...update })
    await extendOnRequest(run)
    expect(run.requests.extension).toBeUndefined()
    return answer
  }

  it('by a time is bought, and counts in what was spent', async () => {
    expect(await extend({ durationMs: 2 * DAY_MS })).toBe(SOLD)
    expect(durations()).toEqual([2 * DAY_MS])
    expect(run.held).toMatchObject({
      upfrontMicroUsd: PAID + 500_000,
      extendedMicroUsd: 500_000,
      extendedToMs: NEXT_END_MS,
    })
    expect(run.page.status.spentMicroUsd).toBe(PAID + 500_000)
    expect(settledBy()).toEqual([500_000])
    expect(run.carry()).toMatchObject({ sends: 2 })
  })

  it.each<[string, Partial<HoldState>, number]>([
    ['its end', {}, 5 * DAY_MS],
    ['the end of its last extension, which no list shows yet', { extendedToMs: NEXT_END_MS }, 4 * DAY_MS],
    [
      'the end of its last extension, which a list shows',
      { reservation: ownedOf({ phase: 'active', extension: { phase: 'paid', endsAtMs: NEXT_END_MS } }) },
      4 * DAY_MS,
    ],
  ])('to a new end buys the time from %s', async (_, held, durationMs) => {
    hold(held)
    await extend({ endsAtMs: NOW_MS + 8 * DAY_MS })
    expect(durations()).toEqual([durationMs])
  })

  it.each([
    ['the new end is there', { endsAtMs: END_MS }],
    ['it ends later than the asker saw', { durationMs: DAY_MS, seenEndsAtMs: END_MS - 1 }],
  ])('buys nothing if %s', async (_, update) => {
    expect(await extend(update)).toBe(
      'It is already extended: cr-1 ends 2026-11-05T00:00:00Z. Nothing more was bought.',
    )
    expect(world.names()).toEqual([])
  })

  it.each([
    ['a later end', { endsAtMs: END_MS + 1 }],
    ['more time than the end that the asker saw', { durationMs: 1, seenEndsAtMs: END_MS }],
  ])('buys %s', async (_, update) => {
    await extend(update)
    expect(durations()).toEqual([1])
  })

  it('says why it was not bought', async () => {
    world.answers['lookForCapacity'] = () => {
      throw ApplicationFailure.create(carrying({ class: 'auth', message: 'The role may not buy.' }))
    }
    expect(await extend({ durationMs: DAY_MS })).toBe('refused: The role may not buy.')
  })

  it.each([NOW_MS, undefined])('is settled once its payment is certain: bought at %s', async (boughtAtMs) => {
    const bought = boughtAtMs === undefined ? {} : { boughtAtMs }
    const extension = { phase: 'unpaid' as const, endsAtMs: NEXT_END_MS, ...bought }
    world.answers['buyCapacity'] = () => ({ kind: 'reserved', reservation: ownedOf({ extension }) })
    expect(await extend({ durationMs: DAY_MS })).toBe(SOLD)
    expect(run.held?.extending).toEqual({ microUsd: 500_000, endsAtMs: NEXT_END_MS, ...bought })
    expect(settledBy()).toEqual([])
  })
})

describe('an extension for jobs', () => {
  it('is not looked for while another one is in question', async () => {
    hold({}, undecidedOf())
    await extendByForecast(run)
    expect(world.names()).toEqual([])
  })

  it('that is not worth it is shown with why', async () => {
    world.answers = {
      lookForExtension: () => ({ jobs: ['job'] }),
      decideExtension: () => ({ kind: 'move', message: 'Moving the jobs is cheaper.' }),
    }
    await extendByForecast(run)
    expect(run.page.status.message).toBe('Moving the jobs is cheaper.')
    expect(world.names()).toEqual(['lookForExtension', 'decideExtension'])
  })
})

function undecidedOf(more: Partial<UndecidedPurchase> = {}): UndecidedPurchase {
  const order = { intent: INTENT, send: 2, deployment: 'dep', owner: 'ada', backend: 'ec2', quote: QUOTE }
  return { order, sentAtMs: NOW_MS, account: [], candidates: [], lookedAtMs: NOW_MS, ...more }
}

describe('an extension in question', () => {
  const shown = (endsAtMs: number): OwnedReservation => ownedOf({ phase: 'active', endsAtMs })
  const asked = (): Promise<string> => world.tell('decidePurchase', { kind: 'not-bought' })
  beforeEach(() => {
    world.answers['findPurchase'] = () => ({ kind: 'absent', saw: 'Nothing.', candidates: [] })
    world.answers['decidePurchase'] = world.answers['findPurchase']
  })

  it.each<[string, UndecidedPurchase, Partial<HoldState>, string[]]>([
    ['not within a day', undecidedOf({ lookedAtMs: NOW_MS - DAY_MS + 1 }), {}, []],
    ['after a day', undecidedOf({ lookedAtMs: NOW_MS - DAY_MS }), {}, ['findPurchase']],
    ['after no look', without(undecidedOf(), 'lookedAtMs'), {}, ['findPurchase']],
    ['when a list shows its end', undecidedOf(), { reservation: shown(NEXT_END_MS) }, ['findPurchase']],
    ['not when a list shows an earlier end', undecidedOf(), { reservation: shown(NEXT_END_MS - 1) }, []],
  ])('is looked for %s', async (_, undecided, held, names) => {
    hold(held, undecided)
    await checkUndecided(run)
    expect(world.names()).toEqual(names)
    if (names.length > 0) expect(run.page.status.undecided).toMatchObject({ lookedAtMs: NOW_MS })
  })

  it('is looked for at the end, and when a person has decided', async () => {
    hold({}, undecidedOf())
    await checkUndecided(run, { isLast: true })
    void asked()
    await checkUndecided(run)
    expect(world.names()).toEqual(['findPurchase', 'decidePurchase'])
    expect(run.page.status).toHaveProperty('undecided')
  })

  it('that was bought counts in what was spent', async () => {
    hold({}, undecidedOf())
    world.answers['findPurchase'] = () => ({ kind: 'found', reservation: ownedOf() })
    await checkUndecided(run, { isLast: true })
    expect(run.page.status).toMatchObject({ spentMicroUsd: PAID + 500_000 })
    expect(run.page.status).not.toHaveProperty('undecided')
    expect(run.held).toMatchObject({ extendedToMs: NEXT_END_MS })
  })
})
