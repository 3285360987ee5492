import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { Placement } from '../../../core/job/plan'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { formatWhatIf } from '../../../core/job/what-if'
import { nameOf, seriesFor } from '../../../planner/why/input-series'
import type { Question } from '../../../planner/why/what-if'
import { recordedPlan, type RecordedWishes } from '../recorded'
import { NOW_MS, offer } from '../wishes'

interface Row {
  /** Dollars. */
  price?: number
  cost?: number
  hours?: number
  accelerator?: string | null
}

const row = (type: string, { price = 1, cost = 10, hours = 10, accelerator = 'A100' }: Row = {}): Placement =>
  ({
    offer: offer({
      type,
      priceMicroUsdPerHour: microUsd(price),
      shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator: accelerator !== null ? accelerator : undefined },
    }),
    costMicroUsd: microUsd(cost),
    durationMs: hours * HOUR_MS,
    forecast: { cost: { highMicroUsd: microUsd(cost * 1.2) }, finish: { highMs: hours * 1.2 * HOUR_MS } },
  }) as unknown as Placement

const questionOf = ({ spec, input, facts }: RecordedWishes = {}): Question => {
  const wishes = { input, facts, spec: { durationMs: 10 * HOUR_MS, ...spec } } as RecordedWishes
  const { entry, answers, submittedAtMs } = recordedPlan([], wishes)
  return { input: entry.data.inputs, facts: { ...entry.data.facts!, answers: answers! }, submittedAtMs }
}

/** Of each series: step 0, 1 and 2, the probes and the words of step 1. */
const shown = (key: string, rows: Placement[], wishes?: RecordedWishes) =>
  seriesFor(questionOf(wishes), rows)
    .filter(({ at }) => at(1).key === key)
    .map(({ at, probes, wanted, text }) => ({
      at: [0, 1, 2].map((step) => formatWhatIf(at(step)).split('=')[1]),
      probes,
      wanted,
      text: text(1, 'X'),
    }))
const keysOf = (rows: Placement[], wishes?: RecordedWishes) =>
  seriesFor(questionOf(wishes), rows).map(({ at }) => at(1).key)
const upTo = (most: number): number[] => [
  ...[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384].filter((step) => step < most),
  most,
]

const LIMITS = { deadlineAtMs: NOW_MS + 20 * HOUR_MS, budgetMicroUsd: microUsd(20) }

it('a row is named by its parts', () => {
  expect(nameOf('ec2/spot/p5.48xlarge/cr-1')).toBe('ec2 spot p5.48xlarge cr-1')
})

describe('the inputs that may change the first place', () => {
  it('are limits, duration and interruptibility without one', () => {
    expect(keysOf([])).toEqual(['duration', 'duration'])
    expect(keysOf([], { input: LIMITS, spec: { isInterruptible: false } })).toEqual([
      'deadline',
      'budget',
      'duration',
      'duration',
      'interruptible',
    ])
  })

  it('are prices, too, if there is a second one, and its speed if its accelerator is another one', () => {
    expect(keysOf([row('a')])).toEqual(['deadline', 'budget', 'duration', 'duration'])
    expect(keysOf([row('a'), row('b')])).toEqual([
      'price',
      'price',
      'deadline',
      'budget',
      'duration',
      'duration',
    ])
    const [a, b] = [row('a'), row('b', { accelerator: 'H100' })]
    expect(keysOf([a, b], { input: LIMITS })).toEqual([
      'price',
      'price',
      'deadline',
      'deadline',
      'budget',
      'budget',
      'duration',
      'duration',
      'speed',
    ])
    expect(keysOf([a, row('b', { accelerator: null })])).not.toContain('speed')
  })
})

describe('another price', () => {
  const [ROWS, FREE] = [[row('a'), row('b', { price: 3 })], row('free', { price: 0 })]

  it('of the second place goes down by cents to nothing, and of the first one up to eight times of it', () => {
    expect(shown('price', ROWS)).toEqual([
      {
        at: ['3', '2.99', '2.98'],
        probes: upTo(300),
        wanted: 'here/on-demand/b',
        text: 'here on-demand b would have been first at $2.99/h or less, instead of $3.00/h.',
      },
      {
        at: ['1', '1.01', '1.02'],
        probes: upTo(800),
        wanted: undefined,
        text: 'X would have been first if here on-demand a had cost $1.01/h or more, instead of $1.00/h.',
      },
    ])
    const [down] = seriesFor(questionOf(), ROWS)
    expect(formatWhatIf(down!.at(300))).toBe('price.here/on-demand/b=0')
  })

  it('is in whole cents, however the present one is, and in hundredths of a cent below ten cents', () => {
    const of = (second: number, first: number) =>
      shown('price', [row('a', { price: first }), row('b', { price: second })])
    const odd = of(3.005, 3.005)
    expect(odd[0]).toMatchObject({ at: ['3.005', '3', '2.99'], probes: upTo(301) })
    expect(odd[0]!.text).toMatch(/at \$3\.00\/h or less, instead of \$3\.005\/h\.$/)
    expect(odd[1]).toMatchObject({ at: ['3.005', '3.01', '3.02'], probes: upTo(2404) })
    expect(of(0.1, 0.1)).toMatchObject([
      { at: ['0.1', '0.09', '0.08'], probes: upTo(10) },
      { at: ['0.1', '0.11', '0.12'], probes: upTo(80) },
    ])
    const small = of(0.09, 0.09)
    expect(small).toMatchObject([
      { at: ['0.09', '0.0899', '0.0898'], probes: upTo(900) },
      { at: ['0.09', '0.0901', '0.0902'], probes: upTo(7200) },
    ])
    expect(small[0]!.text).toMatch(/at \$0\.0899\/h or less, instead of \$0\.09\/h\.$/)
  })

  it('of a free place can only go up, as far as that of a place of one cent', () => {
    expect(shown('price', [FREE, FREE])).toMatchObject([
      { at: ['0', '0', '0'], probes: [] },
      { at: ['0', '0.0001', '0.0002'], probes: upTo(800) },
    ])
    const least = row('b', { price: 0.0001 })
    expect(shown('price', [FREE, least])[0]).toMatchObject({ at: ['0.0001', '0', '0'], probes: [1] })
  })
})

describe('another deadline', () => {
  const faster = [row('slow', { hours: 12 }), row('c', { hours: 4 }), row('b', { hours: 8 })]
  // The machine of a job needs two minutes to stop.
  const ROWS = [row('a'), ...faster, row('d', { hours: 8 })]

  it('is one at which a faster place is just in time, from twice the longest expected time down', () => {
    expect(shown('deadline', ROWS)).toEqual([
      {
        at: ['none', '2026-11-22T00:01:00.000Z', '2026-11-22T00:00:00.000Z'],
        probes: [16 * 60, 20 * 60],
        wanted: undefined,
        text: 'X would have been first with a deadline at 2026-11-22T00:01:00Z, 1d after the decision.',
      },
    ])
    expect(shown('deadline', ROWS, { input: { startsInMs: 30 * SECOND_MS } })).toMatchObject([
      { at: ['none', '2026-11-22T00:02:00.000Z', expect.any(String)], probes: [16 * 60, 20 * 60] },
    ])
  })

  it('moves by minutes, and by hours for a training of two days or more', () => {
    const at = (hours: number) => shown('deadline', [row('a', { hours })])[0]!.at[1]
    expect(at(47)).toBe('2026-11-25T16:49:00.000Z')
    expect(at(48)).toBe('2026-11-25T19:00:00.000Z')
    expect(at(50)).toBe('2026-11-26T00:00:00.000Z')
  })

  it('is later or earlier than that of the job', () => {
    expect(shown('deadline', ROWS, { input: LIMITS })).toEqual([
      {
        at: ['+0s', '+1m', '+2m'],
        probes: upTo(8 * 12 * 60),
        wanted: undefined,
        text: 'X would have been first with a deadline 1m later.',
      },
      {
        at: ['+0s', '-1m', '-2m'],
        probes: [12 * 60 - 2, 16 * 60 - 2],
        wanted: undefined,
        text: 'X would have been first with a deadline 1m earlier.',
      },
    ])
    const long = [row('a'), row('b', { hours: 48 })]
    expect(shown('deadline', long, { input: LIMITS })).toMatchObject([
      { at: ['+0s', '+1h', '+2h'], probes: upTo(8 * 48) },
      { at: ['+0s', '-1m', '-2m'], probes: [] },
    ])
  })

  it('is not earlier than a faster place needs', () => {
    const probes = (marginMs: number) =>
      shown('deadline', ROWS, { input: { deadlineAtMs: NOW_MS + 8 * HOUR_MS + marginMs } })[1]!.probes
    expect(probes(2 * MINUTE_MS)).toEqual([4 * 60])
    expect(probes(3 * MINUTE_MS - 1)).toEqual([4 * 60])
    expect(probes(3 * MINUTE_MS)).toEqual([1, 4 * 60 + 1])
  })

  it('is later for a job without a place, up to eight times its training time', () => {
    expect(shown('deadline', [], { input: LIMITS })).toMatchObject([
      { at: ['+0s', '+1m', '+2m'], probes: upTo(8 * 10 * 60) },
    ])
  })
})

describe('another budget', () => {
  const spent = (usd: number) => ({
    attempts: 0,
    failures: 0,
    interruptions: 0,
    unclassified: 0,
    misses: 0,
    spentMicroUsd: microUsd(usd),
  })
  const ROWS = [row('a', { cost: 10 }), row('b', { cost: 9.99 })]
  const SIXTEENTHS = [112, 225, 337, 450, 562, 675, 787, 900, 1012, 1125, 1237, 1350, 1462, 1575, 1687, 1800]

  it('goes down from one and a half times the highest expected cost to what was spent', () => {
    expect(shown('budget', ROWS, { input: { ledger: spent(2) } })).toEqual([
      {
        at: ['none', '19.99', '19.98'],
        probes: SIXTEENTHS,
        wanted: undefined,
        text: 'X would have been first with a budget of $19.99 or less.',
      },
    ])
  })

  it('is not searched below if the first place is the cheapest', () => {
    expect(shown('budget', [row('a'), row('b')])).toMatchObject([{ probes: [] }])
  })

  it('goes down and up from that of the job, in steps of about a thousandth', () => {
    const budgetMicroUsd = microUsd(123.456)
    const [lower, larger] = shown('budget', ROWS, { input: { budgetMicroUsd } })
    expect(lower).toMatchObject({
      at: ['123.456', '123.3', '123.2'],
      text: 'X would have been first with a budget of $123.30 or less, instead of $123.456.',
    })
    expect(lower!.probes.slice(0, 2).concat(lower!.probes.at(-1)!)).toEqual([77, 154, 1234])
    expect(larger).toEqual({
      at: ['+0', '+0.1', '+0.2'],
      probes: upTo(24_691),
      wanted: undefined,
      text: 'X would have been first with a budget of $123.556 or more, instead of $123.456.',
    })
  })

  it('has steps of a cent at least, each once', () => {
    const few = shown('budget', ROWS, { input: { budgetMicroUsd: microUsd(0.03) } })
    expect(few).toMatchObject([
      { at: ['0.03', '0.02', '0.01'], probes: [1, 2, 3] },
      { at: ['+0', '+0.01', '+0.02'], probes: upTo(60) },
    ])
    expect(shown('budget', [], { input: { budgetMicroUsd: 0 } })).toMatchObject([{ probes: [] }])
  })
})

describe('another duration', () => {
  it('is up to twenty times as long, or as short as a step', () => {
    expect(shown('duration', [row('a')])).toEqual([
      {
        at: ['10h', '10h1m', '10h2m'],
        probes: upTo(20 * 600),
        wanted: undefined,
        text: 'X would have been first for a training of 10h 1m or more, instead of 10h.',
      },
      {
        at: ['10h', '9h59m', '9h58m'],
        probes: upTo(599),
        wanted: undefined,
        text: 'X would have been first for a training of 9h 59m or less, instead of 10h.',
      },
    ])
  })

  it.each([
    [2 * SECOND_MS, ['2s', '1s', '0s'], [1]],
    [SECOND_MS, ['1s', '0s', '-1s'], []],
    [HOUR_MS - SECOND_MS, ['59m59s', '59m58s', '59m57s'], upTo(3598)],
    [HOUR_MS, ['1h', '59m', '58m'], upTo(59)],
    [47 * HOUR_MS, ['47h', '46h59m', '46h58m'], upTo(47 * 60 - 1)],
    [48 * HOUR_MS, ['48h', '47h', '46h'], upTo(47)],
  ])('has steps that suit %d ms', (durationMs, at, probes) => {
    expect(shown('duration', [row('a')], { spec: { durationMs } })[1]).toMatchObject({
      at: at.map((one) => (one.startsWith('-') ? expect.any(String) : one)),
      probes,
    })
  })

  it('is instead of the assumed hour if the job states none', () => {
    const wishes = { spec: { durationMs: undefined } } as unknown as RecordedWishes
    expect(shown('duration', [row('a')], wishes)[0]).toMatchObject({
      at: ['1h', '1h1m', '1h2m'],
      text: 'X would have been first for a training of 1h 1m or more, instead of the assumed 1h.',
    })
  })
})

it('another speed is up to ten times that of the accelerator of the second place', () => {
  expect(shown('speed', [row('a'), row('b', { accelerator: 'H100' })])).toEqual([
    {
      at: ['1', '1.01', '1.02'],
      probes: upTo(900),
      wanted: 'here/on-demand/b',
      text: 'X would have been first if the H100 trained 1.01 times as fast as assumed.',
    },
  ])
})

it('interruptibility is only tried for a job that may not be interrupted', () => {
  expect(shown('interruptible', [row('a')])).toEqual([])
  expect(shown('interruptible', [row('a')], { spec: { isInterruptible: false } })).toEqual([
    {
      at: ['no', 'yes', 'yes'],
      probes: [1],
      wanted: undefined,
      text: 'X would have been first if the job were interruptible.',
    },
  ])
})
