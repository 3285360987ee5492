/** Figures that EC2 never gives for Capacity Blocks, over the wire: nothing is bought by them, and each refusal is a sentence. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../../core/money/money'
import type { ReservationOrder } from '../../../../core/reservation/reservation'
import { judgeCapacity } from '../../../../planner/reserving/judge'
import { factsOf } from '../../../planner/reserving/facts'
import { AnswerBreaker } from '../../broken-answers'
import { patiently } from '../../harness'
import { WireReservingHarness } from './wire-harness'

let h: WireReservingHarness
let breaker: AnswerBreaker
/** Values that replace this field in an answer; `undefined` removes the field. */
let broken: { field: string; value: string | undefined }

beforeAll(async () => {
  h = await WireReservingHarness.make(async (cloud) => {
    breaker = await AnswerBreaker.open(cloud.endpoint, {
      change: (answer) => ({ ...answer, body: withField(answer.body) }),
    })
    return breaker.url
  })
})
beforeEach(() => void (breaker.breaks = undefined))
afterAll(async () => {
  breaker.close()
  await h.dispose()
})

function withField(body: string): string {
  const { field, value } = broken
  const text = value === undefined ? '' : `<${field}>${value}</${field}>`
  return body.replace(new RegExp(`<${field}>[^<]*</${field}>`, 'g'), text)
}

function breakAnswers(action: string, field: string, value: string | undefined): void {
  broken = { field, value }
  breaker.breaks = ({ body }) => new URLSearchParams(body).get('Action') === action
}

const NUMBERS = ['', '-1', 'NaN', 'Infinity', '1e3', '1e308', '9'.repeat(20), 'many', '0x10', '1,5', 'null']
const DATES = [
  '1970-01-01T00:00:00Z',
  '2099-01-01T00:00:00Z',
  '9999-12-31T00:00:00Z',
  '275761-01-01T00:00:00Z',
]
const OFFERINGS = 'DescribeCapacityBlockOfferings'
const FIELDS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  upfrontFee: [undefined, ...NUMBERS, ...DATES],
  currencyCode: [undefined, ...NUMBERS, 'EUR', 'usd'],
  startDate: [undefined, ...NUMBERS, ...DATES],
  endDate: [...NUMBERS, ...DATES],
  instanceCount: [undefined, ...NUMBERS],
  capacityBlockDurationHours: ['1000', '9'.repeat(20)],
}
const NO_LIMIT = microUsd(1_000_000)
const RULE = {
  upfrontMaxMicroUsd: NO_LIMIT,
  machineHourMaxMicroUsd: NO_LIMIT,
  unaskedMaxMicroUsd: NO_LIMIT,
}

/** Returns the outcome of a search. */
async function look(): Promise<{ kind: string; message: string }> {
  const wish = h.wish('prepaid')
  try {
    const quotes = await h.reserving.reservable(wish, patiently())
    return judgeCapacity({ ...factsOf({ rule: RULE, quotes, nowMs: h.nowMs() }), wish })
  } catch (error) {
    return { kind: 'thrown', message: `${(error as Error).message}.` }
  }
}

describe('a Capacity Block', () => {
  it('with all its figures is bought', async () => {
    expect((await look()).kind).toBe('buy')
  })

  it.each(Object.entries(FIELDS))(
    'whose %s makes no sense is not bought, and a sentence says why',
    async (field, values) => {
      for (const value of values) {
        breakAnswers(OFFERINGS, field, value)
        const { kind, message } = await look()
        expect([value, kind]).toEqual([value, expect.stringMatching(/^(wait|thrown)$/)])
        expect(message).toMatch(/^[^\n]{20,400}\.$/)
        expect(message).not.toMatch(/Deserialization|\$response|undefined|\[object/)
      }
    },
  )

  it.each([
    ['upfrontFee', 'many', 'its fee is "many"'],
    ['currencyCode', undefined, 'its fee has no currency'],
    ['startDate', undefined, 'it began 1970-01-01T00:00:00Z'],
    ['endDate', '2099-01-01T00:00:00Z', 'it ends 2099-01-01T00:00:00Z, and lasts '],
    ['endDate', 'many', 'AWS sent an answer that cannot be read (Invalid'],
  ])('whose %s is %j is refused with the reason', async (field, value, words) => {
    breakAnswers(OFFERINGS, field, value)
    expect((await look()).message).toContain(words)
  })

  it.each(Object.entries(FIELDS))(
    'whose %s makes no sense just before the purchase is not sent',
    async (field, values) => {
      const [quote] = await h.reserving.reservable(h.wish('prepaid'), patiently())
      const order: ReservationOrder = {
        intent: 'res-broken',
        send: 1,
        deployment: 'dep',
        owner: 'ada',
        backend: 'ec2',
        quote: quote!,
      }
      for (const value of values) {
        breakAnswers(OFFERINGS, field, value)
        const outcome = await h.reserving
          .reserve(order, patiently())
          .then(({ kind }) => kind)
          .catch(() => 'thrown')
        expect([value, outcome, h.sent()]).toEqual([value, expect.stringMatching(/^(refused|thrown)$/), 0])
      }
    },
  )
})
