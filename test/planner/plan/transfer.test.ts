import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../../core/activities'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import { microUsd } from '../../../core/money/money'
import type { DataTransfer, Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { makeOrder } from '../../../planner/plan/order'
import type { PlanRequest } from '../../../planner/plan/request'
import { expected, offer, plan, rejection, request, SPEC } from '../wishes'

const WAY: DataTransfer = {
  storeRegion: 'us-east-1',
  upMicroUsdPerGb: microUsd(0.02),
  downMicroUsdPerGb: microUsd(0.02),
  bytesPerSecond: 50e6,
}
/** 10 GB every half hour, for two hours: five of them go up. */
const spec = {
  ...SPEC,
  durationMs: 2 * HOUR_MS,
  checkpoint: { everyMs: 30 * MINUTE_MS, sizeBytes: 10e9 },
}
const near = (changes: Partial<Offer> = {}): Offer =>
  offer({ place: 'us-east-1a', region: 'us-east-1', priceMicroUsdPerHour: microUsd(1), ...changes })
const far = (changes: Partial<Offer> = {}): Offer =>
  near({ place: 'eu-west-1a', region: 'eu-west-1', transfer: WAY, ...changes })

function ordered(offers: Offer[], changes: Partial<PlanRequest> = {}, budgetMicroUsd?: number) {
  const asked = request(offers, { spec, ...changes })
  const input: PlanInput = {
    jobId: 'job',
    deployment: 'd',
    recordSeq: 0,
    attempt: 1,
    bundle: null,
    avoid: [],
    ledger: EMPTY_LEDGER,
    resolved: {
      spec,
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: 's3://jobs',
      policy: { failuresMax: 0, interruptionsMax: 0, unclassifiedMax: 0 },
    },
    budgetMicroUsd,
  }
  return makeOrder(plan(offers, { spec, ...changes }), input, asked.answers)
}

describe('a store in another Region', () => {
  it('adds what saving checkpoints there costs, and says so', () => {
    const { placements } = plan([far()], { spec })
    // Four at their intervals and one at the end: 50 GB at $0.02.
    expect(placements[0]).toMatchObject({ transferMicroUsd: microUsd(1) })
    const [beside] = plan([near()], { spec }).placements
    const added = placements[0]!.costMicroUsd - beside!.costMicroUsd
    // And the machine for its last upload, which is slower.
    expect(added / microUsd(1)).toBeCloseTo(1.05, 1)
    expect(placements[0]!.reasons.join('; ')).toContain(
      'including $1.00 for about 50 GB to and from the store in us-east-1, at $0.02 per GB',
    )
  })

  it('says so where the price is not of the price list', () => {
    const wayAt = (kind: 'live' | 'static') => ({ ...WAY, priceSource: { kind, observedAtMs: 0 } })
    const words = (kind: 'live' | 'static', checkpoint = spec.checkpoint): string =>
      plan([far({ transfer: wayAt(kind) })], { spec: { ...spec, checkpoint } }).placements[0]!.reasons.join(
        '; ',
      )
    expect(words('live')).toMatch(/at \$0\.02 per GB;/)
    expect(words('static')).toContain('at $0.02 per GB (assumed: the price list has none)')
    const unsized = { everyMs: HOUR_MS } as typeof spec.checkpoint
    expect(words('static', unsized)).toContain(
      'costs $0.02 per GB (assumed: the price list has none), not included',
    )
  })

  it.each([
    [[], /at \$0\.02 per GB$/],
    [[{ source: 's3://else/where', path: 'data' }], /at \$0\.02 per GB; inputs not included$/],
  ])('says of inputs %j that they are not in it', (inputs, words) => {
    const { reasons } = plan([far()], { spec: { ...spec, inputs } }).placements[0]!
    expect(reasons.find((reason) => reason.includes('to and from the store'))).toMatch(words)
  })

  describe('with inputs', () => {
    const inputs = [
      { source: 's3://corpus/text/', path: 'text' },
      { source: 's3://corpus/vocabulary', path: 'vocabulary' },
    ]
    const [text, vocabulary] = inputs.map(({ source }) => source) as [string, string]
    const reading = { spec: { ...spec, inputs } }
    const sized = (region: string) => [
      { source: text, sizeBytes: 40e9, region },
      { source: vocabulary, sizeBytes: 10e9, region },
    ]
    const reasonsOf = (one: Offer, changes: Partial<PlanRequest>) =>
      plan([one], { ...reading, ...changes }).placements[0]!.reasons.join('; ')

    it('next to the store counts what each machine reads of them, and the time of it', () => {
      const plain = plan([far()], { spec }).placements[0]!
      const read = plan([far()], { ...reading, inputSizes: sized('us-east-1') }).placements[0]!
      expect(read.transferMicroUsd! - plain.transferMicroUsd!).toBe(microUsd(1))
      expect((read.durationMs - plain.durationMs) / 1_000_000).toBeCloseTo(1, 0)
      expect(read.reasons.join('; ')).toContain(
        'including $1.00 for about 50 GB to and from the store in us-east-1, at $0.02 per GB; including $1.00 for reading 50 GB of inputs from us-east-1, at $0.02 per GB;',
      )
    })

    it('counts each with its own size, and none that is in the Region of the machine', () => {
      const [large, small] = sized('us-east-1') as [object, object]
      const inputSizes = [{ ...large, region: 'eu-west-1' }, small] as PlanRequest['inputSizes']
      const plain = plan([far()], { spec }).placements[0]!
      const read = plan([far()], { ...reading, inputSizes: inputSizes! }).placements[0]!
      expect(read.transferMicroUsd! - plain.transferMicroUsd!).toBe(microUsd(0.2))
      expect(read.reasons).toContain(
        'including $0.20 for reading 10 GB of inputs from us-east-1, at $0.02 per GB',
      )
    })

    it('counts none that the job does not read', () => {
      const one = { spec: { ...spec, inputs: inputs.slice(0, 1) }, inputSizes: sized('us-east-1') }
      expect(reasonsOf(far(), one)).toContain('including $0.80 for reading 40 GB of inputs from us-east-1')
    })

    it('reads them again after each interruption that is expected', () => {
      const spot = far({ capacityType: 'spot', interruptionsPerHour: 1 })
      const wish = { spec: { ...reading.spec, isInterruptible: true } }
      const [often] = plan([spot], { ...wish, inputSizes: sized('us-east-1') }).placements
      const [without] = plan([spot], { spec: { ...wish.spec, inputs: [] } }).placements
      const { interruptions } = expected(spot, { ...wish, inputSizes: sized('us-east-1') })
      expect(interruptions).toBeGreaterThan(2)
      expect(often!.transferMicroUsd! - without!.transferMicroUsd!).toBeGreaterThan(
        microUsd(1 + interruptions),
      )
    })

    it('in the Region of the machine takes nothing for them, and says nothing', () => {
      const inputSizes = sized('eu-west-1')
      expect(plan([far()], { ...reading, inputSizes }).placements[0]!.transferMicroUsd).toBe(microUsd(1))
      expect(reasonsOf(far(), { inputSizes })).not.toContain('inputs')
    })

    it('elsewhere costs machines next to the store what leaving that Region costs', () => {
      const dear = { ...WAY, upMicroUsdPerGb: microUsd(0.09) }
      const offers = [near(), far({ transfer: dear })]
      const { placements } = plan(offers, { ...reading, inputSizes: sized('eu-west-1') })
      const beside = placements.find(({ offer: { region } }) => region === 'us-east-1')!
      expect(beside.transferMicroUsd).toBe(microUsd(4.5))
      expect(beside.costMicroUsd).toBeGreaterThan(microUsd(6.5) + 277_778)
      // Nothing about the store, which is next to the machine.
      expect(beside.reasons.slice(2, 4)).toEqual([
        'including $4.50 for reading 50 GB of inputs from eu-west-1, at $0.09 per GB',
        '1x L4 22 GiB, 8 cpus, 32 GiB',
      ])
    })

    it.each<[string, PlanRequest['inputSizes'], RegExp]>([
      ['all', [], /at \$0\.02 per GB; inputs not included;/],
      [
        'one',
        sized('us-east-1').slice(0, 1),
        /inputs from us-east-1, at \$0\.02 per GB; one input is not included;/,
      ],
      ['those of a third Region', sized('ap-south-1'), /; inputs not included;/],
      ['those with only a known size', [{ source: text, sizeBytes: 1e9 }], /; inputs not included;/],
    ])('says that %s are not in the cost where nothing is known', (_, inputSizes, words) => {
      expect(reasonsOf(far(), { inputSizes: inputSizes! })).toMatch(words)
    })

    it('counts none that are on the disk of the machine', () => {
      const local = { spec: { ...spec, inputs: [{ source: 'file:///srv/data', path: 'data' }] } }
      expect(plan([far()], local).placements[0]!.reasons.join('; ')).not.toContain('inputs')
    })

    it('keeps their price from the budget of the machine', () => {
      const order = ordered([far()], { ...reading, inputSizes: sized('us-east-1') }, microUsd(10))
      expect(order.transferMicroUsd).toBe(microUsd(2))
      expect(order.runner.limits.budget?.microUsd).toBe(microUsd(8))
    })
  })

  it('makes a more expensive machine next to the store the cheaper place', () => {
    const dearer = near({ priceMicroUsdPerHour: microUsd(1.4) })
    expect(plan([far(), dearer], { spec }).placements[0]!.offer.region).toBe('us-east-1')
    const cheaper = far({ priceMicroUsdPerHour: microUsd(0.8) })
    expect(plan([cheaper, dearer], { spec }).placements[0]!.offer.region).toBe('eu-west-1')
  })

  it('is waited for where a checkpoint is restored first', () => {
    const savedBefore = { totalBytes: 10e9, uploadMs: 0, saveMs: 0 }
    const resumed = plan([far()], { spec, savedBefore, isFirst: false }).placements[0]!
    const fresh = plan([far()], { spec, isFirst: true }).placements[0]!
    expect(resumed.transferMicroUsd! - fresh.transferMicroUsd!).toBe(microUsd(0.2))
    expect((resumed.durationMs - fresh.durationMs) / 200_000).toBeCloseTo(1, 0)
  })

  it('is counted with the size of the last checkpoint where the job gives none, and with its code', () => {
    const unsized = { ...spec, checkpoint: { everyMs: 30 * MINUTE_MS } }
    const costOf = (changes: Partial<PlanRequest>) =>
      plan([far()], { spec: unsized, isFirst: true, ...changes }).placements[0]!.transferMicroUsd
    const savedBefore = { totalBytes: 10e9, uploadMs: 0, saveMs: 0 }
    expect(costOf({})).toBe(0)
    expect(costOf({ savedBefore })).toBe(microUsd(1))
    expect(costOf({ savedBefore, bundleBytes: 1e9 })).toBe(microUsd(1.02))
    const resumed = (olderBytes: number) =>
      costOf({ isFirst: false, savedBefore: { ...savedBefore, olderBytes } })!
    expect(resumed(10e9) - resumed(0)).toBeGreaterThan(0)
  })

  it('restores after every interruption that is expected', () => {
    const spot = far({ capacityType: 'spot', interruptionsPerHour: 1 })
    const often = plan([spot], { spec: { ...spec, isInterruptible: true } }).placements[0]!
    const { interruptions } = expected(spot, { spec: { ...spec, isInterruptible: true } })
    expect(interruptions).toBeGreaterThan(2)
    // Each restores 10 GB.
    expect(often.transferMicroUsd).toBeCloseTo(microUsd(1 + 0.2 * interruptions), -1)
  })

  it('says the price where the size of checkpoints is not known', () => {
    const unknown = { ...spec, checkpoint: { everyMs: HOUR_MS } }
    const [best] = plan([far()], { spec: unknown }).placements
    expect(best!.transferMicroUsd).toBe(0)
    expect(best!.reasons.join('; ')).toContain(
      'costs $0.02 per GB, not included because their size is unknown',
    )
  })

  it('takes its share of the budget before the machine gets the rest', () => {
    const there = ordered([far()], {}, microUsd(10))
    expect(there.runner.limits.budget?.microUsd).toBe(microUsd(9))
    expect(there.transferMicroUsd).toBe(microUsd(1))
    const here = ordered([near()], {}, microUsd(10))
    expect(here.runner.limits.budget?.microUsd).toBe(microUsd(10))
    expect(here.transferMicroUsd).toBeUndefined()
  })

  it('keeps free what the dearest transfer of an order costs, not that of its first offer', () => {
    const spot = far({ capacityType: 'spot', interruptionsPerHour: 0 })
    const interrupted = { ...spot, place: 'eu-west-1b', interruptionsPerHour: 1 }
    const wish = { spec: { ...spec, isInterruptible: true } }
    const [first, second] = plan([spot, interrupted], wish).placements
    expect(second!.transferMicroUsd).toBeGreaterThan(first!.transferMicroUsd!)
    const order = ordered([spot, interrupted], wish, microUsd(10))
    expect(order.offers).toHaveLength(2)
    expect(order.transferMicroUsd).toBe(second!.transferMicroUsd)
    expect(order.runner.limits.budget?.microUsd).toBe(microUsd(10) - second!.transferMicroUsd!)
  })

  it('has no word about moving data where the store is in the Region of the machine', () => {
    const inputs = [{ source: 's3://else/where', path: 'data' }]
    const [best] = plan([near()], { spec: { ...spec, inputs, outputs: ['results'] } }).placements
    expect(best?.transferMicroUsd).toBeUndefined()
    expect(best!.reasons.join('; ')).not.toMatch(/transfer|a GB|to and from|inputs|artifacts|store/)
  })

  it('is excluded by a budget that its transfer alone uses up', () => {
    const remainingMicroUsd = microUsd(1.001)
    expect(rejection(far(), { spec, remainingMicroUsd, isFirst: false })).toMatchObject({
      reason: expect.stringContaining('after $1.00 for moving its data,'),
    })
    expect(rejection(far(), { spec, remainingMicroUsd: microUsd(2.5), isFirst: true })).toMatchObject({
      reason: expect.stringContaining('and $1.00 for moving its data, cost about $3.20; the budget is $2.50'),
    })
  })
})

describe('an order', () => {
  it('goes to one Region, however alike the offers of another one are', () => {
    const elsewhere = near({ place: 'us-west-2a', region: 'us-west-2' })
    const offers = [near(), near({ place: 'us-east-1b' }), elsewhere]
    const order = ordered(offers)
    expect(order.offers.map(({ place }) => place)).toEqual(['us-east-1a', 'us-east-1b'])
  })
})
