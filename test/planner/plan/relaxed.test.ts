import { describe, expect, it } from '@jest/globals'
import type { JobSpec } from '../../../core/job/job'
import { microUsd } from '../../../core/money/money'
import { offerKey, type Offer } from '../../../core/offer'
import { REJECTION_CODES } from '../../../core/job/plan'
import type { Relaxation } from '../../../core/job/relaxation'
import { HOUR_MS } from '../../../core/time/time'
import { makePlan } from '../../../planner/plan/plan'
import { relaxationsOf } from '../../../planner/plan/relaxed'
import type { PlanRequest } from '../../../planner/plan/request'
import { REQUIREMENTS } from '../../../planner/plan/requirements'
import { NOW_MS, offer, request, SPEC } from '../wishes'

const gpu = (accelerator: string, usd: number, changes: Partial<Offer> = {}): Offer =>
  offer({
    type: accelerator,
    priceMicroUsdPerHour: microUsd(usd),
    shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator, gpuMemoryGiB: 80 },
    ...changes,
  })
/** Ten hours on an A100, not interruptible. */
const TRAINING: JobSpec = {
  ...SPEC,
  resources: { gpus: { min: 1 } },
  durationMs: 10 * HOUR_MS,
  durationOn: 'A100',
  isInterruptible: false,
}
const A100 = gpu('A100', 2)
const H100 = gpu('H100', 6)

type Changes = Omit<Partial<PlanRequest>, 'spec'> & { spec?: Partial<JobSpec> }
const asked = (offers: Offer[], { spec, ...changes }: Changes = {}): PlanRequest =>
  request(offers, { isFirst: true, ...changes, spec: { ...TRAINING, ...spec } })
const relaxed = (offers: Offer[], changes: Changes = {}): Relaxation[] => {
  const wanted = asked(offers, changes)
  return relaxationsOf(makePlan(wanted), wanted)
}
const firstOf = (wanted: PlanRequest): string | undefined => {
  const [best] = makePlan(wanted).placements
  return best && best.isLate !== true ? offerKey(best.offer) : undefined
}

describe('a deadline that is relaxed', () => {
  const deadlineAtMs = NOW_MS + 9 * HOUR_MS
  const [line, ...others] = relaxed([A100, H100], { deadlineAtMs })

  it('names the cheaper offer with the figures before and after', () => {
    expect(others).toEqual([])
    expect(line).toMatchObject({ wish: 'deadline', offerKey: offerKey(A100) })
    expect(line!.sentence).toMatch(
      /^With `deadline: 10h30m`: \$20\.\d\d instead of \$28\.\d\d, 10h \d+m instead of 4h \d+m, on here\/on-demand\/A100\/a$/,
    )
  })

  it('has the smallest round value with which that offer is first', () => {
    const within = (ms: number) => firstOf(asked([A100, H100], { deadlineAtMs: NOW_MS + ms }))
    expect(within(10.5 * HOUR_MS)).toBe(offerKey(A100))
    expect(within(10 * HOUR_MS)).toBe(offerKey(H100))
  })

  it('is also offered where the first place is likely to be late', () => {
    const late = gpu('A10G', 1)
    const tightForIt = { deadlineAtMs: NOW_MS + 15 * HOUR_MS, spec: { durationMs: 7 * HOUR_MS } }
    expect(makePlan(asked([late], tightForIt)).placements).toMatchObject([{ isLate: true }])
    expect(relaxed([late], tightForIt)).toMatchObject([
      { wish: 'deadline', offerKey: offerKey(late), sentence: expect.stringMatching(/, in time$/) },
    ])
    const limit = REQUIREMENTS.deadline!.limit!
    const enough = limit.values.findIndex(
      (value) => limit.change(value) === relaxed([late], tightForIt)[0]!.change,
    )
    const within = (ms: number) => firstOf(asked([late], { ...tightForIt, deadlineAtMs: NOW_MS + ms }))
    expect(within(limit.values[enough]!)).toBe(offerKey(late))
    expect(within(limit.values[enough - 1]!)).toBeUndefined()
  })
})

describe('a budget that is relaxed', () => {
  it('makes a plan possible where none is, with the smallest round amount', () => {
    const [line, ...others] = relaxed([A100, H100], { remainingMicroUsd: microUsd(15) })
    expect(others).toEqual([])
    expect(line).toMatchObject({ wish: 'budget', change: 'budget: $21', offerKey: offerKey(A100) })
    expect(line!.sentence).toMatch(/^With `budget: \$21`: \$20\.\d\d, 10h \d+m, on /)
    const within = (usd: number) => firstOf(asked([A100, H100], { remainingMicroUsd: microUsd(usd) }))
    expect(within(21)).toBe(offerKey(A100))
    expect(within(20)).toBeUndefined()
  })

  it('pays for the forecast of a job of unknown duration, which could begin with less', () => {
    const [line] = relaxed([A100], {
      spec: { durationMs: undefined, durationOn: undefined },
      remainingMicroUsd: microUsd(0.05),
    })
    const [, amount, cost] = /^With `budget: \$([\d.]+)`: \$([\d.]+)/.exec(line!.sentence)!.map(Number)
    expect(amount).toBeGreaterThanOrEqual(cost!)
  })
})

describe('a wish that is relaxed', () => {
  const dear = gpu('A100', 4, { type: 'dear' })

  it.each<[change: string, Partial<Offer>, Partial<JobSpec>]>([
    ['interruptible: true', { capacityType: 'spot', interruptionsPerHour: 0.05 }, {}],
    ['accept: preemptible-on-demand', { isPreemptible: true, interruptionsPerHour: 0.05 }, {}],
    ['isolation: community', { isolation: 'community' }, {}],
    ['isolation: shared', { isolation: 'shared' }, { isolation: 'dedicated' }],
    ['regions: [eu-west-1]', { region: 'eu-west-1', place: 'eu-west-1b' }, { regions: ['a'] }],
    ['regions: [b]', { place: 'b' }, { regions: ['a'] }],
    ['backends: [there:on-demand]', { backend: 'there' }, { backends: [{ backend: 'here' }] }],
    [
      'cpus: 64',
      { shape: { ...dear.shape, cpus: 64 } },
      { resources: { gpus: { min: 1 }, cpus: { max: 8 } } },
    ],
    [
      'memory: 16GiB',
      { shape: { ...dear.shape, memoryGiB: 16 } },
      { resources: { gpus: { min: 1 }, memoryGiB: { min: 32 } } },
    ],
    [
      'disk: 50GiB',
      { shape: { ...dear.shape, diskGiB: 50 } },
      { resources: { gpus: { min: 1 }, diskGiB: { min: 100 } } },
    ],
    ['gpus: 2', { shape: { ...dear.shape, gpus: 2 } }, { resources: { gpus: { min: 1, max: 1 } } }],
    [
      'gpu_memory: 40GB',
      { shape: { ...dear.shape, gpuMemoryGiB: 40 } },
      { resources: { gpuMemoryGiB: { min: 70 } } },
    ],
    [
      'accelerators: [H100]',
      { shape: { ...dear.shape, accelerator: 'H100' } },
      { resources: { accelerators: ['A100'] } },
    ],
  ])('is named as in the job file: %s', (change, offered, spec) => {
    const cheap = gpu('A100', 1, { type: 'cheap', ...offered })
    const [line, ...others] = relaxed([dear, cheap], { spec })
    expect(others).toEqual([])
    expect(line).toMatchObject({ change, offerKey: offerKey(cheap) })
    expect(line!.sentence).toMatch(new RegExp(`^With .* instead of \\$40\\.\\d\\d`))
  })

  it('is a price per hour, the smallest round one', () => {
    const cheap = gpu('H100', 2.31)
    const [only] = relaxed([cheap], { spec: { priceMaxMicroUsdPerHour: microUsd(2) } })
    expect(only).toMatchObject({ wish: 'max-price', change: 'max_price: $2.40' })
  })

  it('allows machines that a budget cannot limit', () => {
    const changes = { remainingMicroUsd: microUsd(100) }
    const wanted = asked([], changes)
    const answers = [{ ...request([A100]).answers[0]! }]
    answers[0]!.capabilities = { ...answers[0]!.capabilities, billsUntil: 'terminate' }
    const held = { ...wanted, answers }
    expect(relaxationsOf(makePlan(held), held)).toMatchObject([
      { wish: 'billed-on', change: 'accept: billed-until-terminated' },
    ])
  })

  it('keeps the accelerator that the duration refers to', () => {
    const cheap = gpu('H100', 1, { type: 'cheap' })
    const { durationOn: on, ...spec } = TRAINING
    expect(on).toBe('A100')
    const wanted = request([dear, cheap], {
      isFirst: true,
      spec: { ...spec, resources: { accelerators: ['A100'] } },
    })
    const [line] = relaxationsOf(makePlan(wanted), wanted)
    expect(line!.durationMs).toBeLessThan(9 * HOUR_MS)
  })

  it('is no wish if it alone is not enough', () => {
    const spot = gpu('A100', 1, { capacityType: 'spot', isolation: 'community' })
    expect(relaxed([dear, spot])).toEqual([])
    expect(relaxed([spot])).toEqual([])
  })

  it('is left out if it gains less than a tenth', () => {
    const at = (usd: number) => relaxed([dear, gpu('A100', usd, { isolation: 'community' })])
    expect(at(3.7)).toEqual([])
    expect(at(3.5)).toHaveLength(1)
  })

  it('has fewer GPUs or cores only where nothing fits, and says that the figures do not count it', () => {
    const one = gpu('A100', 1, { type: 'one' })
    const two = gpu('A100', 8, { type: 'two', shape: { ...A100.shape, gpus: 2 } })
    const spec = { resources: { gpus: { min: 2 } } }
    expect(relaxed([two, one], { spec })).toEqual([])
    expect(relaxed([one], { spec })).toMatchObject([
      {
        change: 'gpus: 1',
        sentence: expect.stringMatching(/, but slower, with less than requested$/),
      },
    ])
  })
})

describe('the relaxations of a plan', () => {
  it('are none with which the job is late', () => {
    const tight = { deadlineAtMs: NOW_MS + 15 * HOUR_MS, spec: { durationMs: 7 * HOUR_MS } }
    const late = gpu('A10G', 1, { type: 'late', isolation: 'community' })
    expect(relaxed([gpu('A100', 4), late], tight)).toEqual([])
    expect(relaxed([gpu('A10G', 3), late], tight).map(({ wish }) => wish)).toEqual(['deadline'])
  })

  it('consider the cheapest of the zones, and name a figure that stays the same once', () => {
    const at = (place: string, usd: number) =>
      gpu('A100', usd, { type: 'cheap', place, isolation: 'community' })
    const [line] = relaxed([gpu('A100', 4), at('a', 3), at('b', 1), at('c', 2)])
    expect(line!.offerKey).toBe('here/on-demand/cheap/b')
    expect(line!.sentence).toMatch(/: \$10\.\d\d instead of \$40\.\d\d, 10h \d+m, on here/)
  })

  // A machine of k times the speed costs k to the power of 1.5.
  it.each([
    ['cost', 'the slowest', 1],
    ['balanced', 'the fastest', 4],
    ['time', 'the fastest', 4],
  ] as const)('by %s include %s of very many machines, wherever it is listed', (optimize, _, winner) => {
    const speeds = Array.from({ length: 700 }, (_each, index) => 1 + (3 * index) / 699)
    const many = speeds.map((speed) =>
      gpu('A100', speed ** 1.5, {
        type: `x${speed}`,
        isolation: 'community',
        shape: { ...A100.shape, speedFactor: speed },
      }),
    )
    const winnerLast = winner === 1 ? many.reverse() : many
    const [line] = relaxed([gpu('A100', 40), ...winnerLast], { spec: { optimize } })
    expect(line!.offerKey).toBe(`here/on-demand/x${winner}/a`)
  })

  it('are the best three, by the objective of the job', () => {
    const offers = [
      gpu('A100', 4, { type: 'dear' }),
      gpu('A100', 3, { type: 'third', isolation: 'community' }),
      gpu('A100', 1, { type: 'first', capacityType: 'spot', interruptionsPerHour: 0.01 }),
      gpu('A100', 2, { type: 'second', place: 'b' }),
      gpu('A100', 3.2, { type: 'fourth', isPreemptible: true, interruptionsPerHour: 0.01 }),
    ]
    const spec = { regions: ['a'] }
    expect(relaxed(offers, { spec }).map(({ offerKey: key }) => key.split('/')[2])).toEqual([
      'first',
      'second',
      'third',
    ])
  })

  it('compare times for a job that wants to be done soon, and name them first', () => {
    const spec = { optimize: 'time', priceMaxMicroUsdPerHour: microUsd(3) } as const
    const [line] = relaxed([A100, H100], { spec })
    expect(line!.sentence).toMatch(
      /^With `max_price: \$6`: \dh \d+m instead of 10h \d+m, \$\d+\.\d\d instead of/,
    )
  })

  it('never trade durable capacity for money where reliability comes first', () => {
    const spot = gpu('A100', 1, { capacityType: 'spot' })
    expect(relaxed([A100, spot], { spec: { optimize: 'reliability' } })).toEqual([])
  })

  it('do not include what no wish keeps away', () => {
    expect(relaxed([H100, gpu('A100', 1, { availability: 'unavailable' })])).toEqual([])
  })

  it('can change every wish that is a reason for a rejection', () => {
    const fixed = [
      'image',
      'unsupported',
      'target',
      'kept-for-gpus',
      'reservation',
      'held',
      'awaited',
      'unusable',
      'run-limit',
      'reservation-end',
      'quota',
      'stock',
    ]
    expect(Object.keys(REQUIREMENTS).sort()).toEqual(
      REJECTION_CODES.filter((code) => !fixed.includes(code)).sort(),
    )
  })
})
