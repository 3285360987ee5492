/** The search of a reservation: what follows from each look, and what is known of what it has got. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import { carrying } from '../../core/failure'
import { quoteKey, type ReservationInput, type ReservationStatus } from '../../core/reservation/reserving'
import type { CapacityVerdict } from '../../core/reservation/activities'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type * as Reserving from '../../workflows/reservation/reserve-capacity'
import { hourlyOf, INTENT, NOW_MS, ownedOf, quoteOf, without } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, Continued, endPauses, HOURLY, INPUT, over, turns, world } from './reserving'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { reserveCapacity } = jest.requireActual<typeof Reserving>(
  '../../workflows/reservation/reserve-capacity',
)

const JUDGED = { quote: quoteOf(), machineHourMicro: 1 }
const OTHER = { quote: quoteOf({ zone: 'east-b' }), machineHourMicro: 2 }
const buy = { kind: 'buy', judged: JUDGED, lookInMs: HOUR_MS } as const
const ask = { kind: 'ask', judged: JUDGED, lookInMs: 2 * HOUR_MS, message: 'For sale.' } as const
const wait = { kind: 'wait', lookInMs: 9 * MINUTE_MS, message: 'Sold out.' } as const
const refused = { kind: 'refused', failure: { class: 'capacity', message: 'Sold out.' } }
const ORDER = {
  intent: INTENT,
  send: 1,
  deployment: 'dep',
  owner: 'ada',
  backend: 'ec2',
  quote: quoteOf(),
  month: '2026-11',
}

/** Verdicts of looks, each used once. Without any left, the search gives up. */
let verdicts: (Partial<CapacityVerdict> | (() => Partial<CapacityVerdict>))[]
/** When a hold begins, which is over at once: the status, and what it holds. */
let began: { status: ReservationStatus; held: object }[]

const status = (): ReservationStatus => world.status()
const lives = (input: ReservationInput = INPUT): ReturnType<typeof reserveCapacity> =>
  over(reserveCapacity(input))

beforeEach(() => {
  begin()
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  ;[verdicts, began] = [[], []]
  world.answers = {
    lookForCapacity: ({ sends }: { sends: number }) => {
      const next = verdicts.shift()
      return {
        account: '1234',
        alternatives: [],
        unseen: [],
        sends,
        kind: 'give-up',
        message: 'No more.',
        ...(typeof next === 'function' ? next() : next),
      }
    },
    holdReservation: ({ held }: { held: object }) => {
      began.push({ status: structuredClone(status()), held })
      return { held: { ...held, state: 'ended' }, message: 'It ended.', next: 'over', lookInMs: HOUR_MS }
    },
    buyCapacity: () => ({ kind: 'reserved', reservation: ownedOf() }),
  }
})

describe('what a search has got', () => {
  it('is shown as bought, and not as paid yet', async () => {
    verdicts = [buy]
    await lives()
    expect(began).toMatchObject([
      {
        status: { state: 'unpaid', message: 'Bought: cr-1.', reservation: ownedOf(), quote: JUDGED },
        held: { state: 'scheduled', upfrontMicroUsd: 960_000_000 },
      },
    ])
  })

  it('costs nothing if it was owned before', async () => {
    verdicts = [{ kind: 'adopt', reservation: ownedOf({ upfrontMicroUsd: 700 }), message: 'It is owned.' }]
    await lives()
    expect(began).toMatchObject([
      {
        status: { state: 'scheduled', message: 'It is owned.', reservation: ownedOf(), isAdopted: true },
        held: { upfrontMicroUsd: 0 },
      },
    ])
    expect(world.names()).not.toContain('settleBudget')
  })

  it('costs its fee if an earlier history has bought it', async () => {
    const reservation = ownedOf({ upfrontMicroUsd: 700 })
    verdicts = [{ kind: 'adopt', reservation, send: 1, month: '2026-10', message: 'It was bought.' }]
    await lives()
    expect(began).toMatchObject([
      { status: { state: 'unpaid', reservation }, held: { upfrontMicroUsd: 700 } },
    ])
    expect(began[0]!.status).not.toHaveProperty('isAdopted')
    expect(world.inputsOf('settleBudget')).toMatchObject([{ month: '2026-10', spentMicroUsd: 700 }])
  })

  it.each<[string, number | undefined, number]>([
    ['its share of the price', undefined, 3],
    ['what the provider says', 5, 5],
  ])('by the hour costs for each unused machine %s', async (_, idleMicroUsdPerHour, expected) => {
    const known = idleMicroUsdPerHour === undefined ? {} : { idleMicroUsdPerHour }
    const reservation = { ...without(ownedOf({ kind: 'hourly' }), 'idleMicroUsdPerHour'), ...known }
    world.answers['buyCapacity'] = () => ({ kind: 'reserved', reservation })
    // Four machines for 10 an hour: 2.5 each.
    verdicts = [{ ...buy, judged: { ...JUDGED, quote: hourlyOf({ perHourMicro: 10 }) } }]
    await lives(HOURLY)
    expect(began).toMatchObject([{ held: { reservation: { idleMicroUsdPerHour: expected } } }])
  })
})

describe('a search', () => {
  it('shows what else was found', async () => {
    verdicts = [{ ...wait, alternatives: [OTHER] }]
    const running = reserveCapacity(INPUT)
    await turns()
    expect(status()).toMatchObject({ state: 'searching', message: 'Sold out.', alternatives: [OTHER] })
    expect(await endPauses()).toEqual([9 * MINUTE_MS])
    await over(running)
  })

  it.each([
    ['unavailable', {}],
    ['failed', { isInvalid: true as const }],
  ])('that gives up is %s: %j', async (state, more) => {
    verdicts = [{ kind: 'give-up', message: 'None.', ...more }]
    expect(await lives()).toMatchObject({ id: INTENT, state, message: 'None.', spentMicroUsd: 0 })
  })

  it('continues after a purchase that was refused', async () => {
    const answers = [refused, { kind: 'reserved', reservation: ownedOf() }]
    world.answers['buyCapacity'] = () => answers.shift()
    verdicts = [{ kind: 'resume', order: ORDER, message: 'It was sent.' }, buy]
    expect(await lives()).toMatchObject({ state: 'ended' })
    expect(world.inputsOf('settleBudget')).toMatchObject([
      { jobId: `reservation/${INTENT}/1`, spentMicroUsd: 0 },
      { jobId: `reservation/${INTENT}/2`, spentMicroUsd: 960_000_000 },
    ])
  })

  it('waits until a budget allows what it has found', async () => {
    world.answers['promiseBudget'] = () => {
      delete world.answers['promiseBudget']
      throw ApplicationFailure.create(carrying({ class: 'quota', message: 'The month is full.' }))
    }
    verdicts = [buy, buy]
    const running = reserveCapacity(INPUT)
    await turns()
    expect(status()).toMatchObject({
      state: 'searching',
      message: 'An offer was found, and no budget allows it.',
      trouble: 'The month is full.',
    })
    expect(await endPauses()).toEqual([HOUR_MS])
    await over(running)
    expect(began[0]!.status).not.toHaveProperty('trouble')
    // The refused one has no number.
    expect(world.inputsOf('promiseBudget')).toMatchObject([
      { jobId: `reservation/${INTENT}/1` },
      { jobId: `reservation/${INTENT}/1` },
    ])
  })
})

describe('a person', () => {
  it.each([
    ['too dear', 'Rejected by ada: too dear. Nothing was bought.'],
    [undefined, 'Rejected by ada. Nothing was bought.'],
  ])('rejects an offer: %s', async (reason, message) => {
    verdicts = [ask]
    const running = reserveCapacity(INPUT)
    await turns()
    const why = reason === undefined ? {} : { reason }
    await world.tell('reject', why)
    expect(await over(running)).toMatchObject({ state: 'rejected', message })
    expect(status().decision).toEqual({ kind: 'rejected', by: 'ada', atMs: NOW_MS, ...why })
    expect(world.names()).not.toContain('buyCapacity')
  })

  it('rejects an offer while its money is reserved, and nothing is sent', async () => {
    world.answers['promiseBudget'] = () => void world.tell('reject')
    verdicts = [buy, buy]
    expect(await lives()).toMatchObject({ state: 'rejected' })
    expect(world.names()).toEqual(['lookForCapacity', 'promiseBudget', 'settleBudget', 'endReservation'])
    expect(world.inputsOf('settleBudget')).toMatchObject([{ spentMicroUsd: 0 }])
    expect(world.inputsOf('endReservation')).toMatchObject([{ sends: 0 }])
  })

  it('approves an offer while it is looked at: that counts for the next look', async () => {
    const approving = (): Partial<CapacityVerdict> => {
      void world.tell('approve', { quote: quoteKey(JUDGED.quote) })
      return ask
    }
    verdicts = [ask, approving, buy]
    const running = reserveCapacity(INPUT)
    expect(await endPauses()).toEqual([HOUR_MS])
    await over(running)
    expect(world.inputsOf('lookForCapacity').map(({ approved }) => approved)).toEqual([
      undefined,
      undefined,
      JUDGED.quote,
    ])
    expect(began[0]!.status.decision).toEqual({ kind: 'approved', by: 'ada', atMs: NOW_MS })
  })
})

describe('a search whose history is long', () => {
  it('starts a fresh one once all that was asked is answered', async () => {
    verdicts = [wait, wait]
    ;[world.isLong, world.handling] = [true, 1]
    const running = reserveCapacity(INPUT)
    running.catch(() => undefined)
    await endPauses()
    expect(world.continued).toEqual([])
    world.handling = 0
    await expect(over(running)).rejects.toBeInstanceOf(Continued)
    expect(world.continued).toMatchObject([{ ...INPUT, carry: { sends: 0, recordSeq: 2 } }])
  })
})
