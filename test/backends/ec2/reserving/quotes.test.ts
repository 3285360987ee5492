import { beforeEach, describe, expect, it } from '@jest/globals'
import type { CapacityQuote, CapacityRequest } from '../../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { Ec2ReservingHarness } from './harness'

let h: Ec2ReservingHarness

beforeEach(() => {
  h = new Ec2ReservingHarness()
})

const asked = (more: Partial<CapacityRequest>): Promise<CapacityQuote[]> =>
  h.reserving.reservable({ ...h.wish(more.kind ?? 'prepaid'), ...more }, patiently())
const refusal = (more: Partial<CapacityRequest>): Promise<string> =>
  asked(more).then(
    (quotes) => `no refusal: ${JSON.stringify(quotes)}`,
    (error: Error) => error.message,
  )

describe.each(['prepaid', 'hourly'] as const)('quotes of %s capacity', (kind) => {
  it('in a zone that the Region does not have are refused, with the known ones', async () => {
    await expect(asked({ kind, zones: ['mars-1a'] })).rejects.toMatchObject({
      failure: {
        class: 'invalid',
        message: expect.stringMatching(/has no zone mars-1a/) as unknown,
        hint: expect.stringMatching(/us-east-1a/) as unknown,
      },
    })
  })
})

describe('quotes of Capacity Blocks', () => {
  it('that are too long are refused in whole days', async () => {
    expect(await refusal({ durationMs: 900 * DAY_MS - HOUR_MS })).toMatch(/at most, not 900$/)
  })

  it('are usable for the whole duration, which ends half an hour before the block', async () => {
    const [quote] = await asked({ durationMs: 2 * DAY_MS - 30 * MINUTE_MS })
    expect(quote!.usableUntilMs).toBe(quote!.endsAtMs! - 30 * MINUTE_MS)
    expect(await asked({ durationMs: 2 * DAY_MS - 29 * MINUTE_MS })).toEqual([])
    const [block] = h.aws.reserving.blocks
    h.aws.reserving.blocks.push({ ...block!, id: 'cb-long', endsAtMs: block!.endsAtMs + HOUR_MS })
    expect((await asked({ durationMs: 2 * DAY_MS })).map(({ id }) => id)).toEqual(['cb-long'])
  })

  it('have a fee that is exact to the millionth', async () => {
    expect((await asked({}))[0]!.upfrontMicro).toBe(4_529_340_001)
  })

  it('name fees that are no numbers, and leave out other tenancies', async () => {
    const [block] = h.aws.reserving.blocks
    h.aws.reserving.blocks = [
      { ...block!, upfrontFee: 'about 5' },
      { ...block!, tenancy: 'dedicated' },
    ]
    expect(await asked({})).toMatchObject([{ id: block!.id, fault: 'its fee is "about 5"' }])
  })

  it('keep to the times and zones of the wish', async () => {
    const { startsAtMs, endsAtMs } = h.aws.reserving.blocks[0]!
    for (const limit of [
      { earliestStartAtMs: startsAtMs + 1 },
      { latestStartAtMs: startsAtMs - 1 },
      { latestEndAtMs: endsAtMs - 1 },
      { zones: ['us-east-1b'] },
    ])
      expect([limit, await asked(limit)]).toEqual([limit, []])
    const kept = { earliestStartAtMs: startsAtMs, latestStartAtMs: startsAtMs, latestEndAtMs: endsAtMs }
    expect(await asked({ ...kept, zones: ['us-east-1a'] })).toHaveLength(1)
  })

  it('are refused for what AWS never sells', async () => {
    expect(await refusal({ count: 65 })).toMatch(/at most 64/)
    expect(await refusal({ durationMs: 183 * DAY_MS })).toMatch(/182 days/)
    expect(await refusal({ types: ['g5.xlarge'] })).toMatch(/sells no Capacity Blocks of g5.xlarge/)
    expect(await refusal({ types: ['trn1.2xlarge'] })).toMatch(/no job could run/)
    const wish = { ...h.wish('prepaid') }
    delete wish.durationMs
    await expect(h.reserving.reservable(wish, patiently())).rejects.toThrow(/needs a duration/)
  })

  it('are refused for a zone without a subnet', async () => {
    h.aws.subnets = h.aws.subnets.filter(({ zone }) => zone === 'us-east-1b')
    expect(await refusal({ regions: ['us-east-1'] })).toMatch(/us-east-1a only/)
  })

  it('come from one Region that sells them, whatever the others never sell', async () => {
    h.clouds['us-west-2']!.reserving.blockTypes = []
    expect(await asked({})).toHaveLength(1)
    expect(await refusal({ regions: ['us-west-2'] })).toMatch(/us-west-2 sells no/)
    expect(await refusal({ regions: ['eu-west-1'] })).toMatch(/not bought in eu-west-1/)
  })
})

describe('quotes of extensions', () => {
  it('are refused for what is no Capacity Block, and for a length that AWS does not sell', async () => {
    const id = h.buyByHand()
    const reference = { id, region: 'us-east-1' }
    expect(await refusal({ extends: reference })).toMatch(/is not a Capacity Block/)
    expect(await refusal({ extends: { ...reference, id: 'cr-none' } })).toMatch(/no reservation cr-none/)
    const block = { id: h.aws.reservations[1]!.id, region: 'us-east-1' }
    expect(await refusal({ extends: block, count: 4, durationMs: 200 * DAY_MS })).toMatch(/182 days/)
  })
})

describe('hourly quotes', () => {
  const hourly = (more: Partial<CapacityRequest>): Promise<CapacityQuote[]> =>
    asked({ kind: 'hourly', regions: ['us-west-2'], ...more })

  it('cost the price on demand for all machines, used or not, in every zone with a subnet', async () => {
    const quotes = await asked({ kind: 'hourly', count: 3 })
    expect(quotes.map(({ zone }) => zone)).toEqual(['us-east-1a', 'us-east-1b', 'us-west-2a'])
    expect(quotes[0]).toMatchObject({ perHourMicro: 3 * 1_006_000, upfrontMicro: 0, startsAtMs: h.nowMs() })
    expect(quotes[0]!.endsAtMs).toBeUndefined()
  })

  it('begin later only where AWS sells that: 5 to 120 days ahead, 32 vCPUs, some families', async () => {
    const later = (days: number, more: Partial<CapacityRequest> = {}): Promise<number> =>
      hourly({ count: 8, earliestStartAtMs: h.nowMs() + days * DAY_MS, ...more }).then((all) => all.length)
    expect(await later(5)).toBe(1)
    expect(await later(120)).toBe(1)
    expect(await later(4.9)).toBe(0)
    expect(await later(121)).toBe(0)
    expect(await later(60, { count: 7 })).toBe(0)
    expect(await later(60, { types: ['p5.48xlarge'] })).toBe(0)
  })

  it('never end within their commitment', async () => {
    const wish = { count: 8, earliestStartAtMs: h.nowMs() + 60 * DAY_MS, durationMs: DAY_MS }
    const [quote] = await hourly(wish)
    expect(quote!.endsAtMs! - quote!.startsAtMs).toBe(14 * DAY_MS)
    expect(await hourly({ ...wish, latestEndAtMs: wish.earliestStartAtMs + 2 * DAY_MS })).toEqual([])
  })

  it('keep to the latest start and end', async () => {
    expect(await hourly({ latestStartAtMs: h.nowMs() - 1 })).toEqual([])
    expect(await hourly({ durationMs: DAY_MS, latestEndAtMs: h.nowMs() + HOUR_MS })).toEqual([])
    const latestEndAtMs = h.nowMs() + HOUR_MS
    expect((await hourly({ latestEndAtMs })).map(({ endsAtMs }) => endsAtMs)).toEqual([latestEndAtMs])
  })

  it('are refused for types and counts that AWS does not have', async () => {
    expect(await refusal({ kind: 'hourly', count: 1_001 })).toMatch(/1 to 1000/)
    expect(await refusal({ kind: 'hourly', types: ['g99.xlarge'] })).toMatch(/no job could run/)
  })

  it('are left out without a price', async () => {
    h.clouds['us-west-2']!.prices = new Map([['m7i.xlarge', '0.2']])
    expect(await hourly({})).toEqual([])
    // Then the price of us-east-1 would stand in for it.
    h.clouds['us-west-2']!.prices = new Map()
    expect(await hourly({})).toEqual([])
  })
})
