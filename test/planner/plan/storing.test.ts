import { describe, expect, it } from '@jest/globals'
import type { JobSpec } from '../../../core/job/job'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { explainOffer } from '../../../planner/plan/explain-offer'
import { makePlan } from '../../../planner/plan/plan'
import type { PlanRequest } from '../../../planner/plan/request'
import { storingFor } from '../../../planner/plan/storing'
import { storePriceOf } from '../../../storage/store-price'
import { offer, request, SPEC } from '../wishes'

const S3 = storePriceOf('s3://jobs')!
const tenHours: JobSpec = { ...SPEC, durationMs: 10 * HOUR_MS }
const saving = (sizeBytes: number): JobSpec => ({
  ...tenHours,
  checkpoint: { directory: 'checkpoints', everyMs: HOUR_MS, sizeBytes },
})

interface Asked extends Partial<PlanRequest> {
  offers?: Offer[]
}

function planned({ offers = [offer()], ...changes }: Asked) {
  const asked = request(offers, { spec: tenHours, isFirst: true, ...changes })
  const plan = makePlan(asked)
  return { plan, best: plan.placements[0], explained: explainOffer('small', plan, asked)! }
}

const lineOf = ({ explained }: ReturnType<typeof planned>) =>
  explained.arithmetic.find(({ part }) => part === 'store')

describe('the charges of a store in S3', () => {
  it('are those of its requests, counted by hand for an hour of beats', () => {
    const storing = storingFor(request([offer()], { spec: tenHours, storePrice: S3 }), Infinity)
    // A beat every 5 s: 720 an hour, with 3 writes at $5 and 3 reads at $0.40 per million.
    expect(DEFAULT_TIMING.beatMs).toBe(5_000)
    expect(storing).toEqual({
      onceMicroUsd: 0,
      perMachineMicroUsd: 0,
      perHourMicroUsd: expect.closeTo(2_160 * 5 + 2_160 * 0.4),
    })
  })

  it('are those of keeping and saving its checkpoints', () => {
    const asked = request([offer()], { spec: saving(100e9), storePrice: S3 })
    const bare = storingFor({ ...asked, spec: saving(0) }, HOUR_MS)!
    const storing = storingFor(asked, HOUR_MS)!
    // 100 GB in parts of 16 MiB are 5,961 requests; ten writes and eight reads more for each checkpoint.
    const saved = 5_971 * 5 + 8 * 0.4
    expect(storing.onceMicroUsd).toBeCloseTo(saved)
    expect(storing.perMachineMicroUsd).toBeCloseTo(5_961 * 0.4)
    // Three of them at $0.023 per 2^30 bytes and month of 730 hours.
    const kept = ((300e9 / 2 ** 30) * 23_000) / 730
    expect(storing.perHourMicroUsd - bare.perHourMicroUsd).toBeCloseTo(kept + saved)
    const six = { ...asked.spec, checkpoint: { ...asked.spec.checkpoint, keep: 6 } }
    const more = storingFor({ ...asked, spec: six }, HOUR_MS)!
    expect(more.perHourMicroUsd - storing.perHourMicroUsd).toBeCloseTo(kept)
  })

  it('are a part of the cost, with their arithmetic, and the parts sum to it', () => {
    const before = planned({})
    const now = planned({ storePrice: S3, spec: tenHours })
    const added = now.best!.costMicroUsd - before.best!.costMicroUsd
    // The median of all grows a little more than its middle, because the charges can double.
    expect(added / 1e6).toBeGreaterThan(0.1)
    expect(added / 1e6).toBeLessThan(0.2)
    expect(lineOf(now)!.addedMicroUsd / 1e6).toBeCloseTo(0.117, 2)
    expect(lineOf(before)).toBeUndefined()
    expect(lineOf(now)).toMatchObject({
      words: 'storage and requests',
      addedMs: 0,
      source:
        'without its checkpoints, whose size is unknown; about 2160 writes and 2160 reads an hour at $0.005 and $0.0004 per 1,000; S3 Standard in us-east-1, 2025-10-28',
    })
    const sum = now.explained.arithmetic.reduce((total, { addedMicroUsd }) => total + addedMicroUsd, 0)
    expect(sum).toBe(now.best!.costMicroUsd)
    expect(now.best!.durationMs).toBe(before.best!.durationMs)
  })

  it('names the checkpoints that are kept, or that their size is unknown', () => {
    expect(lineOf(planned({ storePrice: S3, spec: saving(10e9) }))!.source).toMatch(
      /^3 checkpoints of 10 GB at \$0\.023 per GB-month; about/,
    )
    const unsized = { ...tenHours, checkpoint: { directory: 'checkpoints' } }
    expect(lineOf(planned({ storePrice: S3, spec: unsized }))!.source).toMatch(
      /^without its checkpoints, whose size is unknown; about/,
    )
  })

  it('are among the drivers only where they matter', () => {
    const cheap = offer({ priceMicroUsdPerHour: microUsd(0.05) })
    const dear = offer({ priceMicroUsdPerHour: microUsd(3) })
    const driversAt = (one: Offer): string[] =>
      planned({ offers: [one], storePrice: S3, spec: saving(100e9) }).best!.forecast.drivers.cost
    expect(driversAt(cheap)).toContain('store')
    expect(driversAt(dear)).not.toContain('store')
  })

  it('are not covered by a budget', () => {
    const { best } = planned({})
    // Enough for the machine, its reserve to stop and nothing else.
    const remainingMicroUsd = best!.costMicroUsd + microUsd(0.05)
    const spec = tenHours
    const before = planned({ remainingMicroUsd, spec })
    const now = planned({ remainingMicroUsd, spec, storePrice: S3 })
    expect(now.best!.costMicroUsd).toBeGreaterThan(remainingMicroUsd)
    expect(now.best!.forecast.chances).toEqual(before.best!.forecast.chances)
    const refused = (more: Partial<PlanRequest>) =>
      planned({ remainingMicroUsd: microUsd(0.5), spec, ...more }).plan.rejections
    expect(refused({ storePrice: S3 })).toEqual(refused({}))
    expect(refused({})).toMatchObject([{ code: 'budget' }])
  })

  it('are the cost of a machine that is free', () => {
    const { best } = planned({ offers: [offer({ priceMicroUsdPerHour: 0 })], storePrice: S3 })
    expect(best!.reasons[0]).toMatch(/^its machine costs nothing, about \$0\.1\d in 10h .*with its store$/)
    expect(planned({ offers: [offer({ priceMicroUsdPerHour: 0 })] }).best!.reasons[0]).toBe('costs nothing')
  })
})

describe('the charges of another store', () => {
  it('are not included where its prices are unknown, and the arithmetic says so', () => {
    const now = planned({ storePrice: 'unknown' })
    expect(now.best).toEqual(planned({}).best)
    expect(lineOf(now)).toMatchObject({
      addedMs: 0,
      addedMicroUsd: 0,
      source: 'not included: the prices of its store are unknown',
    })
  })

  it.each([
    ['file:///srv/crucible', undefined],
    ['s3://jobs?endpoint=https://minio.example:9000', 'unknown'],
    ['s3://jobs/dev?region=eu-west-1', S3],
  ])('at %s are %j', (url, price) => {
    expect(storePriceOf(url)).toEqual(price)
  })
})
