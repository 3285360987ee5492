import { describe, expect, it } from '@jest/globals'
import type { CapacityQuote, CapacityRequest } from '../../../core/reservation/reservation'
import type { JudgedQuote, PurchaseRule } from '../../../core/reservation/reserving'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { rankQuotes, wholePriceOf } from '../../../planner/reserving/judge'
import { priceInWords, quoteInWords } from '../../../planner/reserving/words'
import { factsOf, hourlyOf, NOW_MS, quoteOf, without } from './facts'

const HOURLY: Partial<CapacityRequest> = { kind: 'hourly', durationMs: 10 * HOUR_MS }

interface Case {
  wish?: Partial<CapacityRequest>
  rule?: PurchaseRule
  quote?: CapacityQuote
}
const judged = (facts: Parameters<typeof rankQuotes>[0], quote: CapacityQuote): JudgedQuote =>
  rankQuotes(facts, [quote])[0]!

const refusalOf = ({ wish = {}, rule = {}, quote = quoteOf() }: Case): string | undefined =>
  judged(factsOf({ wish, rule }), quote).refusal

describe('a quote', () => {
  const [startsAtMs, endsAtMs] = [NOW_MS + DAY_MS, NOW_MS + 3 * DAY_MS]
  const extended = { id: 'cr-1', region: 'east' }
  const anHour = { extends: extended, durationMs: HOUR_MS }
  const ofExtension = quoteOf({ extends: 'cr-1', startsAtMs: endsAtMs, endsAtMs: endsAtMs + HOUR_MS })

  it.each<[string, Case]>([
    ['like the wish', {}],
    ['of the second type', { quote: quoteOf({ type: 'p4' }) }],
    ['that begins at the earliest time', { wish: { earliestStartAtMs: startsAtMs } }],
    ['that begins at the latest time', { wish: { latestStartAtMs: startsAtMs } }],
    ['that ends at the latest time', { wish: { latestEndAtMs: endsAtMs } }],
    ['in one of the zones', { wish: { zones: ['east-b', 'east-a'] } }],
    ['in one of the Regions', { wish: { regions: ['west', 'east'] } }],
    ['for any zone and Region', { wish: { zones: [], regions: [] } }],
    ['at the limit of the payment', { rule: { upfrontMaxMicroUsd: 960_000_000 } }],
    ['at the limit of the machine hour', { rule: { machineHourMaxMicroUsd: 5_000_000 } }],
    [
      'by the hour at the limit of the machine hour',
      { wish: HOURLY, rule: { machineHourMaxMicroUsd: 2_000_000 }, quote: hourlyOf() },
    ],
    ['by the hour without an end', { wish: { kind: 'hourly' }, quote: hourlyOf() }],
    [
      'by the hour at the limit of all that it may cost',
      {
        wish: HOURLY,
        rule: { spendMaxMicroUsd: 80_000_000 },
        quote: hourlyOf({ endsAtMs: NOW_MS + 10 * HOUR_MS }),
      },
    ],
    ['above the limit of hourly capacity', { rule: { spendMaxMicroUsd: 1 } }],
    [
      'of an extension, whatever its times',
      { wish: { ...anHour, latestStartAtMs: NOW_MS, latestEndAtMs: NOW_MS }, quote: ofExtension },
    ],
  ])('%s may be bought', (_, one) => {
    expect(refusalOf(one)).toBeUndefined()
  })

  it.each<[string, Case, string]>([
    ['by the hour', { quote: hourlyOf() }, 'it is a different kind of reservation'],
    ['of an extension', { quote: ofExtension }, 'it is a different kind of reservation'],
    ['for a new one', { wish: { extends: extended } }, 'it is a different kind of reservation'],
    [
      'of another extension',
      { wish: { extends: { ...extended, id: 'cr-2' } }, quote: ofExtension },
      'it is a different kind of reservation',
    ],
    ['of another type', { quote: quoteOf({ type: 'p3' }) }, 'it is for p3'],
    ['of fewer machines', { quote: quoteOf({ count: 3 }) }, 'it has 3 machines, not 4'],
    ['of more machines', { quote: quoteOf({ count: 5 }) }, 'it has 5 machines, not 4'],
    ['in another zone', { wish: { zones: ['east-b'] } }, 'it is in east-a'],
    ['in another Region', { wish: { regions: ['west'] } }, 'it is in east'],
    [
      'of an extension in another zone',
      { wish: { extends: extended, zones: ['east-b'] }, quote: ofExtension },
      'it is in east-a',
    ],
    [
      'that begins just before the earliest time',
      { wish: { earliestStartAtMs: startsAtMs + 1 } },
      'it begins 2026-11-03T00:00:00Z, before the wanted time',
    ],
    [
      'that begins just after the latest time',
      { wish: { latestStartAtMs: startsAtMs - 1 } },
      'it begins 2026-11-03T00:00:00Z, after the wanted time',
    ],
    [
      'that ends just after the latest time',
      { wish: { latestEndAtMs: endsAtMs - 1 } },
      'it ends 2026-11-05T00:00:00Z, after the wanted time',
    ],
    [
      'that is usable for just less than wanted',
      { quote: quoteOf({ usableUntilMs: endsAtMs - 60_000 }) },
      'it can be used for 1d 23h, and 2d are needed',
    ],
    [
      'that ends before it was used for as long as wanted',
      { quote: hourlyOf({ endsAtMs: NOW_MS + 10 * HOUR_MS - 1 }), wish: HOURLY },
      'it can be used for 10h, and 10h are needed',
    ],
    [
      'that has begun, and is usable for less than wanted from now on',
      { quote: quoteOf({ startsAtMs: NOW_MS - 1, usableUntilMs: NOW_MS + 2 * DAY_MS - 1 }) },
      'it can be used for 2d, and 2d are needed',
    ],
    [
      'in another currency',
      { quote: quoteOf({ currency: 'CNY' }) },
      'it is sold in CNY, and the limits are in USD',
    ],
    [
      'above the limit of the payment',
      { rule: { upfrontMaxMicroUsd: 959_999_999 } },
      'it costs $960.00, above the limit of $960.00',
    ],
    [
      'above the limit of the machine hour',
      { rule: { machineHourMaxMicroUsd: 4_999_999 } },
      'a machine costs $5.00 per hour, above the limit of $5.00',
    ],
    [
      'by the hour above the limit of the machine hour',
      { wish: HOURLY, rule: { machineHourMaxMicroUsd: 1_999_999 }, quote: hourlyOf() },
      'a machine costs $2.00 per hour, above the limit of $2.00',
    ],
    [
      'by the hour above the limit of all that it may cost',
      {
        wish: HOURLY,
        rule: { spendMaxMicroUsd: 79_000_000 },
        quote: hourlyOf({ endsAtMs: NOW_MS + 10 * HOUR_MS }),
      },
      'it costs $80.00 if it stays unused, above the limit of $79.00',
    ],
    [
      'whose commitment alone is above the limit',
      {
        wish: { kind: 'hourly' },
        rule: { spendMaxMicroUsd: 79_000_000 },
        quote: hourlyOf({ committedMs: 10 * HOUR_MS }),
      },
      'it costs $80.00 if it stays unused, above the limit of $79.00',
    ],
    [
      'above the limit of an extension',
      { wish: anHour, rule: { upfrontMaxMicroUsd: 959_000_000 }, quote: ofExtension },
      'it costs $960.00, above the limit of $959.00',
    ],
  ])('%s is refused', (_, one, refusal) => {
    expect(refusalOf(one)).toBe(refusal)
  })

  it('that begins at once lasts as long as wanted, although the answer took time', () => {
    const quote = hourlyOf({ endsAtMs: NOW_MS + 10 * HOUR_MS })
    const facts = { ...factsOf({ wish: HOURLY }), nowMs: NOW_MS + 800 }
    expect(judged(facts, quote).refusal).toBeUndefined()
  })
})

describe('the price of a machine hour', () => {
  it.each<[string, CapacityQuote, number]>([
    ['is of the usable time', quoteOf({ usableUntilMs: NOW_MS + 2 * DAY_MS }), 10_000_000],
    ['is of the whole time if all of it is usable', without(quoteOf(), 'usableUntilMs'), 5_000_000],
    ['is of the time that is left', quoteOf({ startsAtMs: NOW_MS - DAY_MS }), 3_333_334],
    ['is the hourly price of one machine', hourlyOf(), 2_000_000],
    ['is without bounds if nothing is usable', quoteOf({ usableUntilMs: NOW_MS + DAY_MS }), Infinity],
    ['is nothing if nothing is paid', quoteOf({ upfrontMicro: 0, usableUntilMs: NOW_MS + DAY_MS }), 0],
    ['is rounded up', quoteOf({ upfrontMicro: 960_000_001 }), 5_000_001],
  ])('%s', (_, quote, price) => {
    expect(judged(factsOf(), quote).machineHourMicro).toBe(price)
  })
})

describe('the whole price', () => {
  it.each<[string, CapacityQuote, number]>([
    ['is the payment', quoteOf(), 960_000_000],
    ['is that of the hours until the end', hourlyOf({ endsAtMs: NOW_MS + 3 * HOUR_MS }), 24_000_000],
    [
      'is that of the commitment if that is longer',
      hourlyOf({ endsAtMs: NOW_MS + 3 * HOUR_MS, committedMs: 4 * HOUR_MS }),
      32_000_000,
    ],
    ['is not known without an end, and counts as nothing', hourlyOf(), 0],
    ['is rounded up', hourlyOf({ endsAtMs: NOW_MS + 1 }), 3],
  ])('%s', (_, quote, price) => {
    expect(wholePriceOf(quote)).toBe(price)
  })
})

describe('the words for a quote', () => {
  it('say what, where and when', () => {
    expect(quoteInWords(quoteOf())).toBe('4 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z')
    expect(quoteInWords(hourlyOf())).toBe('4 × p5 in east-a, 2026-11-02T00:00:00Z until it is released')
  })

  it('say how it is paid', () => {
    const words = (quote: CapacityQuote): string => priceInWords(judged(factsOf(), quote))
    expect(words(quoteOf())).toBe('$960.00 upfront, $5.00 per machine and hour')
    expect(words(hourlyOf())).toBe('$2.00 per machine and hour, used or not')
  })
})

describe('an extension', () => {
  it('that adds less than is needed is refused, whatever was asked for', () => {
    const { wish, rule } = factsOf({
      wish: { extends: { id: 'cr-1', region: 'east' }, durationMs: 2 * DAY_MS },
    })
    const short = quoteOf({ extends: 'cr-1', endsAtMs: NOW_MS + 2 * DAY_MS })
    expect(judged({ wish, rule }, short).refusal).toMatch(/^it adds 1d.*, and 2d.* are needed$/)
    expect(judged({ wish, rule }, quoteOf({ extends: 'cr-1' })).refusal).toBeUndefined()
  })
})
