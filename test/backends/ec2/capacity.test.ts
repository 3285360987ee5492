import { describe, expect, it } from '@jest/globals'
import { adviseFor, PURPOSES } from '../../../backends/ec2/capacity/advice'
import { soldDays } from '../../../backends/ec2/capacity/block-durations'
import { compareOfferings, coverageOfOffering } from '../../../backends/ec2/capacity/offerings'
import { parsePattern } from '../../../backends/ec2/capacity/patterns'
import { validateRun, type RegionFacts, type RunNeeds } from '../../../backends/ec2/capacity/validate'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import type { Reservation } from '../../../backends/ec2/sdk/api'
import { TYPES } from './fake-market'

const NOW = Date.UTC(2027, 0, 10)
const TYPE = 'p5.48xlarge'
const wish = (changes: Partial<RunNeeds> = {}): RunNeeds => ({
  type: TYPE,
  count: 32,
  days: 7,
  zones: [],
  ...changes,
})

const block = (changes: Partial<Reservation> = {}): Reservation => ({
  id: 'cr-block',
  type: TYPE,
  zone: 'us-east-1a',
  total: 32,
  free: 32,
  state: 'active',
  platform: 'Linux/UNIX',
  tenancy: 'default',
  isBlock: true,
  isUltraServer: false,
  isInterruptible: false,
  startsAtMs: NOW - HOUR_MS,
  endsAtMs: NOW + 7 * DAY_MS,
  ...changes,
})

const facts = (changes: Partial<RegionFacts> = {}): RegionFacts => ({
  region: 'us-east-1',
  zones: ['us-east-1a'],
  reservations: [],
  offerings: [],
  usdPerHour: 55.04,
  type: { ...TYPES.find(({ name }) => name === TYPE)!, efaInterfaces: 32 },
  subnets: [
    { id: 'subnet-a', zone: 'us-east-1a', vpc: 'vpc-1', freeAddresses: 4_091, givesPublicAddress: true },
  ],
  quota: {
    region: 'us-east-1',
    code: 'L-417A185B',
    family: 'P',
    market: 'on-demand',
    limit: 0,
    used: 0,
    isRequestOpen: false,
  },
  ...changes,
})

const validated = (changes: Partial<RegionFacts>, wished: Partial<RunNeeds> = {}) =>
  validateRun(wish(wished), [facts(changes)], NOW)

describe('a run is validated', () => {
  it('yes, in an own block of its length: the half hour that every block lacks at its end is no condition', () => {
    const { verdict, options } = validated({ reservations: [block()] })
    expect(verdict).toBe('yes')
    expect(options[0]).toMatchObject({
      kind: 'capacity-block',
      conditions: [],
      costUsd: 0,
      ultraCluster: true,
      usableUntilMs: NOW + 7 * DAY_MS - 30 * MINUTE_MS,
    })
  })

  it.each([
    [
      'a block that has not begun',
      { state: 'scheduled', free: 0, startsAtMs: NOW + DAY_MS, endsAtMs: NOW + 8 * DAY_MS },
      /cannot be used before 2027-01-11 00:00/,
    ],
    ['an unpaid block', { state: 'payment-pending' }, /its payment must succeed/],
    ['a block that ends half a day early', { endsAtMs: NOW + 6.5 * DAY_MS }, /13 h before 7 days are over/],
    [
      'a zone without a subnet',
      { zone: 'us-east-1b' },
      /us-east-1b has no subnet: aws ec2 create-default-subnet/,
    ],
    [
      'a reservation on demand of several machines',
      { isBlock: false, endsAtMs: undefined },
      /not in an UltraCluster/,
    ],
  ])('yes with conditions, in %s', (_what, changes, words) => {
    const { verdict, options } = validated({ reservations: [block(changes)] })
    expect([verdict, options[0]!.conditions.join()]).toEqual(['conditions', expect.stringMatching(words)])
  })

  it.each([
    ['too few free machines', { free: 31 }, /room for 31 of 32/],
    ['a block that ends days early', { endsAtMs: NOW + 3 * DAY_MS }, /extending it may be possible/],
    ['another platform', { platform: 'Windows' }, /it is for Windows/],
    [
      'machines that their owner takes back',
      { isBlock: false, isInterruptible: true },
      /notice of two minutes/,
    ],
  ])('no, for %s', (_what, changes, words) => {
    const { verdict, rejected } = validated({ reservations: [block(changes)] })
    expect([verdict, rejected.map(({ obstacles }) => obstacles.join()).join()]).toEqual([
      'no',
      expect.stringMatching(words),
    ])
  })

  it('no, for another type or an ended block, which are not even mentioned', () => {
    const { verdict, rejected } = validated({
      reservations: [block({ type: 'p4d.24xlarge' }), block({ state: 'expired' })],
    })
    expect([verdict, rejected.map(({ kind }) => kind)]).toEqual(['no', ['on-demand']])
  })

  it('for a wanted start: a block that begins by then has no condition, a later one has', () => {
    const later = block({ state: 'scheduled', free: 0, startsAtMs: NOW + DAY_MS, endsAtMs: NOW + 9 * DAY_MS })
    const verdictFor = (startsAtMs: number): string =>
      validated({ reservations: [later] }, { startsAtMs }).verdict
    expect([verdictFor(NOW + 2 * DAY_MS), verdictFor(NOW + HOUR_MS)]).toEqual(['yes', 'conditions'])
  })

  it('with a block to buy, whose price is the cost', () => {
    const offering = {
      id: 'cb-1',
      type: TYPE,
      count: 32,
      zone: 'us-east-1a',
      currency: 'USD',
      tenancy: 'default',
    }
    const dates = { startsAtMs: NOW + HOUR_MS, endsAtMs: NOW + HOUR_MS + 7 * DAY_MS }
    const { verdict, options } = validated({
      offerings: [{ ...offering, ...dates, upfrontFee: '169344.000000' }],
    })
    expect([verdict, options[0]]).toMatchObject([
      'conditions',
      {
        kind: 'offering',
        costUsd: 169_344,
        conditions: [expect.stringContaining('bought first, for $169,344 at once')],
      },
    ])
  })

  it('with blocks of unlike lengths compared by the hours that they give to the run', () => {
    const offering = (id: string, days: number, upfrontFee: string): RegionFacts['offerings'][number] => ({
      id,
      type: TYPE,
      count: 32,
      zone: 'us-east-1a',
      currency: 'USD',
      tenancy: 'default',
      startsAtMs: NOW + HOUR_MS,
      endsAtMs: NOW + HOUR_MS + days * DAY_MS,
      upfrontFee,
    })
    const offerings = [
      offering('cb-short', 6.5, '100'),
      offering('cb-long', 14, '900'),
      offering('cb-exact', 7, '800'),
    ]
    const { options } = validated({ offerings })
    expect(options.map(({ id, shortMs }) => [id, shortMs / HOUR_MS])).toEqual([
      ['cb-exact', 0.5],
      ['cb-long', 0],
      ['cb-short', 12.5],
    ])
    expect(options[0]!.usdPerUsefulHour).toBeCloseTo(800 / 32 / 167.5)
    const listed = offerings.map((value) => ({
      value,
      ...coverageOfOffering(value, { days: 7, nowMs: NOW }),
    }))
    for (const by of ['start', 'price'] as const)
      expect([...listed].sort(compareOfferings(by)).map(({ value }) => value.id)).toEqual([
        'cb-exact',
        'cb-long',
        'cb-short',
      ])
  })

  it('never yes for machines on demand, which AWS does not promise', () => {
    const quota = { ...facts().quota!, limit: 192 * 32 }
    const { verdict, options } = validated({ quota })
    expect([verdict, options.map(({ kind }) => kind), options[0]!.costUsd]).toEqual([
      'no',
      ['on-demand'],
      55.04 * 32 * 7 * 24,
    ])
  })
})

describe('lengths of blocks', () => {
  it.each([
    [0.5, 1],
    [14, 14],
    [15, 21],
    [29, 35],
    [182, 182],
    [183, undefined],
  ])('%d days are sold as %p', (days, sold) => {
    expect(soldDays(days)).toBe(sold)
  })
})

describe('patterns', () => {
  const fitting = (text: string): string[] => TYPES.filter(parsePattern(text).fits).map(({ name }) => name)

  it.each([
    ['p4d', ['p4d.24xlarge']],
    ['p4*', ['p4d.24xlarge', 'p4de.24xlarge']],
    ['g?.xlarge', ['g5.xlarge']],
    ['/^g5g?\\./', ['g5.xlarge', 'g5g.xlarge']],
    ['a100', ['p4d.24xlarge']],
    ['A100-80GB', ['p4de.24xlarge']],
  ])('%s means %p', (text, expected) => {
    expect(fitting(text)).toEqual(expected)
  })

  it.each(['', '(', '[a-'])('%p is refused', (text) => {
    expect(() => parsePattern(text)).toThrow()
  })
})

describe('advice', () => {
  const kindOf = (changes: Partial<Parameters<typeof adviseFor>[0]>): string =>
    adviseFor({ purpose: 'training', type: TYPE, machines: 32, ...changes }).kind

  it.each([
    ['a scheduled training of 10 days', { isScheduled: true, days: 10 }, 'capacity-block'],
    [
      'one of as many machines as a block has',
      { isScheduled: true, days: 7, machines: 64 },
      'capacity-block',
    ],
    ['one of more machines than a block has', { isScheduled: true, days: 7, machines: 65 }, 'odcr'],
    ['one as long as AWS sells', { isScheduled: true, days: 182 }, 'capacity-block'],
    ['one a day longer than AWS sells', { isScheduled: true, days: 183 }, 'odcr'],
    [
      'one of one machine that can resume',
      { isScheduled: true, days: 3, machines: 1, isInterruptible: true },
      'spot',
    ],
    ['one without dates', {}, 'odcr'],
    ['one without dates that can resume', { isInterruptible: true }, 'spot'],
    ['an inference service', { purpose: 'inference' as const }, 'odcr'],
    ['development', { purpose: 'development' as const }, 'on-demand'],
    ['development that must start', { purpose: 'development' as const, isGuaranteed: true }, 'odcr'],
    ['experiments that can resume', { purpose: 'experiments' as const, isInterruptible: true }, 'spot'],
  ])('for %s', (_what, changes, kind) => {
    expect(kindOf(changes)).toBe(kind)
  })

  it('corrects what is often read, with a page of AWS as source', () => {
    for (const purpose of PURPOSES) {
      const { corrections, sources } = adviseFor({ purpose, type: TYPE, machines: 1 })
      expect([
        corrections.length > 0,
        sources.every((one) => one.startsWith('https://docs.aws.amazon.com/')),
      ]).toEqual([true, true])
    }
    const inference = adviseFor({ purpose: 'inference', type: 'inf2.xlarge', machines: 20 })
    expect(inference.corrections.join()).toContain('used or not; "pay only when running" is wrong')
  })
})
