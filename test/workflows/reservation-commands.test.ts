/** What a reservation can be told, by its handlers alone: what each changes, and what it refuses. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import { quoteKey, type ReservationInput, type ReservationState } from '../../core/reservation/reserving'
import { HOUR_MS } from '../../core/time/time'
import { INTENT, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'
import type * as Commands from '../../workflows/reservation/commands'
import type * as Pages from '../../workflows/reservation/page'

interface Handler {
  handle: (argument?: unknown) => unknown
  validate: (argument?: unknown) => void
}

const handlers = new Map<string, Handler>()
let cancel: () => void

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  CancellationScope: {
    current: () => ({
      cancelRequested: new Promise((_, reject) => (cancel = () => reject(new Error('cancelled')))),
    }),
  },
  defineUpdate: (name: string) => name,
  defineSignal: (name: string) => name,
  defineQuery: (name: string) => name,
  setHandler: (name: string, handle: Handler['handle'], options?: { validator?: Handler['validate'] }) =>
    handlers.set(name, { handle, validate: options?.validator ?? (() => undefined) }),
  setCurrentDetails: () => undefined,
  upsertSearchAttributes: () => undefined,
  workflowInfo: () => ({ runId: 'run' }),
}))
const { ReservationRequests } = jest.requireActual<typeof Commands>('../../workflows/reservation/commands')
const { ReservationPage } = jest.requireActual<typeof Pages>('../../workflows/reservation/page')

const INPUT: ReservationInput = {
  reservationId: INTENT,
  owner: 'ada',
  deployment: 'dep',
  submittedAtMs: NOW_MS,
  rule: {},
  wish: { backend: 'ec2', kind: 'prepaid', types: ['p5'], count: 4, durationMs: HOUR_MS },
}

let page: Pages.ReservationPage
let requests: Commands.ReservationRequests

function begin(kind: 'prepaid' | 'hourly' = 'prepaid'): void {
  handlers.clear()
  page = new ReservationPage({ ...INPUT, wish: { ...INPUT.wish, kind } })
  requests = new ReservationRequests(page)
}
beforeEach(() => begin())

/** Throws what the validator says. A request that it lets through is not made: it would wait for its answer. */
const validate = (name: string, argument: object = {}): void =>
  handlers.get(name)!.validate({ by: 'ada', ...argument })

/** As the server does it: what the validator refuses is not handled. */
async function tell(name: string, argument: object = {}): Promise<unknown> {
  validate(name, argument)
  return handlers.get(name)!.handle({ by: 'ada', ...argument })
}

const STATES = {
  before: ['searching', 'awaiting-approval'],
  buying: ['buying', 'undecided'],
  held: ['unpaid', 'scheduled', 'active', 'releasing'],
  over: ['ended', 'rejected', 'unavailable', 'failed'],
} as const
const ALL: ReservationState[] = Object.values(STATES).flat()
const except = (...states: ReservationState[]): ReservationState[] =>
  ALL.filter((state) => !states.includes(state))

describe('an approval', () => {
  const judged = { quote: quoteOf(), machineHourMicro: 1 }
  const approval = { quote: quoteKey(quoteOf()) }

  it('buys exactly what is shown', async () => {
    page.move('awaiting-approval', 'For sale.', { quote: judged })
    expect(requests.isAny).toBe(false)
    expect(await tell('approve', approval)).toEqual({
      message: 'Approved: $960.00 upfront. It is bought now, if it is still for sale.',
    })
    expect(requests).toMatchObject({ approved: quoteOf(), isAny: true })
    expect(page.status.decision).toMatchObject({ kind: 'approved', by: 'ada' })
  })

  it('of hourly capacity names its price by the hour', async () => {
    const hourly = quoteOf({ kind: 'hourly', upfrontMicro: 0, perHourMicro: 2_010_000 })
    page.move('awaiting-approval', 'For sale.', { quote: { quote: hourly, machineHourMicro: 1 } })
    expect(await tell('approve', { quote: quoteKey(hourly) })).toEqual({
      message: 'Approved: $2.01 per hour, used or not. It is bought now, if it is still for sale.',
    })
  })

  it('of another offer is refused', async () => {
    page.move('awaiting-approval', 'For sale.', { quote: judged })
    const other = quoteKey(quoteOf({ upfrontMicro: 1 }))
    expect(() => validate('approve', { quote: other })).toThrow(/has changed since you saw it/)
    expect(requests.isAny).toBe(false)
  })

  it.each(except('awaiting-approval'))('is refused while the reservation is %s', (state) => {
    page.move(state, 'So.', { quote: judged })
    const words = `Nothing waits for approval: the reservation is ${state}.`
    expect(() => validate('approve', approval)).toThrow(words)
  })

  it('is refused without an offer', async () => {
    page.move('awaiting-approval', 'For sale.')
    expect(() => validate('approve', approval)).toThrow(/^Nothing waits for approval/)
  })
})

describe('a rejection', () => {
  it.each(STATES.before)('ends the search of a reservation that is %s', async (state) => {
    page.move(state, 'So.')
    expect(await tell('reject', { reason: 'too dear' })).toEqual({
      message: 'Rejected: nothing is bought, and the search ends.',
    })
    expect(requests).toMatchObject({ rejected: { by: 'ada', reason: 'too dear' }, isAny: true })
  })

  it.each(except(...STATES.before))('is refused while the reservation is %s', (state) => {
    page.move(state, 'So.')
    expect(() => validate('reject')).toThrow(`Nothing waits for approval: the reservation is ${state}.`)
    expect(requests.isAny).toBe(false)
  })

  it('is what a cancelled workflow gets, unless a person was first', async () => {
    cancel()
    await Promise.resolve()
    await Promise.resolve()
    expect(requests.rejected).toEqual({ by: 'somebody', reason: 'its workflow was cancelled' })
    begin()
    await tell('reject')
    cancel()
    await Promise.resolve()
    await Promise.resolve()
    expect(requests.rejected).toEqual({ by: 'ada' })
  })
})

describe('a decision', () => {
  it('is answered once it is checked, and is the only one until then', async () => {
    page.move('undecided', 'Unknown.')
    const told = tell('decidePurchase', { kind: 'not-bought' })
    expect(requests.isAny).toBe(true)
    expect(() => validate('decidePurchase')).toThrow('Another decision is being checked.')
    requests.decision!.done('Nothing was bought.')
    expect(await told).toEqual({ message: 'Nothing was bought.' })
  })

  it('that says neither is refused: it does not count as not bought', () => {
    page.move('undecided', 'Unknown.')
    expect(() => validate('decidePurchase', { kind: 'Bought' })).toThrow('State whether it was bought')
    expect(requests.isAny).toBe(false)
  })

  it('that is contradicted is refused as invalid', async () => {
    page.move('undecided', 'Unknown.')
    const told = tell('decidePurchase', { kind: 'not-bought' })
    requests.decision!.refuse('It was bought.')
    await expect(told).rejects.toMatchObject({
      message: 'It was bought.',
      type: 'invalid',
      nonRetryable: true,
    })
  })

  it.each(except('undecided'))('is refused while the reservation is %s', (state) => {
    page.move(state, 'So.')
    const words = `Nothing is undecided: the reservation is ${state}.`
    expect(() => validate('decidePurchase')).toThrow(words)
  })
})

describe('an extension', () => {
  const extension = { durationMs: HOUR_MS, upfrontMaxMicroUsd: microUsd(1) }

  it.each(['scheduled', 'active'] as const)('is bought for what is %s, one at a time', async (state) => {
    page.move(state, 'So.')
    const told = tell('extendReservation', extension)
    expect(requests.isAny).toBe(true)
    expect(() => validate('extendReservation', extension)).toThrow('Another extension is being bought.')
    requests.extension!.done('It is longer.')
    expect(await told).toEqual({ message: 'It is longer.' })
  })

  it.each(except('scheduled', 'active'))('is refused while the reservation is %s', (state) => {
    page.move(state, 'So.')
    const words = `Only held capacity can be extended: the reservation is ${state}.`
    expect(() => validate('extendReservation', extension)).toThrow(words)
  })

  it.each([
    ['no time', { durationMs: 0 }, '0s is not a valid extension.'],
    ['a negative time', { durationMs: -1 }, 'is not a valid extension.'],
    ['no number', { durationMs: NaN }, 'is not a valid extension.'],
    ['no time and no end', { durationMs: undefined }, 'Give either the duration'],
    ['a time and an end', { endsAtMs: NOW_MS }, 'Give either the duration'],
    ['no price', { upfrontMaxMicroUsd: 0 }, 'The highest price of the extension is missing.'],
  ])('by %s is refused', (_, changes, words) => {
    page.move('active', 'So.')
    expect(() => validate('extendReservation', { ...extension, ...changes })).toThrow(words)
  })

  it('of hourly capacity is refused', () => {
    begin('hourly')
    page.move('active', 'So.')
    expect(() => validate('extendReservation', extension)).toThrow(/^Hourly capacity has no fixed time/)
  })
})

describe('a change of the machines', () => {
  beforeEach(() => begin('hourly'))

  it('is made of what is active, one at a time', async () => {
    page.move('active', 'So.')
    const told = tell('resizeReservation', { count: 5 })
    expect(requests.isAny).toBe(true)
    expect(() => validate('resizeReservation', { count: 6 })).toThrow('Another change is being made.')
    expect(() => validate('splitReservation', { count: 1, newId: 'res-b' })).toThrow('Another change')
    requests.resize!.done('It has 5 machines.')
    expect(await told).toEqual({ message: 'It has 5 machines.' })
  })

  it.each(except('active'))('is refused while the reservation is %s', (state) => {
    page.move(state, 'So.')
    const words = `Only active capacity can be changed: the reservation is ${state}.`
    expect(() => validate('resizeReservation', { count: 5 })).toThrow(words)
    expect(() => validate('splitReservation', { count: 1, newId: 'res-b' })).toThrow(words)
  })

  it('of prepaid capacity is refused', () => {
    begin()
    page.move('active', 'So.')
    expect(() => validate('resizeReservation', { count: 5 })).toThrow(/^Prepaid capacity is paid for/)
  })

  it.each([
    [{}, 'Nothing to change'],
    [{ count: 0 }, 'Invalid number of machines: 0 (minimum 1).'],
    [{ count: 1.5 }, 'Invalid number of machines: 1.5 (minimum 1).'],
    [{ spendMaxMicroUsd: microUsd(49) }, 'The limit can only be raised, and it is $50.00 now.'],
  ])('by %j is refused', (change, words) => {
    page.update({ rule: { spendMaxMicroUsd: microUsd(50) } })
    page.move('active', 'So.')
    expect(() => validate('resizeReservation', change)).toThrow(words)
  })

  it('may be one of the share alone, which also fits what is prepaid and has not begun', async () => {
    begin()
    page.move('unpaid', 'So.')
    void Promise.resolve(tell('resizeReservation', { share: 'all' })).catch(() => undefined)
    await Promise.resolve()
    expect(requests.resize?.update).toMatchObject({ share: 'all' })
    begin()
    page.move('searching', 'So.')
    expect(() => validate('resizeReservation', { share: 'all' })).toThrow('Only held capacity')
    expect(() => validate('resizeReservation', { share: 'friends' })).toThrow('none, owner, all')
  })

  it('may be a later start of what has not begun, alone', async () => {
    const startsAtMs = NOW_MS + 1
    page.move('active', 'So.')
    expect(() => validate('resizeReservation', { startsAtMs })).toThrow('Only a start that lies ahead')
    page.move('scheduled', 'So.')
    expect(() => validate('resizeReservation', { startsAtMs, count: 5 })).toThrow('the only change')
    void Promise.resolve(tell('resizeReservation', { startsAtMs })).catch(() => undefined)
    await Promise.resolve()
    expect(requests.resize?.update).toMatchObject({ startsAtMs })
    expect(() => validate('resizeReservation', { startsAtMs })).toThrow('Another change is being made.')
  })

  it.each([
    ['resizeReservation', { count: 5 }],
    ['splitReservation', { count: 1, newId: 'res-b' }],
  ])('of the share waits for %s', (name, update) => {
    page.move('active', 'So.')
    void tell(name, update)
    expect(() => validate('resizeReservation', { share: 'all' })).toThrow('Another change is being made.')
  })

  it.each([{ endsAtMs: null }, { endsAtMs: NOW_MS }, { spendMaxMicroUsd: microUsd(50) }])(
    'by %j alone is taken',
    async (change) => {
      page.update({ rule: { spendMaxMicroUsd: microUsd(50) } })
      page.move('active', 'So.')
      void Promise.resolve(tell('resizeReservation', change)).catch(() => undefined)
      await Promise.resolve()
      expect(requests.resize?.update).toMatchObject(change)
    },
  )
})

describe('a split', () => {
  beforeEach(() => {
    begin('hourly')
    page.move('active', 'So.', { reservation: ownedOf({ kind: 'hourly', phase: 'active', total: 4 }) })
  })

  it('is made once, into another reservation', async () => {
    const told = tell('splitReservation', { count: 3, newId: 'res-b' })
    expect(requests).toMatchObject({ isAny: true, split: { update: { count: 3, newId: 'res-b' } } })
    expect(() => validate('splitReservation', { count: 1, newId: 'res-c' })).toThrow('Another change')
    requests.split!.done('Done.')
    expect(await told).toEqual({ message: 'Done.' })
  })

  it.each([
    [{ count: 4, newId: 'res-b' }, 'It has 4 machines, and keeps at least one.'],
    [{ count: 0, newId: 'res-b' }, 'Invalid number of machines: 0 (minimum 1).'],
    [{ count: 1, newId: INTENT }, `"${INTENT}" is not a valid id for another reservation.`],
    [{ count: 1, newId: 'b' }, '"b" is not a valid id for another reservation.'],
  ])('by %j is refused', (split, words) => {
    expect(() => validate('splitReservation', split)).toThrow(words)
  })
})

describe('a release', () => {
  const release = { chargeMaxMicroUsd: 0 }
  beforeEach(() => begin('hourly'))

  it.each([undefined, null, -1, 'all'])('that accepts %s as a charge is refused', (chargeMaxMicroUsd) => {
    begin('hourly')
    page.move('active', 'So.')
    expect(() => validate('release', { chargeMaxMicroUsd })).toThrow('State the accepted charge')
  })

  it.each(['unpaid', 'scheduled', 'active'] as const)('gives back what is %s, once', async (state) => {
    page.move(state, 'So.')
    const told = tell('release', release)
    expect(requests.isAny).toBe(true)
    expect(() => validate('release', release)).toThrow('It is being released.')
    requests.release!.done('It is released.')
    expect(await told).toEqual({ message: 'It is released.' })
  })

  it.each(except('unpaid', 'scheduled', 'active'))('is refused while the reservation is %s', (state) => {
    page.move(state, 'So.')
    expect(() => validate('release', release)).toThrow(`Nothing is held: the reservation is ${state}.`)
  })

  it('of prepaid capacity is refused', () => {
    begin()
    page.move('active', 'So.')
    expect(() => validate('release', release)).toThrow(/^Prepaid capacity cannot be released/)
  })
})

describe('requests that are open at the end', () => {
  it('are refused, and forgotten', async () => {
    page.move('active', 'So.')
    const extension = tell('extendReservation', { durationMs: 1, upfrontMaxMicroUsd: 1 })
    const hourly = { ...page.status.wish, kind: 'hourly' as const }
    page.update({ wish: hourly })
    const resize = tell('resizeReservation', { count: 1 })
    page.move('undecided', 'Unknown.')
    const decision = tell('decidePurchase', { kind: 'not-bought' })
    requests.close('The reservation is over (ended).')
    await expect(extension).rejects.toThrow('The reservation is over (ended).')
    await expect(decision).rejects.toThrow('The reservation is over (ended).')
    await expect(resize).rejects.toThrow('The reservation is over (ended).')
    expect(requests.isAny).toBe(false)
  })
})
