import { afterEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../../backends/backend'
import type { Ec2Config } from '../../../../backends/ec2/config'
import type { Ec2Api, MarketApi } from '../../../../backends/ec2/sdk/api'
import type { Offer, Pins } from '../../../../core/offer'
import type { ResourceRequest } from '../../../../core/resources'
import { patiently } from '../../harness'
import { BESIDE, Ec2Harness, DEFAULT_IMAGE, type PaperHarness, type PaperOptions } from '../harness'

const SPOT = [
  { type: 'g5.xlarge', zone: 'us-east-1a', usdPerHour: 0.3018 },
  { type: 'g5.xlarge', zone: 'us-east-1b', usdPerHour: 0.4024 },
]
const T4G = { name: 'T4g', count: 1, memoryMiB: 15_360 }
const V520 = { name: 'Radeon Pro V520', manufacturer: 'AMD', count: 1, memoryMiB: 8_192 }
const OTHER_TYPES = {
  'g5g.xlarge': { vcpus: 4, memoryGiB: 8, usdPerHour: 0.42, architecture: 'arm64', accelerator: T4G },
  'g4ad.xlarge': { vcpus: 4, memoryGiB: 16, usdPerHour: 0.37853, accelerator: V520 },
} as const
const NAMES = ['m7i.xlarge', 'g4dn.xlarge', 'g5.xlarge', 'p4d.24xlarge', 'p4de.24xlarge', 'p5.48xlarge']
/** By pattern: a type that is named is offered whatever it lacks. */
const TYPES = NAMES.map((name) => `${name.slice(0, -1)}*`)

let h: PaperHarness
afterEach(() => h.dispose())
const start = async ({ world = {}, config = {}, ...options }: PaperOptions = {}): Promise<void> => {
  h = await Ec2Harness.onPaper({
    world: { prices: SPOT, types: OTHER_TYPES, reservations: [], ...world },
    config: { types: [...TYPES, 'g5g.*', 'g4ad.xl*', 'trn1.2xl*'], ...config },
    ...options,
  })
  withMarket(() => ({}))
}
/** No server answers for this service. */
const isDown = (service: 'pricing' | 'servicequotas'): void =>
  void h.cloud.addFault({ fault: 'error', code: 'InternalServerError', status: 500, where: { service } })
/** The cloud has no images for ARM machines. */
const ARM = { id: 'ami-0bbbbbbbbbbbbbbbb', architecture: 'arm64', rootDevice: '/dev/sda1', diskGiB: 60 }
const withArm = ({ account, market, ...api }: Ec2Api): Ec2Api => ({
  ...api,
  account: {
    ...account,
    parameter: async (name, signal) => (name.includes('/arm64/') ? ARM.id : account.parameter(name, signal)),
  },
  market: {
    ...market,
    image: async (id, signal) => (id === ARM.id ? ARM : market.image(id, signal)),
  },
})
/** A worker that was started a moment ago. */
const reopened = (
  market: (api: MarketApi) => Partial<MarketApi> = () => ({}),
  changes: Partial<Ec2Config> = {},
): Backend =>
  h.reopenWith((api) => {
    const all = withArm(api)
    return { ...all, market: { ...all.market, ...market(all.market) } }
  }, changes)
const withMarket = (market: (api: MarketApi) => Partial<MarketApi>): void =>
  void Object.assign(h, { backend: reopened(market) })

describe('offers of EC2', () => {
  const offers = (request: ResourceRequest = {}): Promise<Offer[]> => h.backend.offers(request, patiently())
  const typesOf = (found: Offer[]): string[] => [...new Set(found.map(({ type }) => type))]

  it('are of every zone, in both ways of buying, each with its own price', async () => {
    await start()
    const found = (await offers({ accelerators: ['A10G'] })).map(
      ({ capacityType, place, priceMicroUsdPerHour }) => [capacityType, place, priceMicroUsdPerHour],
    )
    expect(found).toEqual([
      ['on-demand', 'us-east-1a', 1_006_000 + BESIDE],
      ['spot', 'us-east-1a', 301_800 + BESIDE],
      ['on-demand', 'us-east-1b', 1_006_000 + BESIDE],
      ['spot', 'us-east-1b', 402_400 + BESIDE],
    ])
  })

  it('count the disk by its size and the Region, and an address only where the machine gets one', async () => {
    const subnets = [
      { zone: 'us-east-1a', egress: 'public' as const, isDefault: true },
      { zone: 'us-east-1b', egress: 'nat' as const, isDefault: true },
    ]
    const zones = ['us-east-1a', 'us-east-1b']
    await start({ world: { regions: { 'us-east-1': { zones, subnets, groups: ['crucible-machine'] } } } })
    withMarket(() => ({
      diskRates: async () => ({ usdPerGiBMonth: 0.16, usdPerMibpsMonth: 0.08, usdPerIopsMonth: 0.01 }),
    }))
    const found = await offers({ accelerators: ['A10G'], diskGiB: { min: 700 } })
    const disk = Math.round((750 * 0.16 * 1e6) / 720)
    expect(found.map(({ besideMicroUsdPerHour: beside }) => beside)).toEqual([
      disk + 5_000,
      disk + 5_000,
      disk,
      disk,
    ])
    const spot = found.find(({ capacityType }) => capacityType === 'spot')!
    expect(spot.priceMaxMicroUsdPerHour).toBe(1_006_000 + disk + 5_000)
  })

  it.each<[string, ResourceRequest, Record<string, [speed?: string, shown?: number]>]>([
    [
      'where its machine has no local disk that is large enough for the job',
      { diskGiB: { min: 6_000 } },
      { 'g5.xlarge': ['500', 500], 'm7i.xlarge': ['250', 250], 'p5.48xlarge': ['1000'] },
    ],
    [
      'less so where local disks hold the job',
      {},
      { 'g5.xlarge': [], 'm7i.xlarge': ['250', 250], 'p5.48xlarge': ['1000'] },
    ],
  ])('have a faster disk, whose price is part of theirs, %s', async (_, request, speeds) => {
    await start()
    const diskLoadMibPerHour = 32 * 1024
    const sizeUsd = (((request.diskGiB?.min ?? 100) - 100) * 0.08) / 720
    for (const [type, [speed, shown]] of Object.entries(speeds)) {
      const offer = (await offers({ ...request, diskLoadMibPerHour })).find((one) => one.type === type)!
      expect(offer.data!['diskMibPerSecond']).toBe(speed)
      expect(offer.shape.diskMibPerSecond).toBe(shown)
      const mib = Number(speed ?? 125)
      const usd = ((mib - 125) * 0.04 + Math.max(0, 4 * mib - 3_000) * 0.005) / 720
      expect(offer.besideMicroUsdPerHour! - BESIDE).toBeCloseTo((usd + sizeUsd) * 1e6, -1)
    }
  })

  it('have the speed of disk that a job sets, on a disk that is large enough for it', async () => {
    await start()
    const ask = async (request: ResourceRequest) =>
      (await offers({ accelerators: ['A10G'], ...request })).find(
        ({ capacityType }) => capacityType === 'spot',
      )!
    const [fast, many] = [await ask({ diskMibPerSecond: 1_500 }), await ask({ diskIops: 80_000 })]
    expect(fast.data).toMatchObject({ diskMibPerSecond: '1500', diskIops: '6000', diskGiB: '100' })
    expect(fast.note).toBe('its disk gets 1500 MiB/s, and this type uses at most 417')
    expect(many.data).toMatchObject({ diskMibPerSecond: '125', diskIops: '80000', diskGiB: '200' })
    expect(many.besideMicroUsdPerHour! - BESIDE).toBe(Math.round(((100 * 0.08 + 77_000 * 0.005) * 1e6) / 720))
  })

  it('count the disk as the catalog has it where the list does not say', async () => {
    await start()
    withMarket(() => ({ diskRates: () => Promise.reject(new Error('down')) }))
    const [offer] = await offers({ accelerators: ['A10G'] })
    expect(offer).toMatchObject({ besideMicroUsdPerHour: BESIDE, priceSource: { kind: 'live' } })
    expect(offer!.note).toMatch(/price of disks has not been read.*us-east-1 on 2026-07-20/)
  })

  it('are not spot where a type or the settings have none', async () => {
    const kinds = (found: Offer[]) => [...new Set(found.map(({ capacityType }) => capacityType))]
    await start()
    withMarket((api) => ({
      types: async (...asked) =>
        (await api.types(...asked)).map((type) => ({
          ...type,
          usageClasses: ['on-demand', 'capacity-block'],
        })),
    }))
    expect(kinds(await offers({ accelerators: ['H100'] }))).toEqual(['on-demand'])
    await h.dispose()
    await start({ config: { hasSpot: false } })
    expect(kinds(await offers())).toEqual(['on-demand'])
    expect(h.backend.capabilities.capacityTypes).toEqual(['on-demand', 'reserved'])
  })

  it('say why a type is never bought to a job that asks for it or its accelerator, and to no other', async () => {
    const isUnusable = ({ availability }: Offer) => availability === 'unusable'
    await start()
    const [found, ...more] = (await offers({ accelerators: ['Radeon Pro V520'] })).filter(isUnusable)
    expect(more).toEqual([])
    expect(found).toMatchObject({ type: 'g4ad.xlarge', note: expect.stringContaining('from AMD') })
    const byName = (await offers({ instanceTypes: ['g4ad.xlarge'] })).filter(isUnusable)
    expect(byName).toEqual([found])
    expect((await offers({ gpus: { min: 1 } })).filter(isUnusable)).toEqual([])
  })

  it('have Trainium and Inferentia only for a job that names them, with the image of Neuron', async () => {
    await start({ config: { types: [...TYPES, 'trn1.*', 'inf2.*'] } })
    const chips = (found: Offer[]) => found.filter(({ type }) => /^(?:trn|inf)/.test(type))
    for (const request of [{}, { gpus: { min: 1 } }, { gpuMemoryGb: { min: 30 } }, { accelerators: ['T4'] }])
      expect(chips(await offers(request))).toEqual([])
    const found = await offers({ accelerators: ['Trainium'] })
    expect(typesOf(found).sort()).toEqual(['trn1.2xlarge', 'trn1.32xlarge'])
    const [gpu] = await offers({ accelerators: ['T4'] })
    expect(Object.keys(found[0]!.pins!)).toEqual(['image/neuron'])
    expect(found[0]).toMatchObject({
      shape: { accelerator: 'Trainium' },
      pins: { 'image/neuron': found[0]!.data!.image },
    })
    expect(found[0]!.data!.image).not.toBe(gpu!.data!.image)
    expect(typesOf(await offers({ accelerators: ['inf2'] }))).toEqual(['inf2.xlarge'])
  })

  it('have machines as the provider describes them, under our names', async () => {
    await start()
    const found = await offers({ accelerators: ['A100', 'A100-80GB'] })
    expect(found.find(({ type }) => type === 'p4d.24xlarge')?.shape).toEqual({
      cpus: 96,
      memoryGiB: 1152,
      diskGiB: 100,
      gpus: 8,
      accelerator: 'A100',
      gpuMemoryGiB: 40,
    })
    expect(found.find(({ type }) => type === 'p4de.24xlarge')?.shape).toMatchObject({
      accelerator: 'A100-80GB',
      gpuMemoryGiB: 80,
    })
  })

  it('leave out what our image cannot drive', async () => {
    await start({ config: { types: [...TYPES, 'g4ad.xl*', 'trn1.2xl*'] } })
    const types = typesOf(await offers())
    expect(types).toContain('g5.xlarge')
    expect(types).not.toContain('trn1.2xlarge')
    expect(types).not.toContain('g4ad.xlarge')
  })

  it('have the image of their architecture and the disk that is asked for', async () => {
    await start()
    const [arm] = (await offers({ accelerators: ['T4g'] })).filter(({ type }) => type === 'g5g.xlarge')
    const [x86] = await offers({ accelerators: ['A10G'] })
    expect([arm?.data?.image, x86?.data?.image]).toEqual([ARM.id, expect.not.stringContaining(ARM.id)])
    const [large] = await offers({ diskGiB: { min: 700 } })
    expect(large).toMatchObject({ shape: { diskGiB: 750 }, data: { diskGiB: '750' } })
  })

  it('come from the catalog, and say so, when the price list cannot be reached', async () => {
    await start()
    isDown('pricing')
    const [offer] = await offers({ accelerators: ['A10G'] })
    expect(offer).toMatchObject({
      priceMicroUsdPerHour: 1_006_000 + BESIDE,
      priceSource: { kind: 'static', observedAtMs: Date.parse('2026-07-20T13:44:30Z') },
      note: expect.stringMatching(/price list has not been read.*us-east-1 on 2026-07-20$/),
    })
    expect(offer!.priceSource.standIn).toBeUndefined()
  })

  it('have live prices even if these take as long as the types', async () => {
    await start()
    let asked = (): void => undefined
    const isAsked = new Promise<void>((resolve) => (asked = resolve))
    withMarket((api) => ({
      types: async (...more) => isAsked.then(() => api.types(...more)),
      onDemandPrices: async (...more) => {
        asked()
        return api.onDemandPrices(...more)
      },
    }))
    expect((await offers({ accelerators: ['A10G'] }))[0]?.priceSource.kind).toBe('live')
  })

  it('are of the same types when the price list cannot be reached', async () => {
    await start({ world: { types: {} } })
    const types = typesOf(await offers())
    isDown('pricing')
    withMarket(() => ({}))
    expect(typesOf(await offers())).toEqual(types)
  })

  it('are priced at most as on demand when spot prices cannot be had', async () => {
    await start()
    h.fail('DescribeSpotPriceHistory', 'UnauthorizedOperation', { status: 403, times: 9 })
    const found = await offers({ accelerators: ['A10G'] })
    const spot = found.filter(({ capacityType }) => capacityType === 'spot')
    expect(spot.map(({ priceMicroUsdPerHour }) => priceMicroUsdPerHour)).toEqual([
      1_006_000 + BESIDE,
      1_006_000 + BESIDE,
    ])
    expect(spot[0]?.note).toMatch(/spot price is unknown[^;]*$/)
    isDown('pricing')
    withMarket(() => ({ spotPrices: () => Promise.reject(new Error('down')) }))
    const [bound] = (await offers({ accelerators: ['A10G'] })).filter((one) => one.capacityType === 'spot')
    expect(bound?.note).toMatch(/spot price is unknown.*; .*price of us-east-1 on 2026-07-20/)
  })

  it('leave out a spot machine with an unknown maximum cost', async () => {
    await start()
    withMarket((api) => ({
      onDemandPrices: async (...asked) =>
        new Map([...(await api.onDemandPrices(...asked))].filter(([type]) => type !== 'g5.xlarge')),
    }))
    expect(typesOf(await offers())).not.toContain('g5.xlarge')
    expect(typesOf(await offers())).toContain('g4dn.xlarge')
    // A job that names the chip learns why.
    const [named, ...others] = (await offers({ accelerators: ['A10G'] })).filter(
      ({ type }) => type === 'g5.xlarge',
    )
    expect(others).toEqual([])
    expect(named).toMatchObject({
      availability: 'unusable',
      note: 'its price on demand is not known',
      priceMicroUsdPerHour: Number.MAX_SAFE_INTEGER,
    })
  })

  it('are all allowed within minutes after the plan of the account is upgraded', async () => {
    await start({ world: { plan: 'free' } })
    const denied = async () => (await offers()).some(({ availability }) => availability === 'no-quota')
    expect(await denied()).toBe(true)
    const api = h.reopenWith((all) => ({ ...all, account: { ...all.account, plan: async () => plan } }))
    let plan: 'free' | 'paid' = 'free'
    Object.assign(h, { backend: api })
    expect(await denied()).toBe(true)
    plan = 'paid'
    expect(await denied()).toBe(true)
    await h.clock.advance(10 * 60_000)
    expect(await denied()).toBe(false)
  })

  it('are without quota where the account may not have even one', async () => {
    await start({ world: { quotas: { 'L-DB2E81BA': 0, 'L-417A185B': 95 } } })
    const found = await offers()
    const barred = found.filter(({ availability }) => availability === 'no-quota')
    expect(new Set(barred.map(({ type, capacityType }) => `${type} ${capacityType}`))).toEqual(
      new Set(
        ['g4dn.xlarge', 'g5.xlarge', 'g5g.xlarge', 'p4d.24xlarge', 'p4de.24xlarge', 'p5.48xlarge'].map(
          (type) => `${type} on-demand`,
        ),
      ),
    )
    // Sizes share the reason only if all are out of reach.
    expect(new Set(barred.map(({ note }) => note))).toEqual(
      new Set([
        'the account may have 0 vCPUs of G and VT on-demand machines (quota L-DB2E81BA)',
        'the account may have 95 vCPUs of P on-demand machines, this takes 96 (quota L-417A185B)',
        'the account may have 95 vCPUs of P on-demand machines, this takes 192 (quota L-417A185B)',
      ]),
    )
  })

  it('are as ever where quotas cannot be read', async () => {
    await start()
    isDown('servicequotas')
    expect((await offers()).filter(({ availability }) => availability === 'no-quota')).toEqual([])
  })

  it('cost few calls, however often they are asked for', async () => {
    await start()
    await offers()
    const actions = ['Types', 'TypeOfferings'].map((what) => `DescribeInstance${what}`)
    actions.push('DescribeSpotPriceHistory', 'DescribeSubnets', 'GetProducts')
    const counts = () => actions.map((action) => h.calls(action).length)
    const before = counts()
    expect(before).not.toContain(0)
    for (let at = 0; at < 5; at++) await offers()
    expect(counts()).toEqual(before)
  })

  it('are refused with the reason if there is no network', async () => {
    const zones = ['us-east-1a', 'us-east-1b']
    await start({ world: { regions: { 'us-east-1': { zones, hasDefaultVpc: false, subnets: [] } } } })
    await expect(offers()).rejects.toMatchObject({
      failure: { class: 'invalid', hint: expect.stringContaining('CRUCIBLE_EC2_SUBNETS') },
    })
  })
})

describe('the image of a job', () => {
  const NEWER = 'ami-0ccccccccccccccc1'
  const imageOf = (arch: string): string => DEFAULT_IMAGE.replace('{arch}', arch)
  /** What a worker says that was started a moment ago. */
  const images = async (pins?: Pins, backend = reopened()): Promise<Record<string, string[]>> => {
    const found = await backend.offers({}, patiently(), pins)
    const of = (type: string): string[] => [
      ...new Set(found.filter((offer) => offer.type === type).map(({ data }) => data!['image']!)),
    ]
    return { gpu: of('g5.xlarge'), cpu: of('m7i.xlarge'), arm: of('g5g.xlarge') }
  }
  const pinsOf = async (type: string): Promise<Pins> =>
    (await reopened().offers({}, patiently())).find((offer) => offer.type === type)!.pins!
  const begin = async (): Promise<Record<string, string[]>> => {
    await start({ config: { image: DEFAULT_IMAGE, types: ['m7i.xl*', 'g5.xl*', 'g5g.*'] } })
    return images()
  }

  it('stays what it was at its first order, whatever its name stands for by now', async () => {
    const before = await begin()
    const pins = await pinsOf('g5.xlarge')
    h.cloud.publishImage({ name: imageOf('x86_64'), image: NEWER })
    expect(await images()).toEqual({ gpu: [NEWER], cpu: [NEWER], arm: before['arm'] })
    expect(await images(pins)).toEqual(before)
  })

  it('is pinned for each architecture separately', async () => {
    const before = await begin()
    const pins = { ...(await pinsOf('g5.xlarge')), ...(await pinsOf('g5g.xlarge')) }
    expect(Object.keys(pins).sort()).toEqual(['image/arm64', 'image/x86_64'])
    h.cloud.publishImage({ name: imageOf('x86_64'), image: NEWER })
    expect(await images(pins)).toEqual(before)
  })

  it('stays though the settings name another one', async () => {
    const before = await begin()
    const pins = await pinsOf('g5.xlarge')
    h.cloud.publishImage({ name: imageOf('x86_64'), image: NEWER })
    expect(await images(pins, reopened(undefined, { image: NEWER }))).toMatchObject({ gpu: before['gpu'] })
  })

  it('is replaced only when it is gone, and then says so', async () => {
    const [old] = (await begin())['gpu']!
    const pins = await pinsOf('g5.xlarge')
    h.cloud.publishImage({ name: imageOf('x86_64'), image: NEWER })
    withMarket((api) => ({ image: async (id, signal) => (id === old ? undefined : api.image(id, signal)) }))
    const found = await h.backend.offers({ accelerators: ['A10G'] }, patiently(), pins)
    expect(found[0]).toMatchObject({
      pins: { 'image/x86_64': NEWER },
      note: `the job's previous image, ${old}, no longer exists; ${NEWER} replaces it`,
    })
  })
})
