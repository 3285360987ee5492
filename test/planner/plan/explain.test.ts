import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { offerKey } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { risksOf, summaryOf, whyNone } from '../../../planner/plan/explain'
import type { PlanRequest } from '../../../planner/plan/request'
import { storePriceOf } from '../../../storage/store-price'
import { CAPABILITIES, NOW_MS, offer, plan, SPEC } from '../wishes'

const first = (one: Offer, changes: Partial<PlanRequest> = {}) => plan([one], changes).placements[0]!
const reasons = (one: Offer, changes: Partial<PlanRequest> = {}): string[] => first(one, changes).reasons
const risks = (one: Offer, changes: Partial<PlanRequest> = {}): string[] => first(one, changes).risks

describe('the reasons for a placement', () => {
  it('are its price, its shape, how it is bought, its note, and an assumed duration, in this order', () => {
    expect(reasons(offer({ note: 'A note.' }))).toEqual([
      '$1.00/h, about $1.09 in 1h 5m',
      expect.stringMatching(
        /^90 % range: \$0\.\d\d to \$1\.\d\d, \d+m \d\ds to 1h \d+m, mainly from the training time/,
      ),
      '1x L4 22 GiB, 8 cpus, 32 GiB',
      'not interruptible',
      'A note.',
      'the job gives no duration: one hour is assumed',
    ])
    expect(reasons(offer(), { spec: { ...SPEC, durationMs: 2 * HOUR_MS } })).toEqual([
      '$1.00/h, about $2.08 in 2h 4m',
      expect.any(String),
      '1x L4 22 GiB, 8 cpus, 32 GiB',
      'not interruptible',
    ])
  })

  it('do not mention a duration where nothing is paid', () => {
    expect(reasons(offer({ priceMicroUsdPerHour: 0 }))).toEqual([
      'costs nothing',
      expect.stringMatching(/^90 % range: \d+m \d\ds to 1h \d+m, mainly from/),
      expect.any(String),
      'not interruptible',
    ])
  })

  it('name the accelerator that an assumed hour refers to', () => {
    const gpus = { ...SPEC, resources: { gpus: { min: 1 } } }
    expect(reasons(offer(), { spec: gpus }).at(-1)).toBe(
      'the job gives no duration: one hour on the A100 is assumed',
    )
  })

  it('have the cost of the store where the machine costs nothing', () => {
    const storePrice = storePriceOf('s3://jobs')!
    const free = offer({ priceMicroUsdPerHour: 0 })
    expect(reasons(free, { storePrice })[0]).toMatch(
      /^its machine costs nothing, about \$0\.\d+ in 1h \d+m with its store$/,
    )
    const reservation = { free: 1, total: 2, idleMicroUsdPerHour: 0 }
    const bare = { cpus: 8, memoryGiB: 32, gpus: 0 }
    const held = offer({ ...free, capacityType: 'reserved', reservationId: 'r-1', shape: bare, reservation })
    expect(reasons(held, { storePrice })[0]).toMatch(
      /^paid up front, about \$0\.\d+ in 1h \d+m with its store$/,
    )
  })

  it('have the part of the price that is for disk and address', () => {
    expect(reasons(offer({ besideMicroUsdPerHour: microUsd(1) }))[0]).toMatch(
      /^\$1\.00\/h \(with \$1\.00 for disk and address\), about/,
    )
    const shape = { ...offer().shape, diskMibPerSecond: 500 }
    expect(reasons(offer({ shape, besideMicroUsdPerHour: microUsd(1) }))[0]).toMatch(
      /^\$1\.00\/h \(with \$1\.00 for disk \(500 MiB\/s\) and address\), about/,
    )
  })

  it.each([
    [undefined, '$1.80/h'],
    [1.7, '$1.80/h'],
    [1.8, '$1.80/h'],
    [2, '$1.80/h, 10 % discount on $2.00/h'],
    [2.7, '$1.80/h, 33.3 % discount on $2.70/h'],
  ])('have a discount on a list price of %s dollars: %s', (usd, words) => {
    const list = usd === undefined ? {} : { listPriceMicroUsdPerHour: microUsd(usd) }
    const [money] = reasons(offer({ priceMicroUsdPerHour: microUsd(1.8), ...list }))
    expect(money!.slice(0, money!.indexOf(', about'))).toBe(words)
  })

  it('show only the price of a reservation that is not billed while idle', () => {
    const reservation = { free: 1, total: 2, idleMicroUsdPerHour: 0 }
    const bare = { cpus: 8, memoryGiB: 32, gpus: 0 }
    const held = offer({ capacityType: 'reserved', reservationId: 'r-1', shape: bare, reservation })
    expect(reasons(held)).toEqual([
      expect.stringMatching(/^\$1\.00\/h, about \$1\.\d\d in 1h \dm$/),
      expect.any(String),
      '8 cpus, 32 GiB',
      'already reserved, 1 of 2 free',
      expect.any(String),
    ])
  })
})

describe('the risks of a placement', () => {
  it('are none of a machine that is never taken back, with a price of today', () => {
    expect(risks(offer())).toEqual([])
  })

  it('include unknown availability, except for a reservation, whose free places are reported', () => {
    expect(risks(offer({ availability: 'unknown' }))).toEqual(['availability is unknown until launch'])
    const reservation = { free: 1, total: 2, idleMicroUsdPerHour: 0 }
    const bare = { cpus: 8, memoryGiB: 32, gpus: 0 }
    const held = { capacityType: 'reserved', reservationId: 'r-1', shape: bare, reservation } as const
    expect(risks(offer({ availability: 'unknown', ...held }))).toEqual([])
  })

  it('have the age of a price from a table among them, from a day on', () => {
    const aged = (kind: 'static' | 'live', ageMs: number) =>
      risks(offer({ priceSource: { kind, observedAtMs: NOW_MS - ageMs } }))
    expect(aged('static', 24 * HOUR_MS)).toEqual([])
    expect(aged('static', 49 * HOUR_MS)).toEqual(['the price is 2d 1h old'])
    expect(aged('live', 49 * HOUR_MS)).toEqual([])
  })

  it('have a recent interruption there among them only where there was one', () => {
    const spot = offer({ capacityType: 'spot' })
    const avoid = [{ offerKey: offerKey(spot), forMs: MINUTE_MS, why: 'interruption' as const }]
    const lost = 'this job recently lost a machine there, so another interruption is likely'
    expect(risks(spot, { avoid })).toContain(lost)
    expect(risks(spot)).not.toContain(lost)
  })

  it('have a missing checkpoint interval among them only where it is missing', () => {
    const spot = offer({ capacityType: 'spot' })
    const unsaid = 'the job does not say how often it saves'
    expect(risks(spot)).toContain(unsaid)
    expect(risks(spot, { spec: { ...SPEC, checkpoint: { everyMs: MINUTE_MS } } })).not.toContain(unsaid)
  })

  it.each([
    [1.5, []],
    [0.5, [expect.stringMatching(/^the sign-in of its worker ends by 2026-.*before the job does/)]],
  ])('tell only of a sign-in that ends before the job does: after %d h', (hours, told) => {
    const found = risks(offer({ signedInUntilMs: NOW_MS + hours * HOUR_MS }), {
      spec: { ...SPEC, durationMs: HOUR_MS },
    })
    expect(found.filter((risk) => risk.includes('sign-in'))).toEqual(told)
  })

  it.each([
    [0.0099, 'less than 1 % chance of an interruption'],
    [0.01, '1 % chance of an interruption'],
    [0.949, '95 % chance of an interruption'],
    [0.95, 'about 1 interruption'],
    [1.499, 'about 1 interruption'],
    [1.5, 'about 2 interruptions'],
  ])('tell %d expected interruptions as "%s"', (interruptions, words) => {
    const [risk] = risksOf(offer({ capacityType: 'spot' }), SPEC, {
      isShaky: false,
      nowMs: NOW_MS,
      capabilities: CAPABILITIES,
      hasBudget: false,
      expected: {
        interruptions,
        durationMs: HOUR_MS,
        work: { ms: HOUR_MS, fastMs: HOUR_MS, slowMs: HOUR_MS },
      },
    })
    expect(risk).toBe(`${words}; work since the last checkpoint is repeated`)
  })

  it('have the login of an image among them if the provider that runs it has its own', () => {
    const of = (imageRunner: 'provider' | 'runner', spec = SPEC) =>
      risksOf(offer(), spec, {
        isShaky: false,
        nowMs: NOW_MS,
        hasBudget: false,
        capabilities: { ...CAPABILITIES, imageRunner },
        expected: {
          interruptions: 0,
          durationMs: HOUR_MS,
          work: { ms: HOUR_MS, fastMs: HOUR_MS, slowMs: HOUR_MS },
        },
      })
    const withLogin = { ...SPEC, imageLogin: {} } as typeof SPEC
    expect(of('provider', withLogin)).toEqual([expect.stringMatching(/its own registry login/)])
    expect(of('provider')).toEqual([])
    expect(of('runner', withLogin)).toEqual([])
  })

  it.each([
    [0.001, /^less than 1 % chance of an interruption; work since the last checkpoint is repeated$/],
    [0.1, /^1\d % chance of an interruption;/],
    [1, /^about 1 interruption;/],
    [3, /^about \d interruptions;/],
  ])('tell %d interruptions per hour as %s', (interruptionsPerHour, words) => {
    const [risk] = risks(offer({ capacityType: 'spot', interruptionsPerHour }))
    expect(risk).toMatch(words)
  })
})

describe('a plan in words', () => {
  it('names type, place and price of a placement, and leaves out an unknown place', () => {
    expect(summaryOf(first(offer()))).toBe('here on-demand, small in a, $1.00/h')
    expect(summaryOf(first(offer({ place: '', priceMicroUsdPerHour: microUsd(0) })))).toBe(
      'here on-demand, small, free',
    )
  })

  it('without a placement gives the reasons of offers and of backends that did not answer', () => {
    const silentBackends = [{ backend: 'there', reason: 'no worker is running for it' }]
    const none = plan([offer({ availability: 'unavailable' })], { silentBackends })
    expect(whyNone(none)).toBe('here/on-demand/small/a: out of stock; there: no worker is running for it')
    expect(whyNone(plan([], { silentBackends }))).toBe('there: no worker is running for it')
    expect(whyNone(plan([]))).toBe('no backend has any offer')
  })
})
