import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../core/money'
import { CAPACITY_TYPES, type Offer } from '../../core/offer'
import { excerptOf, PLACEMENTS_IN_FULL, reportOf } from '../../core/plan'
import { makePlan } from '../../planner/plan'
import { patient } from '../support/patience'
import { NOW_MS, offer, request, SPEC } from './wishes'

const OFFERS = 3_000
const TEMPORAL_BYTES_MAX = 2 * 2 ** 20
const TYPES = ['L4', 'A10G', 'T4', 'V100', 'A100', 'H100']

/** As detailed as an offer of EC2: in several Regions, far from the store, with what its launch needs. */
const detailed = (index: number): Offer =>
  offer({
    ...{ backend: 'ec2', capacityType: CAPACITY_TYPES[index % 2]!, type: `g${index % 40}.12xlarge` },
    ...{ region: `us-east-${index % 9}`, place: `us-east-${index % 9}${index}` },
    shape: {
      ...{ cpus: 48, memoryGiB: 192, gpus: 4, accelerator: TYPES[index % TYPES.length]!, gpuMemoryGiB: 24 },
      diskGiB: 200,
    },
    ...{ priceMicroUsdPerHour: microUsd(1 + (index % 700) / 100), besideMicroUsdPerHour: 12_345 },
    ...{
      billedAtLeastMs: 60_000,
      stillBilled: 'its disk, $0.08 per GB and month',
      interruptionsPerHour: 0.1,
    },
    transfer: {
      ...{ storeRegion: 'us-west-2', upMicroUsdPerGb: 20_000, downMicroUsdPerGb: 20_000 },
      ...{ bytesPerSecond: 1e8, priceSource: { kind: 'live', observedAtMs: NOW_MS } },
    },
    data: { image: 'ami-0123456789abcdef0', subnet: 'subnet-0123456789abcdef0', architecture: 'x86_64' },
    pins: { image: 'ami-0123456789abcdef0' },
  })

const many = Array.from({ length: OFFERS }, (_, index) => detailed(index))
const spec = { ...SPEC, durationMs: 36_000_000, resources: { gpus: { min: 4 } } }

describe(`a plan of ${OFFERS} offers`, () => {
  it('is sent in less than Temporal takes, with every place, and made within 300 ms', () => {
    const tookMs: number[] = []
    let sent = ''
    for (let run = 0; run < 4; run += 1) {
      const fromMs = performance.now()
      sent = JSON.stringify(reportOf(makePlan(request(many, { spec }))))
      tookMs.push(performance.now() - fromMs)
    }
    const { placements, others } = JSON.parse(sent) as ReturnType<typeof reportOf>
    expect(placements.length + others.length).toBe(OFFERS)
    expect(placements).toHaveLength(PLACEMENTS_IN_FULL)
    expect(Buffer.byteLength(sent)).toBeLessThan(TEMPORAL_BYTES_MAX)
    expect(Math.min(...tookMs)).toBeLessThan(patient(300))
  })

  it('is recorded in a fraction of that, and its rejections are grouped', () => {
    const plan = makePlan(request(many, { spec: { ...spec, isInterruptible: false } }))
    const { placements, othersTotal, rejections } = excerptOf(plan)
    expect(placements.length + othersTotal).toBe(OFFERS / 2)
    expect(rejections).toMatchObject([{ count: OFFERS / 2, offerKeys: { length: 3 } }])
    expect(JSON.stringify(excerptOf(plan)).length).toBeLessThan(TEMPORAL_BYTES_MAX / 20)
  })

  it('is sent in less than Temporal takes with far more offers, too: the last are only counted', () => {
    const more = Array.from({ length: 3 * OFFERS }, (_, index) => detailed(index))
    const report = reportOf(makePlan(request(more, { spec })))
    expect(report.placements.length + report.othersTotal).toBe(more.length)
    expect(report.others.length).toBeLessThan(report.othersTotal)
    expect(Buffer.byteLength(JSON.stringify(report))).toBeLessThan(TEMPORAL_BYTES_MAX)
  })
})
