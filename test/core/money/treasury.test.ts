import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import {
  emptyTreasury,
  limitsAnybody,
  lower,
  monthOf,
  move,
  parseReservationBudgetId,
  reservationBudgetId,
  settle,
  viewOf,
  type MonthlyLimits,
  type BudgetAnswer,
  type TreasuryState,
} from '../../../core/money/treasury'
import { promise } from '../../support/treasury'

const LIMITS: MonthlyLimits = {
  monthMicroUsd: microUsd(100),
  ownerMicroUsd: microUsd(60),
  owners: { bob: microUsd(10) },
}

/** A treasury that answers one after another. */
class Till {
  state: TreasuryState = emptyTreasury('2026-11')
  promise(jobId: string, owner: string, usd: number, limits = LIMITS): BudgetAnswer {
    const { state, answer } = promise(this.state, { jobId, owner, microUsd: microUsd(usd), limits })
    this.state = state
    return answer
  }
  settle(jobId: string, owner: string, usd: number): void {
    this.state = settle(this.state, { jobId, owner, spentMicroUsd: microUsd(usd) })
  }
}

describe('the money of a month', () => {
  it('is promised until an owner or the month has none, with the arithmetic', () => {
    const till = new Till()
    expect(till.promise('job-1', 'ada', 40)).toEqual({ kind: 'promised' })
    expect(till.promise('job-2', 'ada', 20.01)).toMatchObject({
      kind: 'refused',
      message:
        'The job may cost $20.01, and the budget of ada for 2026-11 has $20.00 left: of $60.00, $0.00 are spent and $40.00 are reserved for jobs and reservations.',
    })
    expect(till.promise('job-2', 'ada', 20)).toEqual({ kind: 'promised' })
    expect(till.promise('job-3', 'bob', 11)).toMatchObject({ kind: 'refused' })
    expect(till.promise('job-3', 'eve', 41)).toMatchObject({
      message: expect.stringContaining('the budget for 2026-11 has $40.00 left') as unknown,
    })
  })

  it('comes back as far as it was not spent, once', () => {
    const till = new Till()
    till.promise('job-1', 'ada', 60)
    till.settle('job-1', 'ada', 25)
    till.settle('job-1', 'ada', 25)
    expect(till.promise('job-2', 'ada', 36)).toMatchObject({ kind: 'refused' })
    expect(till.promise('job-2', 'ada', 35)).toEqual({ kind: 'promised' })
    // An earlier message, that comes late.
    expect(till.promise('job-1', 'ada', 60)).toEqual({ kind: 'promised' })
    expect(viewOf(till.state)).toMatchObject({
      total: { spentMicroUsd: microUsd(25), promisedMicroUsd: microUsd(35), leftMicroUsd: microUsd(40) },
      jobs: [{ jobId: 'job-2' }],
    })
  })

  it('holds no more after ten thousand jobs than after one thousand, and counts each once', () => {
    const till = new Till()
    const sizes: number[] = []
    for (let number = 1; number <= 10_000; number++) {
      till.promise(`job-${number}`, 'ada', 1)
      for (const id of [number, number, 1]) till.settle(`job-${id}`, 'ada', 0.001)
      if ([1_000, 10_000].includes(number)) sizes.push(till.state.over.length)
    }
    expect(sizes).toEqual([1_000, 1_000])
    expect(viewOf(till.state).total).toMatchObject({ spentMicroUsd: microUsd(10), promisedMicroUsd: 0 })
  })

  it('counts a job once, whose budget is extended, and keeps what may be on its way out', () => {
    const till = new Till()
    till.promise('job-1', 'ada', 40)
    expect(till.promise('job-1', 'ada', 60)).toEqual({ kind: 'promised' })
    expect(till.promise('job-1', 'ada', 61)).toMatchObject({ kind: 'refused' })
    till.promise('job-1', 'ada', 5)
    expect(viewOf(till.state).total.promisedMicroUsd).toBe(microUsd(60))
  })

  it('says how each owner stands who has spent, may spend, or has a limit of his own', () => {
    const till = new Till()
    till.promise('job-1', 'ada', 5, { owners: { bob: microUsd(10) } })
    expect(viewOf(till.state).owners).toEqual([
      {
        owner: 'ada',
        limitMicroUsd: null,
        spentMicroUsd: 0,
        promisedMicroUsd: microUsd(5),
        leftMicroUsd: null,
      },
      {
        owner: 'bob',
        limitMicroUsd: microUsd(10),
        spentMicroUsd: 0,
        promisedMicroUsd: 0,
        leftMicroUsd: microUsd(10),
      },
    ])
  })

  it('is that of the calendar month in UTC', () => {
    expect(monthOf(Date.UTC(2026, 11, 1) - 1)).toBe('2026-11')
    expect(monthOf(Date.UTC(2026, 11, 1))).toBe('2026-12')
  })
})

it.each<[boolean, MonthlyLimits]>([
  [false, { owners: {} }],
  [true, { owners: {}, monthMicroUsd: 0 }],
  [true, { owners: {}, ownerMicroUsd: 0 }],
  [true, { owners: { bob: 0 } }],
])('whether anybody is limited: %s by %j', (isLimited, limits) => {
  expect(limitsAnybody(limits)).toBe(isLimited)
})

describe('money that is moved to a part', () => {
  const part = { jobId: 'part', owner: 'ada', microUsd: microUsd(15), from: 'whole' }
  const promisedIn = ({ promised }: TreasuryState): Record<string, number> =>
    Object.fromEntries(Object.entries(promised).map(([id, { microUsd: amount }]) => [id, amount / 1e6]))

  it('is reserved once in all, however often that is asked for', () => {
    const till = new Till()
    till.promise('whole', 'ada', 60)
    const moved = move(move(till.state, part), part)
    expect(promisedIn(moved)).toEqual({ whole: 45, part: 15 })
    till.state = moved
    till.settle('part', 'ada', 3)
    expect(promisedIn(move(till.state, part))).toEqual({ whole: 45 })
  })

  it('is reserved also where nothing is to be moved: the part exists', () => {
    expect(promisedIn(move(emptyTreasury('2026-11'), part))).toEqual({ part: 15 })
  })
})

describe('a raise that is given back', () => {
  it('frees its money, and never more than that', () => {
    const till = new Till()
    till.promise('reservation/res-a/1', 'ada', 50)
    const request = { jobId: 'reservation/res-a/1', microUsd: microUsd(20) }
    till.state = lower(lower(till.state, request), { ...request, microUsd: microUsd(30) })
    expect(till.promise('job-1', 'ada', 41)).toMatchObject({ kind: 'refused' })
    expect(till.promise('job-1', 'ada', 40)).toEqual({ kind: 'promised' })
    till.settle('reservation/res-a/1', 'ada', 20)
    expect(lower(till.state, request)).toBe(till.state)
  })

  it('changes nothing where the money is the same', () => {
    const till = new Till()
    till.promise('job-1', 'ada', 5)
    expect(lower(till.state, { jobId: 'job-1', microUsd: microUsd(5) })).toBe(till.state)
  })
})

describe('the view of a month', () => {
  it('tells jobs from purchases of reservations', () => {
    const till = new Till()
    till.promise('job-1', 'ada', 1)
    till.promise('reservation/res-a/2', 'ada', 2)
    expect(viewOf(till.state)).toMatchObject({
      jobs: [{ jobId: 'job-1', owner: 'ada', microUsd: microUsd(1) }],
      reservations: [{ reservationId: 'res-a', send: 2, owner: 'ada', microUsd: microUsd(2) }],
    })
    expect(till.promise('reservation/res-b/1', 'ada', 99)).toMatchObject({
      message: expect.stringMatching(/^The reservation res-b may cost \$99/) as unknown,
      hint: expect.stringMatching(/^Reserve for at most/) as unknown,
    })
  })
})

describe('money that is certainly spent', () => {
  const request = { jobId: 'job-1', owner: 'ada', spentMicroUsd: microUsd(3) }

  it('counts once, though a restored treasury does not know of its job', () => {
    const restored = emptyTreasury('2026-11')
    expect(settle(restored, request)).toBe(restored)
    const once = settle(restored, { ...request, isCertain: true })
    expect(once.spent).toEqual({ ada: microUsd(3) })
    expect(settle(once, { ...request, isCertain: true })).toBe(once)
  })

  it('is shown with the owners in the order of their names', () => {
    const state = { ...emptyTreasury('2026-11'), spent: { eve: 1, ada: 1, bob: 1 } }
    expect(viewOf(state).owners.map(({ owner }) => owner)).toEqual(['ada', 'bob', 'eve'])
  })
})

it('the name of a purchase has its reservation and its number', () => {
  expect(reservationBudgetId('res-a', 12)).toBe('reservation/res-a/12')
  expect(parseReservationBudgetId('reservation/res-a/12')).toEqual({ reservationId: 'res-a', send: 12 })
  for (const id of [
    'job-1',
    'x/reservation/res-a/1',
    'reservation/res-a/1/2',
    'reservation/res-a/1x',
    'reservation//1',
  ])
    expect([id, parseReservationBudgetId(id)]).toEqual([id, undefined])
})
