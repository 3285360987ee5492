import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../../core/activities'
import type { Capabilities } from '../../../core/capabilities'
import type { JobSpec } from '../../../core/job/job'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import { microUsd } from '../../../core/money/money'
import { offerKey, placeKey, type Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { whyNone } from '../../../planner/plan/explain'
import { makeOrder } from '../../../planner/plan/order'
import { makePlan, outlook } from '../../../planner/plan/plan'
import { speedOf } from '../../../core/speed'
import type { PlanRequest } from '../../../planner/plan/request'
import { NOW_MS, SPEC, expected, offer, answer, request, plan, rejection } from '../wishes'

const types = (offers: Offer[], changes: Partial<PlanRequest> = {}): string[] =>
  plan(offers, changes).placements.map((placement) => placement.offer.type)

describe('what a plan leaves out, and why', () => {
  const spec = (changes: Partial<JobSpec>): Partial<PlanRequest> => ({ spec: { ...SPEC, ...changes } })

  it.each<[string, Offer, Partial<PlanRequest>, string, string]>([
    [
      'too few GPUs',
      offer(),
      spec({ resources: { gpus: { min: 2 } } }),
      'unfit',
      'GPUs: has 1, requested 2+',
    ],
    [
      'too little GPU memory',
      offer(),
      spec({ resources: { gpuMemoryGiB: { min: 40 } } }),
      'unfit',
      'GPU memory: has 22 GiB, wanted 40 GiB+',
    ],
    [
      'more GPU memory than allowed',
      offer(),
      spec({ resources: { gpuMemoryGiB: { max: 16 } } }),
      'unfit',
      'GPU memory: has 22 GiB, wanted ..16 GiB',
    ],
    [
      'another accelerator',
      offer(),
      spec({ resources: { accelerators: ['H100', 'A100'] } }),
      'unfit',
      'accelerator: has L4, requested H100 or A100',
    ],
    [
      'too few cpus',
      offer(),
      spec({ resources: { cpus: { min: 16 } } }),
      'unfit',
      'cpus: has 8, requested 16+',
    ],
    [
      'another backend',
      offer(),
      spec({ backends: [{ backend: 'there' }] }),
      'unfit',
      'the job allows only there',
    ],
    [
      'another capacity type',
      offer(),
      spec({ backends: [{ backend: 'here', capacityType: 'spot' }] }),
      'unfit',
      'the job allows only here:spot',
    ],
    [
      'spot for a job that must not be interrupted',
      offer({ capacityType: 'spot' }),
      spec({ isInterruptible: false }),
      'unfit',
      'it is interruptible, but the job is not marked interruptible',
    ],
    [
      'a migration elsewhere',
      offer(),
      { target: { backend: 'there' } },
      'unfit',
      'the migration requested there',
    ],
    ['an ended reservation', offer({ usableUntilMs: NOW_MS }), {}, 'unfit', 'its reservation has ended'],
    [
      'a reservation that ends before the order goes out',
      offer({ usableUntilMs: NOW_MS + MINUTE_MS }),
      { startsInMs: MINUTE_MS },
      'unfit',
      'its reservation has ended',
    ],
    [
      'a reservation with too little left of it',
      offer({ usableUntilMs: NOW_MS + 3 * MINUTE_MS }),
      {},
      'unfit',
      'its reservation ends in 3m, but the job needs 1m of work, 2m to save and stop, 30s of clock slack',
    ],
    [
      'a deadline too near',
      offer(),
      { deadlineAtMs: NOW_MS + MINUTE_MS },
      'unfit',
      'the deadline leaves no time to save and stop',
    ],
    [
      'a budget too small',
      offer(),
      { remainingMicroUsd: microUsd(0.01) },
      'unfit',
      'the remaining budget of $0.01 only pays for 36s',
    ],
    ['no quota', offer({ availability: 'no-quota' }), {}, 'quota', 'the account has no quota for it'],
    [
      'never bought by its backend',
      offer({ availability: 'unusable', note: 'its chips have no driver' }),
      {},
      'unfit',
      'its chips have no driver',
    ],
    [
      'quota refused before',
      offer(),
      { avoid: [{ offerKey: offerKey(offer()), forMs: HOUR_MS, why: 'quota' }] },
      'quota',
      'refused for missing quota recently; avoided for 1h',
    ],
    ['out of stock', offer({ availability: 'unavailable' }), {}, 'unavailable', 'out of stock'],
    [
      'out of stock with a note',
      offer({ availability: 'unavailable', note: '0 of 2 slots free' }),
      {},
      'unavailable',
      '0 of 2 slots free',
    ],
    [
      'lately out of stock',
      offer(),
      { avoid: [{ offerKey: offerKey(offer()), forMs: MINUTE_MS, why: 'capacity' }] },
      'unavailable',
      'had no capacity recently; avoided for 1m',
    ],
  ])('%s', (_name, one, changes, why, reason) => {
    expect(rejection(one, changes)).toEqual({
      offerKey: offerKey(one),
      why,
      code: expect.any(String),
      reason,
    })
  })

  it('an image where none can be run', () => {
    const { rejections } = makePlan(
      request([], { ...spec({ image: 'pytorch' }), answers: [answer([offer()], { imageRunner: 'none' })] }),
    )
    expect(rejections).toMatchObject([{ why: 'unfit', reason: 'here runs no container images' }])
  })

  it('no offer just because its stock is unknown', () => {
    expect(types([offer({ availability: 'unknown' })])).toEqual(['small'])
  })

  it('knows an accelerator by all its names', () => {
    expect(types([offer()], spec({ resources: { accelerators: ['nvidia l4'] } }))).toEqual(['small'])
  })

  it('asks for one GPU where only its memory was asked for', () => {
    const bare = offer({ shape: { cpus: 8, memoryGiB: 32, gpus: 0 } })
    expect(rejection(bare, spec({ resources: { gpuMemoryGiB: { max: 80 } } }))).toMatchObject({
      reason: 'GPUs: has 0, requested 1+',
    })
  })

  it('tells waiting from want of quota from never', () => {
    const away = offer({ type: 'b', availability: 'unavailable' })
    const noQuota = offer({ type: 'c', availability: 'no-quota' })
    const unfit = offer({ type: 'd', shape: { cpus: 1, memoryGiB: 1, gpus: 0 } })
    const needy = spec({ resources: { gpus: { min: 1 } } })
    expect(outlook(plan([unfit, noQuota, away], needy))).toBe('wait')
    expect(outlook(plan([unfit, noQuota], needy))).toBe('quota')
    expect(outlook(plan([unfit], needy))).toBe('never')
    expect(outlook(plan([]))).toBe('never')
    expect(
      outlook(plan([], { silentBackends: [{ backend: 'here', reason: 'no worker is running for it' }] })),
    ).toBe('wait')
  })

  it('says each reason once, with the offers it is about', () => {
    const many = ['a', 'b', 'c', 'd', 'e'].map((place) => offer({ place, availability: 'unavailable' }))
    expect(whyNone(plan(many))).toBe(
      'here/on-demand/small/a, here/on-demand/small/b, here/on-demand/small/c and 2 more: out of stock',
    )
    expect(whyNone(plan([]))).toBe('no backend has any offer')
  })
})

describe('the ranking', () => {
  const dear = offer({ type: 'dear', priceMicroUsdPerHour: microUsd(3) })
  const cheap = offer({ type: 'cheap', priceMicroUsdPerHour: microUsd(1) })
  const spot = offer({
    type: 'spot',
    capacityType: 'spot',
    priceMicroUsdPerHour: microUsd(0.5),
    interruptionsPerHour: 1,
  })
  const held = offer({
    type: 'held',
    capacityType: 'reserved',
    shape: { cpus: 8, memoryGiB: 32, gpus: 0 },
    reservationId: 'r-1',
    priceMicroUsdPerHour: microUsd(5),
  })
  const four = [dear, cheap, spot, held]
  const by = (optimize: JobSpec['optimize']): Partial<PlanRequest> => ({ spec: { ...SPEC, optimize } })

  it('follows the objective', () => {
    expect(types(four, by('cost'))).toEqual(['spot', 'cheap', 'dear', 'held'])
    expect(types(four, by('time'))).toEqual(['cheap', 'dear', 'held', 'spot'])
    expect(types(four, by('reliability'))).toEqual(['held', 'cheap', 'dear', 'spot'])
  })

  it('weighs a share of cost like the same share of time', () => {
    const gpu = (accelerator: string, usd: number): Offer =>
      offer({
        type: accelerator,
        shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator },
        priceMicroUsdPerHour: microUsd(usd),
      })
    const training = { resources: { gpus: { min: 1 } }, durationMs: 10 * HOUR_MS, durationOn: 'A100' }
    const spec: JobSpec = { ...SPEC, ...training, optimize: 'balanced' }
    const ratio = speedOf('H100', 'A100')!.factor
    // Its hour may cost as much more as the square of its speed.
    const first = (usd: number): string => types([gpu('A100', 1), gpu('H100', usd)], { spec })[0]!
    expect(first(ratio ** 2 * 0.9)).toBe('H100')
    expect(first(ratio ** 2 * 1.1)).toBe('A100')
    expect(types([gpu('A100', 0), gpu('H100', 1)], { spec })[0]).toBe('A100')
  })

  it('is the same whatever the order in which offers came', () => {
    const twins = ['b', 'a', 'c'].map((place) => offer({ place }))
    const places = (offers: Offer[]): string[] =>
      plan(offers).placements.map((placement) => placement.offer.place)
    expect(places(twins)).toEqual(['a', 'b', 'c'])
    expect(places([...twins].reverse())).toEqual(['a', 'b', 'c'])
  })

  it('takes what a migration left only when there is nothing else', () => {
    const avoid = [{ offerKey: offerKey(cheap), forMs: MINUTE_MS, why: 'preference' as const }]
    expect(types([cheap, dear], { avoid })).toEqual(['dear', 'cheap'])
    expect(types([cheap], { avoid })).toEqual(['cheap'])
  })

  it('keeps away from a whole place, as far as there is another', () => {
    const [here, there] = ['a', 'b'].map((place) => offer({ place, type: place }))
    const avoidAt = (why: 'preference' | 'capacity') => [{ offerKey: placeKey(here!), forMs: MINUTE_MS, why }]
    expect(types([here!, there!], { avoid: avoidAt('preference') })).toEqual(['b', 'a'])
    expect(types([here!], { avoid: avoidAt('preference') })).toEqual(['a'])
    expect(types([here!, there!], { avoid: avoidAt('capacity') })).toEqual(['b'])
  })

  describe('after a machine was taken back', () => {
    const spotAt = (place: string, usd: number, changes: Partial<Offer> = {}): Offer =>
      offer({ place, capacityType: 'spot', priceMicroUsdPerHour: microUsd(usd), ...changes })
    const lost = spotAt('lost', 1)
    const avoid = [{ offerKey: offerKey(lost), forMs: MINUTE_MS, why: 'interruption' as const }]
    const places = (offers: Offer[], changes: Partial<PlanRequest> = {}): string[] =>
      plan(offers, { avoid, ...changes }).placements.map((placement) => placement.offer.place)

    it.each(['cost', 'time', 'reliability'] as const)(
      'puts the pool after others of similar cost, whatever is wanted most: %s',
      (optimize) => {
        expect(places([lost, spotAt('b', 1), spotAt('c', 1.1)], by(optimize))).toEqual(['b', 'c', 'lost'])
      },
    )

    it('takes it where it is the only one, or the others cost much more', () => {
      expect(places([lost])).toEqual(['lost'])
      expect(places([lost, spotAt('b', 1.6), offer({ priceMicroUsdPerHour: microUsd(2) })])).toEqual([
        'lost',
        'b',
        'a',
      ])
    })

    it('pays no more than half as much again for another, however seldom the job saves', () => {
      const everyMs = 30 * HOUR_MS
      for (const interruptionsPerHour of [0.001, 0.2, 0.4]) {
        const was = spotAt('lost', 1, { interruptionsPerHour })
        const spec = { ...SPEC, checkpoint: { everyMs } }
        const [calm, shaky] = [false, true].map((isShaky) => expected(was, { spec, isShaky }).costMicroUsd)
        expect(shaky! / calm!).toBeGreaterThan(1)
        expect(shaky! / calm!).toBeLessThanOrEqual(1.5)
      }
    })

    it('counts no less than the provider itself does', () => {
      const often = spotAt('lost', 1, { interruptionsPerHour: 3 })
      expect(expected(often, { isShaky: true })).toEqual(expected(often))
    })

    it('holds nothing against a machine that was not spot: it broke down, and another may', () => {
      const broken = offer({ place: 'broken' })
      const against = [{ ...avoid[0]!, offerKey: offerKey(broken) }]
      const [first] = plan([broken, offer({ place: 'c' })], { avoid: against }).placements
      expect(first).toEqual(plan([broken, offer({ place: 'c' })]).placements[0])
    })

    it("names the owner of the first's place, and the estimate for the other", () => {
      const [first, second] = plan([lost, spotAt('b', 1), spotAt('c', 0.9)], { avoid }).placements
      expect(first?.reasons.join('; ')).not.toContain('skipped')
      const told = plan([lost, spotAt('b', 1)], { avoid }).placements
      expect(told[0]?.reasons.at(-1)).toBe(
        `skipped ${offerKey(lost)}, where this job recently lost a machine`,
      )
      expect(told[1]?.risks.join('; ')).toMatch(/about 1 interruption;.*recently lost a machine there/)
      expect(second?.risks.join('; ')).not.toContain('lately')
    })
  })

  it('counts what interruptions cost: a spot machine taken back often is no bargain', () => {
    const stable = offer({
      capacityType: 'spot',
      priceMicroUsdPerHour: microUsd(0.9),
      interruptionsPerHour: 0.01,
    })
    const shaky = { ...stable, type: 'shaky', interruptionsPerHour: 3 }
    expect(expected(shaky).costMicroUsd).toBeGreaterThan(expected(cheap).costMicroUsd)
    expect(expected(stable).costMicroUsd).toBeLessThan(expected(cheap).costMicroUsd)
    expect(expected(cheap).interruptions).toBe(0)
  })

  it('says how much of a price is not the machine', () => {
    const [placement] = plan([offer({ besideMicroUsdPerHour: microUsd(0.02) })]).placements
    expect(placement?.reasons[0]).toMatch(/^\$1\.00\/h \(with \$0\.02 for disk and address\), about /)
  })

  it('says whether the duration is assumed', () => {
    expect(plan([cheap]).isDurationAssumed).toBe(true)
    expect(plan([cheap], { spec: { ...SPEC, durationMs: HOUR_MS } }).isDurationAssumed).toBe(false)
  })

  it('gives reasons and risks in words', () => {
    const [placement] = plan([spot]).placements
    expect(placement?.reasons.join('; ')).toMatch(
      /\$0\.50\/h, about \$0\.\d\d in .*1x L4 22 GiB, 8 cpus, 32 GiB; cheaper/,
    )
    expect(placement?.risks.join('; ')).toMatch(/interruption.*does not say how often it saves/)
    const chance = (interruptionsPerHour: number): string | undefined =>
      plan([{ ...spot, interruptionsPerHour }]).placements[0]?.risks[0]?.split(';')[0]
    expect([0.001, 0.05, 3].map(chance)).toEqual([
      'less than 1 % chance of an interruption',
      '6 % chance of an interruption',
      expect.stringMatching(/^about \d+ interruptions$/),
    ])
  })

  it('warns of a checkpoint that cannot be saved within a notice, where there may be one', () => {
    const risks = (savedBefore: PlanRequest['savedBefore']): string[] =>
      plan([cheap, spot], savedBefore === undefined ? {} : { savedBefore }).placements.map((placement) =>
        placement.risks.join('; '),
      )
    const words = /takes 2m .* more than the 1m 30s that a notice leaves/
    expect(risks({ totalBytes: 1e9, uploadMs: 2 * MINUTE_MS })).toEqual([
      expect.stringMatching(words),
      expect.not.stringMatching(words),
    ])
    expect(risks({ totalBytes: 1e9, uploadMs: MINUTE_MS })[0]).not.toMatch(words)
    expect(risks(undefined)[0]).not.toMatch(words)
  })
})

describe('an order', () => {
  const input: PlanInput = {
    jobId: 'job-1',
    deployment: 'dep-1',
    recordSeq: 2,
    attempt: 3,
    resolved: {
      spec: { ...SPEC, checkpoint: { everyMs: 60_000, directory: 'ck' }, secrets: ['TOKEN'] },
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
      timing: DEFAULT_TIMING,
      runnerSha256: 'r'.repeat(64),
      storeUrl: 'file:///store',
    },
    bundle: { sha256: 'b', sizeBytes: 10, files: 1 },
    ledger: { ...EMPTY_LEDGER, spentMicroUsd: microUsd(4) },
    avoid: [],
    deadlineAtMs: NOW_MS + HOUR_MS,
    budgetMicroUsd: microUsd(10),
  }
  const order = (offers: Offer[], { avoid = [], ...changes }: Partial<Capabilities & PlanInput> = {}) => {
    const asked = { ...request(offers), answers: [answer(offers, changes)], avoid }
    return makeOrder(makePlan(asked), { ...input, avoid }, asked.answers)
  }

  it('takes along the offers that would do as well, of one capacity type, and stops at the dearest of them', () => {
    const zones = ['a', 'b'].map((place) =>
      offer({ place, capacityType: 'spot', priceMicroUsdPerHour: microUsd(place === 'a' ? 1 : 1.2) }),
    )
    const tooDear = offer({ place: 'c', capacityType: 'spot', priceMicroUsdPerHour: microUsd(2) })
    const made = order([...zones, tooDear, offer({ priceMicroUsdPerHour: microUsd(1.5) })])
    expect(made.offers.map(({ place }) => place)).toEqual(['a', 'b'])
    expect(made.capacityType).toBe('spot')
    expect(made.priceMaxMicroUsdPerHour).toBe(microUsd(1.2))
    // Of ten dollars four are spent.
    expect(made.runner.limits).toEqual({
      seq: 0,
      deadlineAtMs: NOW_MS + HOUR_MS,
      budget: { microUsd: microUsd(6), priceMaxMicroUsdPerHour: microUsd(1.2) },
    })
  })

  it('takes along as many as a history has room for, the best ones', () => {
    const zones = Array.from({ length: 25 }, (_, index) =>
      offer({ place: `zone-${index}`, priceMicroUsdPerHour: microUsd(1) + index }),
    )
    const made = order([...zones].reverse())
    expect(made.offers.map(({ place }) => place)).toEqual(zones.slice(0, 20).map(({ place }) => place))
    expect(made.priceMaxMicroUsdPerHour).toBe(microUsd(1) + 19)
  })

  it('tells the runner everything that the job says of its checkpoints', () => {
    const checkpoint = {
      directory: 'ck',
      everyMs: 60_000,
      quietMs: 9_000,
      keep: 7,
      signal: 'SIGUSR1' as const,
      complete: ['done'],
      include: ['*.pt'],
      exclude: ['*.tmp'],
    }
    const spec = { ...input.resolved.spec, checkpoint }
    const asked = request([offer()])
    const made = makeOrder(
      makePlan(asked),
      { ...input, resolved: { ...input.resolved, spec } },
      asked.answers,
    )
    expect(made.runner.checkpoint).toEqual(checkpoint)
    // What it leaves out has a default, or is left to the runner.
    expect(order([offer()]).runner.checkpoint).toEqual({
      directory: 'ck',
      everyMs: 60_000,
      quietMs: DEFAULT_TIMING.checkpointQuietMs,
      keep: 3,
    })
  })

  it('names the attempt, the same each time it is made', () => {
    const made = order([offer()])
    expect(made).toEqual(order([offer()]))
    expect(made).toMatchObject({
      attemptId: 'job-1-3',
      token: 'job-1-3-dep-1',
      runnerStart: 'with-launch',
      deployment: 'dep-1',
    })
    expect(made.runner).toMatchObject({
      attempt: 3,
      secrets: ['TOKEN'],
      checkpoint: { directory: 'ck', everyMs: 60_000 },
    })
  })

  it('does not take along what is only taken when there is nothing else', () => {
    const [left, other] = ['a', 'b'].map((place) => offer({ place }))
    const avoid = [{ offerKey: placeKey(left!), forMs: MINUTE_MS, why: 'preference' as const }]
    const places = (offers: Offer[]) => order(offers, { avoid }).offers.map(({ place }) => place)
    expect(places([left!, other!])).toEqual(['b'])
    expect(places([left!])).toEqual(['a'])
  })

  it('takes along a pool that lost a machine only where that is the best itself', () => {
    const [lost, near, far, tooDear] = [1, 1, 1.4, 1.6].map((usd, index) =>
      offer({ place: 'abcd'[index]!, capacityType: 'spot', priceMicroUsdPerHour: microUsd(usd) }),
    )
    const avoid = [{ offerKey: offerKey(lost!), forMs: MINUTE_MS, why: 'interruption' as const }]
    const places = (offers: Offer[]) => order(offers, { avoid }).offers.map(({ place }) => place)
    expect(places([lost!, near!, far!])).toEqual(['b', 'c'])
    expect(places([lost!, far!, tooDear!])).toEqual(['a', 'c'])
    expect(places([lost!])).toEqual(['a'])
  })

  it('says where the notice comes from, for machines that can be taken back', () => {
    const notice = { kind: 'instance-metadata' } as const
    const noticeOf = (changes: Partial<Offer>) => order([offer(changes)], { notice }).runner.notice
    expect(noticeOf({ capacityType: 'spot' })).toEqual(notice)
    expect(noticeOf({})).toEqual({ kind: 'none' })
    expect(order([offer({ capacityType: 'spot' })]).runner.notice).toEqual({ kind: 'none' })
  })

  it('never mixes two reservations', () => {
    const held = ['r-1', 'r-2'].map((reservationId) =>
      offer({ capacityType: 'reserved', reservationId, shape: { cpus: 8, memoryGiB: 32, gpus: 0 } }),
    )
    expect(order(held).offers).toHaveLength(1)
  })
})
