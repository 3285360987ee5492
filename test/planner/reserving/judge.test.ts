import { describe, expect, it } from '@jest/globals'
import type { CapacityQuote, OwnedReservation } from '../../../core/reservation/reservation'
import { isAsApproved, quoteKey } from '../../../core/reservation/reserving'
import type { CapacityVerdict } from '../../../core/reservation/activities'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { judgeCapacity } from '../../../planner/reserving/judge'
import { factsOf, hourlyOf, INTENT, NOW_MS, ownedOf, quoteOf, type Changes } from './facts'

const judge = (changes: Changes = {}): CapacityVerdict => judgeCapacity(factsOf(changes))
const chosen = (verdict: CapacityVerdict): string | undefined =>
  'judged' in verdict ? verdict.judged.quote.id : undefined
const UNASKED = { unaskedMaxMicroUsd: 960_000_000 }

describe('a quote that may be bought', () => {
  it.each<[string, Changes, 'buy' | 'ask']>([
    ['is bought up to the limit for purchases without approval', { rule: UNASKED }, 'buy'],
    ['waits for approval above it', { rule: { unaskedMaxMicroUsd: 959_999_999 } }, 'ask'],
    ['waits for approval without such a limit', {}, 'ask'],
    ['is bought once it is approved', { approved: quoteOf() }, 'buy'],
    ['waits for approval if another one is approved', { approved: quoteOf({ zone: 'east-b' }) }, 'ask'],
    [
      'by the hour counts with all that it may cost until it is released',
      hourlyFacts({ unaskedMaxMicroUsd: 100_000_000, spendMaxMicroUsd: 100_000_000 }),
      'buy',
    ],
    [
      'by the hour waits if it may cost more until it is released',
      hourlyFacts({ unaskedMaxMicroUsd: 100_000_000, spendMaxMicroUsd: 100_000_001 }),
      'ask',
    ],
    [
      'by the hour waits if nothing limits what it may cost',
      hourlyFacts({ unaskedMaxMicroUsd: 100_000_000 }),
      'ask',
    ],
    [
      'by the hour counts with its hours if it has an end',
      {
        ...hourlyFacts({ unaskedMaxMicroUsd: 16_000_000, spendMaxMicroUsd: 100_000_000 }),
        quotes: [hourlyOf({ endsAtMs: NOW_MS + 2 * HOUR_MS })],
      },
      'buy',
    ],
  ])('%s', (_, changes, kind) => {
    expect(judge({ quotes: [quoteOf()], ...changes }).kind).toBe(kind)
  })

  function hourlyFacts(rule: Changes['rule'] & object): Changes {
    return { wish: { kind: 'hourly', durationMs: 0 }, rule, quotes: [hourlyOf()] }
  }

  it('is shown with its price', () => {
    expect(judge({ quotes: [quoteOf()], rule: UNASKED })).toEqual({
      kind: 'buy',
      account: '1234',
      unseen: [],
      sends: 0,
      alternatives: [],
      lookInMs: DAY_MS,
      judged: { quote: quoteOf(), machineHourMicro: 5_000_000 },
      message:
        'Buying 4 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z: $960.00 upfront, $5.00 per machine and hour.',
    })
    expect(judge({ quotes: [quoteOf()] }).message).toBe(
      '4 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z is for sale: $960.00 upfront, $5.00 per machine and hour. It waits for approval.',
    )
  })
})

describe('of several quotes', () => {
  const dear = quoteOf({ id: 'dear', upfrontMicro: 970_000_000 })
  const late = quoteOf({ id: 'late', startsAtMs: NOW_MS + DAY_MS + 1, usableUntilMs: NOW_MS + 4 * DAY_MS })
  const second = quoteOf({ id: 'second', type: 'p4', upfrontMicro: 1 })

  it.each<[string, CapacityQuote[], string]>([
    ['the preferred type comes first', [second, dear], 'dear'],
    ['the lower price comes next', [dear, late], 'late'],
    ['the earlier start comes next', [late, quoteOf()], 'cb-1'],
    [
      'the order of their names comes last',
      [quoteOf({ id: 'b', zone: 'east-b' }), quoteOf({ id: 'a', zone: 'east-a' })],
      'a',
    ],
  ])('%s', (_, quotes, id) => {
    expect(chosen(judge({ quotes }))).toBe(id)
    expect(chosen(judge({ quotes: [...quotes].reverse() }))).toBe(id)
  })

  it('the approved one comes before all others', () => {
    expect(chosen(judge({ quotes: [quoteOf(), second], approved: second }))).toBe('second')
  })

  it('a refused one never comes first, even if it is approved', () => {
    const refused = quoteOf({ id: 'refused', count: 5 })
    const verdict = judge({ quotes: [refused, dear], approved: refused })
    expect(chosen(verdict)).toBe('dear')
  })

  it('five others are kept, those that may be bought before those that may not', () => {
    const prices = [6, 5, 4, 3, 2, 1]
    const quotes = prices.map((price) => quoteOf({ id: `${price}`, upfrontMicro: price }))
    const small = quoteOf({ id: 'small', count: 1, upfrontMicro: 0 })
    const ids = (verdict: CapacityVerdict): string[] => verdict.alternatives.map(({ quote }) => quote.id)
    expect(ids(judge({ quotes: [small, ...quotes] }))).toEqual(['2', '3', '4', '5', '6'])
    const few = judge({ quotes: [small, ...quotes.slice(4)] })
    expect(ids(few)).toEqual(['2', 'small'])
    expect(few.alternatives[1]!.refusal).toBe('it has 1 machine, not 4')
  })
})

describe('what is owned already', () => {
  const adopted = (changes: Changes): string | undefined => {
    const verdict = judge({ quotes: [quoteOf()], rule: UNASKED, ...changes })
    return verdict.kind === 'adopt' ? verdict.reservation.id : undefined
  }
  const mine: Partial<OwnedReservation> = { id: 'cr-mine', intent: INTENT, deployment: 'dep' }

  it.each(['unpaid', 'assessing', 'scheduled', 'delayed', 'active'] as const)(
    'for this very wish is used, whatever else is true: %s',
    (phase) => {
      const odd = ownedOf({ ...mine, phase, zone: 'east-z', total: 1, unfit: 'no subnet' })
      expect(adopted({ owned: [ownedOf(), odd] })).toBe('cr-mine')
    },
  )

  it.each(['ending', 'ended', 'failed'] as const)('for this wish is not used if it is over: %s', (phase) => {
    expect(adopted({ owned: [ownedOf({ ...mine, phase })] })).toBeUndefined()
  })

  it.each<[string, Partial<OwnedReservation>]>([
    ['another account shares it', { isShared: true }],
    ['it is of another kind', { kind: 'hourly' }],
    ['it is of a type that was never wanted', { type: 'p3' }],
  ])('for this wish by its tags alone is not used: %s', (_, odd) => {
    expect(adopted({ owned: [ownedOf({ ...mine, ...odd })] })).toBeUndefined()
  })

  it.each<[string, Partial<OwnedReservation>, Changes?]>([
    ['scheduled', {}],
    [
      'active and unused',
      { phase: 'active', free: 4, startsAtMs: NOW_MS - HOUR_MS, endsAtMs: NOW_MS + 2 * DAY_MS },
    ],
    ['larger', { total: 5 }],
    ['tagged by this deployment without a wish', { deployment: 'dep' }],
    ['claimed by this wish', {}, { claims: new Map([['cr-1', INTENT]]) }],
    ['of the second type', { type: 'p4' }],
  ])('and fits is used instead of a purchase: %s', (_, owned, changes = {}) => {
    expect(adopted({ owned: [ownedOf(owned)], ...changes })).toBe('cr-1')
  })

  it.each<[string, Partial<OwnedReservation>, Changes?]>([
    ['by the hour', { kind: 'hourly' }],
    ['unpaid', { phase: 'unpaid' }],
    ['assessing', { phase: 'assessing' }],
    ['delayed', { phase: 'delayed' }],
    ['shared by another account', { isShared: true }],
    ['unfit', { unfit: 'no subnet' }],
    ['bought for another wish', { intent: 'res-b', deployment: 'dep' }],
    ['of another deployment', { deployment: 'other' }],
    ['for this wish in another deployment', { intent: INTENT, deployment: 'other' }],
    ['claimed by another wish', {}, { claims: new Map([['cr-1', 'res-b']]) }],
    ['perhaps bought by another wish', {}, { undecided: new Map([['cr-1', 'res-b']]) }],
    ['in use', { phase: 'active', free: 3, startsAtMs: NOW_MS, endsAtMs: NOW_MS + 3 * DAY_MS }],
    ['smaller', { total: 3 }],
    ['of another type', { type: 'p3' }],
    ['too short', { usableUntilMs: NOW_MS + 3 * DAY_MS - 1 }],
    [
      'too short from now on',
      { phase: 'active', free: 4, startsAtMs: NOW_MS - 1, endsAtMs: NOW_MS + 2 * DAY_MS - 1 },
    ],
    ['in another zone', {}, { wish: { zones: ['east-b'] } }],
    ['that begins too late', {}, { wish: { latestStartAtMs: NOW_MS + DAY_MS - 1 } }],
  ])('is left alone if it is %s', (_, owned, changes = {}) => {
    expect(adopted({ owned: [ownedOf(owned)], ...changes })).toBeUndefined()
  })

  it('is used once its tags must show, unless it has some or another one fits', () => {
    const young = ownedOf({ id: 'young', createdAtMs: NOW_MS - MINUTE_MS })
    const rule = { ...UNASKED, searchUntilAtMs: NOW_MS }
    for (const changes of [{}, { rule }, { quotes: [] }])
      expect(judge({ quotes: [quoteOf()], rule: UNASKED, owned: [young], ...changes })).toMatchObject({
        kind: 'wait',
        lookInMs: 14.5 * MINUTE_MS,
        message:
          'young fits and has just been bought: its tags may not show yet. The next check is in 14m 30s.',
      })
    expect(adopted({ owned: [{ ...young, createdAtMs: NOW_MS - 15.5 * MINUTE_MS }] })).toBe('young')
    expect(adopted({ owned: [young, ownedOf()] })).toBe('cr-1')
    expect(adopted({ owned: [{ ...young, deployment: 'dep' }] })).toBe('young')
  })

  it('is never used for hourly capacity, nor instead of an extension', () => {
    const hourly: Changes = { wish: { kind: 'hourly' }, owned: [ownedOf({ kind: 'hourly' })] }
    expect(adopted(hourly)).toBeUndefined()
    expect(adopted({ wish: { kind: 'hourly' }, owned: [ownedOf()] })).toBeUndefined()
    const extended = { extends: { id: 'cr-mine', region: 'east' } }
    expect(adopted({ wish: extended, owned: [ownedOf(mine), ownedOf()] })).toBeUndefined()
  })

  it('is used from the earliest start on', () => {
    const early = ownedOf({ id: 'early', startsAtMs: NOW_MS + HOUR_MS })
    expect(adopted({ owned: [ownedOf(), early] })).toBe('early')
    expect(adopted({ owned: [early, ownedOf()] })).toBe('early')
  })

  it('is named', () => {
    expect(judge({ owned: [ownedOf({ total: 5 })] }).message).toBe(
      'cr-1 (5 × p5) is already owned and fits: nothing is bought.',
    )
  })

  it('is used even when nothing of the kind is sold, and when the search is over', () => {
    expect(adopted({ owned: [ownedOf()], unsold: 'no blocks here', isFirst: true })).toBe('cr-1')
    expect(adopted({ owned: [ownedOf()], rule: { searchUntilAtMs: NOW_MS } })).toBe('cr-1')
  })
})

describe('a search', () => {
  it.each<[string, number, number]>([
    ['continues daily', 7 * DAY_MS + 1, DAY_MS],
    ['continues hourly in its last week', 7 * DAY_MS, HOUR_MS],
    ['continues hourly until its last day', DAY_MS + 1, HOUR_MS],
    ['continues every ten minutes in its last day', DAY_MS, 10 * MINUTE_MS],
    ['looks exactly at its end', 5 * MINUTE_MS, 5 * MINUTE_MS],
    ['never looks twice in a minute', 1, MINUTE_MS],
  ])('%s', (_, leftMs, lookInMs) => {
    expect(judge({ rule: { searchUntilAtMs: NOW_MS + leftMs } })).toMatchObject({ kind: 'wait', lookInMs })
    expect(judge({ wish: { latestStartAtMs: NOW_MS + leftMs } })).toMatchObject({ kind: 'wait', lookInMs })
    expect(judge({ quotes: [quoteOf()], rule: { searchUntilAtMs: NOW_MS + leftMs } })).toMatchObject({
      kind: 'ask',
      lookInMs,
    })
  })

  it('without an end continues daily', () => {
    expect(judge()).toMatchObject({
      kind: 'wait',
      lookInMs: DAY_MS,
      message: 'Nothing is for sale for 4 × p5 or p4. The next check is in 1d.',
    })
  })

  it('says what is nearest, and why it is not bought', () => {
    const quotes = [quoteOf({ count: 2 }), quoteOf({ count: 3, upfrontMicro: 1 })]
    expect(judge({ quotes }).message).toBe(
      '2 found for 4 × p5 or p4, and none may be bought; the nearest is 3 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z: it has 3 machines, not 4. The next check is in 1d.',
    )
  })

  it.each<[string, Changes]>([
    ['by the rule', { rule: { searchUntilAtMs: NOW_MS } }],
    ['by the latest start', { wish: { latestStartAtMs: NOW_MS } }],
  ])('ends at its time: %s', (_, changes) => {
    expect(judge(changes)).toMatchObject({
      kind: 'give-up',
      message: 'The search is over: nothing is for sale for 4 × p5 or p4.',
    })
  })

  it('buys nothing once the time of the rule is over, even if it was approved', () => {
    const over = judge({
      quotes: [quoteOf()],
      approved: quoteOf(),
      rule: { ...UNASKED, searchUntilAtMs: NOW_MS },
    })
    expect(over).toMatchObject({
      kind: 'give-up',
      message:
        'The search is over: 4 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z was for sale, but not bought in time.',
    })
    expect(over).not.toHaveProperty('isInvalid')
    expect(judge({ quotes: [quoteOf()], rule: { searchUntilAtMs: NOW_MS + 1 } }).kind).toBe('ask')
  })

  it('buys what extends a reservation whose latest start has passed', () => {
    const quotes = [quoteOf({ extends: 'cr-1' })]
    const wish = { extends: { id: 'cr-1', region: 'east' }, latestStartAtMs: NOW_MS - DAY_MS }
    expect(judge({ wish, quotes, rule: UNASKED }).kind).toBe('buy')
  })

  it('for what is never sold fails at the first look, and continues at a later one', () => {
    expect(judge({ unsold: 'p5 is not sold here', isFirst: true })).toMatchObject({
      kind: 'give-up',
      isInvalid: true,
      message: 'P5 is not sold here.',
    })
    expect(judge({ unsold: 'p5 is not sold here!' })).toMatchObject({
      kind: 'wait',
      message: 'P5 is not sold here! The next check is in 1d.',
    })
  })

  it('names the parts of the provider that did not answer', () => {
    const one = judge({ unseen: ['west: no answer'] })
    expect(one.unseen).toEqual(['west: no answer'])
    expect(one.message).toMatch(
      /^Nothing .*\. One part of the provider did not answer \(west: no answer\)\. The/,
    )
    expect(judge({ unseen: ['west: a', 'north: b'], quotes: [quoteOf({ count: 1 })] }).message).toMatch(
      /not 4\. 2 parts of the provider did not answer \(west: a\)\. The/,
    )
  })
})

describe('an approval', () => {
  const hourly = hourlyOf({ endsAtMs: NOW_MS + 5 * DAY_MS, committedMs: DAY_MS })

  it.each<[string, CapacityQuote, Partial<CapacityQuote>]>([
    ['the same one', quoteOf(), {}],
    ['another name for it', quoteOf(), { id: 'cb-2' }],
    ['a lower payment', quoteOf(), { upfrontMicro: 1 }],
    ['a start up to a day sooner', quoteOf(), { startsAtMs: NOW_MS }],
    ['a start up to a day later', quoteOf(), { startsAtMs: NOW_MS + 2 * DAY_MS }],
    ['a lower price per hour', hourly, { perHourMicro: 7_999_999 }],
    ['a shorter commitment', hourly, { committedMs: DAY_MS - 1 }],
    ['an hourly end up to a day later', hourly, { endsAtMs: NOW_MS + 6 * DAY_MS }],
    ['an hourly end up to a day sooner', hourly, { endsAtMs: NOW_MS + 4 * DAY_MS }],
  ])('holds for %s', (_, approved, changes) => {
    expect(isAsApproved({ ...approved, ...changes }, approved)).toBe(true)
  })

  it.each<[string, CapacityQuote, Partial<CapacityQuote>]>([
    ['another kind', hourly, { kind: 'prepaid' }],
    ['another type', quoteOf(), { type: 'p4' }],
    ['fewer machines', quoteOf(), { count: 3 }],
    ['another zone', quoteOf(), { zone: 'east-b' }],
    ['another currency', quoteOf(), { currency: 'CNY' }],
    ['a higher payment', quoteOf(), { upfrontMicro: 960_000_001 }],
    ['a higher price per hour', hourly, { perHourMicro: 8_000_001 }],
    ['a longer commitment', hourly, { committedMs: DAY_MS + 1 }],
    ['a commitment that was not approved', hourlyOf(), { committedMs: 1 }],
    ['a start more than a day sooner', quoteOf(), { startsAtMs: NOW_MS - 1 }],
    ['a start more than a day later', quoteOf(), { startsAtMs: NOW_MS + 2 * DAY_MS + 1 }],
    ['another end of prepaid capacity', quoteOf(), { endsAtMs: NOW_MS + 3 * DAY_MS + 1 }],
    ['an hourly end more than a day later', hourly, { endsAtMs: NOW_MS + 6 * DAY_MS + 1 }],
  ])('does not hold for %s', (_, approved, changes) => {
    expect(isAsApproved({ ...approved, ...changes }, approved)).toBe(false)
  })

  it('names what was seen: machines, place, time and price, and not the name of the provider', () => {
    expect(quoteKey(quoteOf())).toBe(quoteKey(quoteOf({ id: 'cb-2', readAtMs: 1, usableUntilMs: 1 })))
    const others: Partial<CapacityQuote>[] = [
      { type: 'p4' },
      { count: 3 },
      { zone: 'east-b' },
      { startsAtMs: 1 },
      { endsAtMs: 1 },
      { upfrontMicro: 1 },
      { perHourMicro: 1 },
      { currency: 'CNY' },
      { committedMs: DAY_MS },
      { committedMs: 2 * DAY_MS },
    ]
    const keys = [{}, ...others].map((changes) => quoteKey(quoteOf(changes)))
    expect(new Set(keys).size).toBe(others.length + 1)
    expect(quoteKey(hourlyOf())).toContain(`/${NOW_MS}//`)
  })
})

describe('after capacity of the same wish was lost', () => {
  it('what was paid for it counts as bought without asking', () => {
    const rule = { unaskedMaxMicroUsd: 2 * 960_000_000 }
    const facts = { quotes: [quoteOf()], rule }
    expect(judge({ ...facts, earlierMicroUsd: 960_000_000 }).kind).toBe('buy')
    const verdict = judge({ ...facts, earlierMicroUsd: 960_000_001 })
    expect(verdict.kind).toBe('ask')
    expect(verdict.message).toMatch(/\$960\.00 were paid before, for capacity that was lost\. It waits/)
  })
})
