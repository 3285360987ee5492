/** The main line of a reservation, with what its activities answer: what it does with requests that come at a bad moment. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { CapacityVerdict, HoldState, HoldInput, HoldOutcome } from '../../core/reservation/activities'
import type { ReservationInput, ReservationStatus } from '../../core/reservation/reserving'
import { quoteKey } from '../../core/reservation/reserving'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { hourlyOf, INTENT, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'
import type * as World from './reserving'
import { begin, Continued, endPauses, HOURLY, INPUT, over, turns, world } from './reserving'
import type * as Reserving from '../../workflows/reservation/reserve-capacity'

jest.mock('@temporalio/workflow', () => jest.requireActual<typeof World>('./reserving').temporal)
jest.mock('../../workflows/reservation/activities', () => {
  return jest.requireActual<typeof World>('./reserving').activities
})
const { reserveCapacity } = jest.requireActual<typeof Reserving>(
  '../../workflows/reservation/reserve-capacity',
)

/** Steps of the world, each used once. Without any left, a search gives up and a hold is over. */
let looks: (() => Partial<CapacityVerdict>)[]
let holds: ((input: HoldInput) => Partial<HoldOutcome>)[]
let purchases: (() => object)[]
let findings: (() => object)[]
/** News that the webhook has not taken yet. */
let told: (() => void)[]

beforeEach(() => {
  begin()
  ;[looks, holds, purchases, findings, told] = [[], [], [], [], []]
  const finding = (): unknown => findings.shift()!()
  world.answers = {
    lookForCapacity: ({ sends }: { sends: number }) => ({
      account: 'account',
      alternatives: [],
      unseen: [],
      sends,
      kind: 'give-up',
      message: 'Over.',
      ...looks.shift()?.(),
    }),
    holdReservation: (input: HoldInput) => ({
      held: input.held,
      message: 'Held.',
      next: 'over',
      lookInMs: HOUR_MS,
      ...holds.shift()?.(input),
    }),
    findPurchase: finding,
    decidePurchase: finding,
    buyCapacity: () => purchases.shift()!(),
    tellReservation: () => new Promise<void>((done) => told.push(done)),
  }
})

const tell = (name: string, argument: object): Promise<string> => world.tell(name, argument)
const status = (): ReservationStatus => world.status()
const settledBy = (): unknown[] => world.inputsOf('settleBudget').map(({ spentMicroUsd }) => spentMicroUsd)
const lives = (input: ReservationInput = INPUT): ReturnType<typeof reserveCapacity> =>
  over(reserveCapacity(input))

const JUDGED = { quote: quoteOf(), machineHourMicro: 1 }
const buy = (): Partial<CapacityVerdict> => ({ kind: 'buy', judged: JUDGED, lookInMs: HOUR_MS })
const ask = (): Partial<CapacityVerdict> => ({ kind: 'ask', judged: JUDGED, lookInMs: HOUR_MS })
const wait = (): Partial<CapacityVerdict> => ({ kind: 'wait', lookInMs: HOUR_MS, message: 'Sold out.' })
const bought =
  (reservation = ownedOf()) =>
  (): object => ({ kind: 'reserved', reservation })
const in_ =
  (state: HoldState['state'], more: Partial<HoldOutcome> = {}) =>
  ({ held }: HoldInput): Partial<HoldOutcome> => ({ held: { ...held, state }, next: 'hold', ...more })
/** The provider takes it back before its start. */
const lost = ({ held }: HoldInput): Partial<HoldOutcome> => ({
  held: { ...held, state: 'failed', reservation: { ...held.reservation!, phase: 'failed' } },
  message: 'r-1 failed.',
})

describe('a request to a reservation whose history is long', () => {
  it('that comes while its news are posted is done before a fresh history begins', async () => {
    looks = [ask, wait]
    const running = reserveCapacity({ ...INPUT, webhookOf: INTENT })
    await turns()
    world.isLong = true
    expect(status().state).toBe('awaiting-approval')
    expect(await endPauses()).toEqual([HOUR_MS])
    expect(await tell('reject', { reason: 'too dear' })).toMatch(/^Rejected: nothing is bought/)
    for (const done of told) done()
    expect(await over(running)).toMatchObject({ state: 'rejected' })
    expect(world.continued).toEqual([])
  })

  it('that the main line must answer is answered before a fresh history begins', async () => {
    ;[looks, purchases] = [[buy, wait], [bought()]]
    holds = [in_('scheduled', { news: [{ event: 'begins', text: 'Soon.' }] }), in_('scheduled')]
    holds.push(...Array.from({ length: 9 }, () => in_('scheduled')))
    const running = reserveCapacity({ ...INPUT, webhookOf: INTENT })
    await turns()
    world.isLong = true
    expect(await endPauses()).toEqual([HOUR_MS])
    const answer = tell('extendReservation', { durationMs: DAY_MS, upfrontMaxMicroUsd: 1 })
    const end = expect(over(running)).rejects.toBeInstanceOf(Continued)
    await turns()
    while (told.length > 0) told.shift()!()
    await end
    expect(await over(answer)).toBe('refused: cr-1 was not extended: none is for sale.')
  })
})

describe('a decision about a purchase', () => {
  it('that comes during the look that finds the purchase is answered, and the hold pauses', async () => {
    ;[looks, holds] = [[buy], [in_('scheduled'), in_('scheduled')]]
    purchases = [() => ({ kind: 'undecided', sentAtMs: 0, account: [], candidates: [] })]
    let answer: Promise<string> | undefined
    findings = [
      () => {
        answer = tell('decidePurchase', { kind: 'not-bought' })
        return { kind: 'found', reservation: ownedOf() }
      },
    ]
    await lives()
    expect(await answer).toBe('refused: The outcome is already known. It is cr-1.')
    expect(world.pauses.filter((one) => one === 'until the next check of the reservation')).toHaveLength(2)
  })

  describe('about an extension', () => {
    const EXTENSION = quoteOf({ extends: 'cr-1', endsAtMs: NOW_MS + 4 * DAY_MS, upfrontMicro: 500 })
    const unknown = (): object => ({ kind: 'undecided', sentAtMs: 0, account: [], candidates: [] })
    const absent = (): object => ({ kind: 'absent', sentAtMs: 0, saw: 'Nothing.', candidates: [] })
    const paid = quoteOf().upfrontMicro
    let answers: Promise<string>[]
    const asks = (name: string, update: object) => (input: HoldInput) => {
      answers.push(tell(name, update))
      return in_('scheduled')(input)
    }
    const extend = asks('extendReservation', { durationMs: DAY_MS, upfrontMaxMicroUsd: 1e12 })
    beforeEach(() => {
      answers = []
      looks = [buy, () => ({ ...buy(), judged: { quote: EXTENSION, machineHourMicro: 1 } })]
      purchases = [bought(), unknown]
    })

    it('leaves the hold at its looks, in its state, until a person has decided', async () => {
      const seen: [string, boolean][] = []
      const look = (input: HoldInput): Partial<HoldOutcome> => {
        seen.push([status().state, status().undecided !== undefined])
        return in_('scheduled')(input)
      }
      findings = [() => ({ kind: 'no-effect', failure: { class: 'transient', message: 'No.' } })]
      holds = [in_('scheduled'), extend, look, look]
      holds.push(asks('decidePurchase', { kind: 'not-bought' }), look)
      await lives()
      expect(seen).toEqual([
        ['scheduled', true],
        ['scheduled', true],
        ['scheduled', false],
      ])
      expect(await Promise.all(answers)).toEqual([
        expect.stringMatching(/^refused: An extension of cr-1 for .* unknown whether it was bought/),
        'Nothing was bought. Its end does not change.',
      ])
      expect(settledBy()).toEqual([paid, 0])
      expect(status().spentMicroUsd).toBe(paid)
    })

    it('refuses another one, and counts it once it was bought', async () => {
      findings = [() => ({ kind: 'found', reservation: ownedOf() })]
      holds = [
        in_('scheduled'),
        extend,
        extend,
        asks('decidePurchase', { kind: 'bought', reservationId: 'cr-1' }),
      ]
      await lives()
      const [, second, decided] = await Promise.all(answers)
      expect(second).toMatch(/^refused: An extension of cr-1/)
      expect(decided).toBe('It is cr-1.')
      expect(settledBy()).toEqual([paid, 500])
      expect(status().spentMicroUsd).toBe(paid + 500)
    })

    it('counts it as spent in the month if that is unknown to the end', async () => {
      ;[findings, holds] = [[absent], [in_('scheduled'), extend]]
      await lives()
      expect(settledBy()).toEqual([paid, 500])
      expect(status()).toMatchObject({
        spentMicroUsd: paid,
        message: expect.stringMatching(/check the bill\.$/),
      })
      expect(status()).not.toHaveProperty('undecided')
    })
  })
})

describe('an extension', () => {
  const EXTENSION = quoteOf({ extends: 'cr-1', endsAtMs: NOW_MS + 4 * DAY_MS, upfrontMicro: 500 })
  const upfrontMaxMicroUsd = 1e12

  it.each([
    ['by two that saw the same end', { durationMs: DAY_MS, seenEndsAtMs: ownedOf().endsAtMs! }],
    ['with the same new end', { endsAtMs: EXTENSION.endsAtMs! }],
  ])('that is asked for %s is bought once, although lists are late', async (_, update) => {
    looks = [buy, () => ({ ...buy(), judged: { quote: EXTENSION, machineHourMicro: 1 } }), buy]
    purchases = [bought(), bought(), bought()]
    const answers: Promise<string>[] = []
    const asked = (input: HoldInput): Partial<HoldOutcome> => {
      answers.push(tell('extendReservation', { ...update, upfrontMaxMicroUsd }))
      return in_('scheduled')(input)
    }
    holds = [in_('scheduled'), asked, asked]
    await lives()
    const [first, second] = await Promise.all(answers)
    expect(first).toMatch(/^cr-1 is extended to 2026-11-06/)
    expect(second).toMatch(/^It is already extended: cr-1 ends 2026-11-06.* Nothing more was bought\.$/)
    expect(purchases).toHaveLength(1)
  })
})

describe('a reservation that is lost before its start', () => {
  it('answers what was asked of it, and pauses in its new search', async () => {
    ;[looks, purchases] = [[buy, wait, wait], [bought()]]
    let answer: Promise<string> | undefined
    holds = [
      in_('scheduled'),
      (input) => {
        answer = tell('extendReservation', { durationMs: DAY_MS, upfrontMaxMicroUsd: 1 })
        return lost(input)
      },
    ]
    await lives()
    expect(await answer).toBe('refused: r-1 failed.')
    expect(world.pauses.filter((one) => one === 'until the next search for capacity')).toHaveLength(2)
  })

  it('shows nothing of it in the new search', async () => {
    ;[looks, purchases, holds] = [[ask, buy, wait], [bought()], [in_('scheduled'), lost]]
    const running = reserveCapacity(INPUT)
    await turns()
    expect(await tell('approve', { quote: quoteKey(JUDGED.quote) })).toMatch(/^Approved/)
    await over(running)
    const { reservation, quote, decision } = status()
    expect({ reservation, quote, decision }).toEqual({})
  })

  it('and was owned already counts what is bought in its place', async () => {
    looks = [() => ({ kind: 'adopt', reservation: ownedOf(), message: 'Owned.' }), buy]
    ;[purchases, holds] = [[bought(ownedOf({ id: 'r-2' }))], [in_('scheduled'), lost, in_('scheduled')]]
    await lives()
    expect(status()).toMatchObject({ spentMicroUsd: quoteOf().upfrontMicro })
    expect(status()).not.toHaveProperty('isAdopted')
    expect(world.inputsOf('settleBudget')).toMatchObject([{ spentMicroUsd: quoteOf().upfrontMicro }])
  })
})

describe('an approval', () => {
  it('of what is no longer for sale is not shown with another offer', async () => {
    const other = { ...JUDGED, quote: quoteOf({ zone: 'east-b' }) }
    looks = [ask, () => ({ ...ask(), judged: other })]
    const running = reserveCapacity(INPUT)
    await turns()
    expect(await tell('approve', { quote: quoteKey(JUDGED.quote) })).toMatch(/^Approved/)
    await turns()
    expect(status().quote?.quote.zone).toBe('east-b')
    expect(status()).not.toHaveProperty('decision')
    await over(running)
  })
})

describe('a resize', () => {
  it('that is refused gives back the money that its higher limit had reserved', async () => {
    looks = [() => ({ ...buy(), judged: { quote: hourlyOf(), machineHourMicro: 1 } })]
    purchases = [bought(ownedOf({ kind: 'hourly', phase: 'active', free: 4 }))]
    let answer: Promise<string> | undefined
    holds = [
      in_('active'),
      (input) => {
        answer = tell('resizeReservation', { count: 9, spendMaxMicroUsd: 200 })
        return in_('active')(input)
      },
    ]
    world.answers['changeReservation'] = () => {
      throw new Error('there are no more machines')
    }
    await lives(HOURLY)
    expect(await answer).toBe('refused: there are no more machines')
    expect(world.inputsOf('promiseBudget').map(({ microUsd, isLowered }) => [microUsd, isLowered])).toEqual([
      [60, undefined],
      [200, undefined],
      [60, true],
    ])
    expect(status().rule).toEqual({ spendMaxMicroUsd: 60 })
  })
})

describe('a history that is set back into a later month', () => {
  const month = '2026-01'
  const ORDER = { intent: INTENT, send: 1, deployment: 'dep', owner: 'ada', backend: 'ec2', month } as const
  it.each<[string, Partial<CapacityVerdict>]>([
    ['a purchase under way', { kind: 'resume', order: { ...ORDER, quote: quoteOf() } }],
    ['what it has bought', { kind: 'adopt', send: 1, month, reservation: ownedOf() }],
  ])('counts %s in the month that has reserved its money', async (_, verdict) => {
    ;[looks, purchases, holds] = [[() => verdict], [bought()], [in_('scheduled')]]
    await lives()
    expect(world.inputsOf('settleBudget')).toMatchObject([{ month, jobId: `reservation/${INTENT}/1` }])
  })
})

describe('a split', () => {
  it('moves its money, and is made once for each id', async () => {
    looks = [() => ({ ...buy(), judged: { quote: hourlyOf(), machineHourMicro: 1 } })]
    purchases = [bought(ownedOf({ kind: 'hourly', phase: 'active', free: 4 }))]
    const answers: Promise<string>[] = []
    const asked = (input: HoldInput): Partial<HoldOutcome> => {
      answers.push(tell('splitReservation', { count: 1, newId: 'res-part' }))
      return in_('active')(input)
    }
    holds = [in_('active'), asked, asked]
    world.answers['splitReservation'] = () => ownedOf({ id: 'r-2', kind: 'hourly', total: 1 })
    await lives(HOURLY)
    expect(await Promise.all(answers)).toEqual([
      '1 machine of cr-1 is r-2 now, held by res-part.',
      'res-part already exists; nothing more was split.',
    ])
    expect(
      world.inputsOf('promiseBudget').map(({ jobId, microUsd, from }) => [jobId, microUsd, from]),
    ).toEqual([
      [`reservation/${INTENT}/1`, 60, undefined],
      ['reservation/res-part/1', 15, `reservation/${INTENT}/1`],
    ])
    expect(status()).toMatchObject({ rule: { spendMaxMicroUsd: 45 }, wish: { count: 3 } })
    expect(world.inputsOf('reserveCapacity')).toHaveLength(1)
  })
})
