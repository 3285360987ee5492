import { beforeEach, describe, expect, it } from '@jest/globals'
import type { Offer, Pins } from '../../../../core/offer'
import type { ResourceRequest } from '../../../../core/resources'
import { patiently } from '../../harness'
import { IMAGES, SUBNETS } from '../fake-market'
import { BESIDE } from '../harness'
import { FakeHarness } from '../fake-harness'

describe('offers of EC2', () => {
  let h: FakeHarness
  beforeEach(() => {
    h = new FakeHarness()
  })
  const offers = (request: ResourceRequest = {}): Promise<Offer[]> => h.backend.offers(request, patiently())
  const typesOf = (found: Offer[]): string[] => [...new Set(found.map(({ type }) => type))]

  it('are of every zone, in both ways of buying, each with its own price', async () => {
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
    h.aws.subnets = SUBNETS.map((subnet, at) => ({ ...subnet, givesPublicAddress: at === 0 }))
    h.aws.diskUsdPerGiBMonth = '0.16'
    const found = await offers({ accelerators: ['A10G'], diskGiB: { min: 700 } })
    const disk = Math.round((750 * 0.16 * 1e6) / 720)
    expect(found.map(({ besideMicroUsdPerHour: beside }) => beside)).toEqual([
      ...[disk + 5_000, disk + 5_000],
      ...[disk, disk],
    ])
    const spot = found.find(({ capacityType }) => capacityType === 'spot')!
    expect(spot.priceMaxMicroUsdPerHour).toBe(1_006_000 + disk + 5_000)
  })

  it('count the disk as the catalog has it where the list does not say', async () => {
    h.aws.diskUsdPerGiBMonth = undefined
    expect((await offers({ accelerators: ['A10G'] }))[0]?.besideMicroUsdPerHour).toBe(BESIDE)
  })

  it('are not spot where a type or the settings have none', async () => {
    const kinds = (found: Offer[]) => [...new Set(found.map(({ capacityType }) => capacityType))]
    expect(kinds(await offers({ accelerators: ['H100'] }))).toEqual(['on-demand'])
    h = new FakeHarness({ hasSpot: false })
    expect(kinds(await offers())).toEqual(['on-demand'])
    expect(h.backend.capabilities.capacityTypes).toEqual(['on-demand', 'reserved'])
  })

  it('say why a type is never bought to a job that asks for its accelerator, and to no other', async () => {
    const isUnusable = ({ availability }: Offer) => availability === 'unusable'
    h.aws.prices = new Map([...h.aws.prices!, ['g4ad.xlarge', '0.3785300000']])
    const [found, ...more] = (await offers({ accelerators: ['Radeon Pro V520'] })).filter(isUnusable)
    expect(more).toEqual([])
    expect(found).toMatchObject({ type: 'g4ad.xlarge', note: expect.stringContaining('from AMD') })
    expect((await offers({ gpus: { min: 1 } })).filter(isUnusable)).toEqual([])
  })

  it('have machines as the provider describes them, under our names', async () => {
    const found = await offers({ accelerators: ['A100', 'A100-80GB'] })
    expect(found.find(({ type }) => type === 'p4d.24xlarge')?.shape).toEqual({
      ...{ cpus: 96, memoryGiB: 1152, diskGiB: 100 },
      ...{ gpus: 8, accelerator: 'A100', gpuMemoryGiB: 40 },
    })
    expect(found.find(({ type }) => type === 'p4de.24xlarge')?.shape).toMatchObject({
      accelerator: 'A100-80GB',
      gpuMemoryGiB: 80,
    })
  })

  it('leave out what our image cannot drive', async () => {
    const types = typesOf(await offers())
    expect(types).toContain('g5g.xlarge')
    expect(types).not.toContain('trn1.2xlarge')
    expect(types).not.toContain('g4ad.xlarge')
  })

  it('have the image of their architecture and the disk that is asked for', async () => {
    const [arm] = (await offers({ accelerators: ['T4g'] })).filter(({ type }) => type === 'g5g.xlarge')
    expect(arm?.data?.image).toBe('ami-0bbbbbbbbbbbbbbbb')
    const [large] = await offers({ diskGiB: { min: 700 } })
    expect(large).toMatchObject({ shape: { diskGiB: 750 }, data: { diskGiB: '750' } })
  })

  it('come from the catalog, and say so, when the price list cannot be reached', async () => {
    h.aws.prices = undefined
    const [offer] = await offers({ accelerators: ['A10G'] })
    expect(offer).toMatchObject({
      priceMicroUsdPerHour: 1_006_000 + BESIDE,
      priceSource: { kind: 'static', observedAtMs: Date.parse('2026-01-19T13:23:24Z') },
      note: expect.stringMatching(/price list cannot be reached.*us-east-1 on 2026-01-19/),
    })
  })

  it('are of the same types when the price list cannot be reached', async () => {
    const types = typesOf(await offers())
    h = new FakeHarness()
    h.aws.prices = undefined
    expect(typesOf(await offers())).toEqual(types)
  })

  it('are priced at most as on demand when spot prices cannot be had', async () => {
    h.aws.spotPrices = undefined
    const found = await offers({ accelerators: ['A10G'] })
    const spot = found.filter(({ capacityType }) => capacityType === 'spot')
    expect(spot.map(({ priceMicroUsdPerHour }) => priceMicroUsdPerHour)).toEqual([
      1_006_000 + BESIDE,
      1_006_000 + BESIDE,
    ])
    expect(spot[0]?.note).toMatch(/spot price cannot be had/)
  })

  it('leave out a spot machine with an unknown maximum cost', async () => {
    h.aws.prices = new Map([...h.aws.prices!].filter(([type]) => type !== 'g5.xlarge'))
    expect(typesOf(await offers())).not.toContain('g5.xlarge')
    expect(typesOf(await offers())).toContain('g4dn.xlarge')
  })

  it('are all allowed within minutes after the plan of the account is upgraded', async () => {
    let nowMs = Date.now()
    h = new FakeHarness({}, { clock: () => nowMs })
    h.aws.plan = 'free'
    const denied = async () => (await offers()).some(({ availability }) => availability === 'no-quota')
    expect(await denied()).toBe(true)
    h.aws.plan = 'paid'
    expect(await denied()).toBe(true)
    nowMs += 10 * 60_000
    expect(await denied()).toBe(false)
  })

  it('are without quota where the account may not have even one', async () => {
    h.aws.quotas.set('L-DB2E81BA', 0)
    h.aws.quotas.set('L-417A185B', 95)
    const found = await offers()
    const barred = found.filter(({ availability }) => availability === 'no-quota')
    expect(new Set(barred.map(({ type, capacityType }) => `${type} ${capacityType}`))).toEqual(
      new Set(
        ['g4dn.xlarge', 'g5.xlarge', 'g5g.xlarge', 'p4d.24xlarge', 'p4de.24xlarge', 'p5.48xlarge'].map(
          (type) => `${type} on-demand`,
        ),
      ),
    )
    expect(barred[0]?.note).toMatch(
      /0 vCPUs of G and VT on-demand machines, this takes 4 \(quota L-DB2E81BA\)/,
    )
  })

  it('are as ever where quotas cannot be read', async () => {
    for (let at = 0; at < 6; at++) h.aws.fail('quota', 'AccessDeniedException')
    expect((await offers()).filter(({ availability }) => availability === 'no-quota')).toEqual([])
  })

  it('cost few calls, however often they are asked for', async () => {
    for (let at = 0; at < 5; at++) await offers()
    for (const name of ['types', 'typeZones', 'onDemandPrices', 'spotPrices', 'subnets'])
      expect([name, h.aws.countOf(name)]).toEqual([name, 1])
  })

  it('are refused with the reason if there is no network', async () => {
    h.aws.subnets = []
    await expect(offers()).rejects.toMatchObject({
      failure: { class: 'invalid', hint: expect.stringContaining('CRUCIBLE_EC2_SUBNETS') },
    })
  })
})

describe('the image of a job', () => {
  let h: FakeHarness
  const NEWER = IMAGES.map((image) => ({ ...image, id: image.id.replace('ami-0', 'ami-1') }))
  /** What a worker says that was started a moment ago. */
  const images = async (pins?: Pins): Promise<Record<string, string[]>> => {
    const found = await h.open().offers({}, patiently(), pins)
    const of = (type: string): string[] => [
      ...new Set(found.filter((offer) => offer.type === type).map(({ data }) => data!['image']!)),
    ]
    return { gpu: of('g5.xlarge'), cpu: of('m7i.xlarge'), arm: of('g5g.xlarge') }
  }
  const pinsOf = async (type: string): Promise<Pins> =>
    (await h.open().offers({}, patiently())).find((offer) => offer.type === type)!.pins!
  const [X86, ARM] = [IMAGES[0]!.id, IMAGES[1]!.id]
  const [NEWER_X86, NEWER_ARM] = [NEWER[0]!.id, NEWER[1]!.id]

  beforeEach(() => {
    h = new FakeHarness()
  })

  it('stays what it was at its first order, whatever its name stands for by now', async () => {
    const pins = await pinsOf('g5.xlarge')
    h.aws.images = [...NEWER, ...IMAGES]
    expect(await images()).toEqual({ gpu: [NEWER_X86], cpu: [NEWER_X86], arm: [NEWER_ARM] })
    expect(await images(pins)).toEqual({ gpu: [X86], cpu: [X86], arm: [NEWER_ARM] })
  })

  it('is pinned for each architecture separately', async () => {
    const pins = { ...(await pinsOf('g5.xlarge')), ...(await pinsOf('g5g.xlarge')) }
    h.aws.images = [...NEWER, ...IMAGES]
    expect(await images(pins)).toMatchObject({ gpu: [X86], arm: [ARM] })
  })

  it('stays though the settings name another one', async () => {
    const pins = await pinsOf('g5.xlarge')
    h.aws.images = [...NEWER, ...IMAGES]
    h = Object.assign(new FakeHarness({ image: NEWER_X86 }), { aws: h.aws })
    expect(await images(pins)).toMatchObject({ gpu: [X86] })
  })

  it('is replaced only when it is gone, and then says so', async () => {
    const pins = await pinsOf('g5.xlarge')
    h.aws.images = NEWER
    const found = await h.open().offers({ accelerators: ['A10G'] }, patiently(), pins)
    expect(found[0]).toMatchObject({
      pins: { 'image/x86_64': NEWER_X86 },
      note: `the job's previous image, ${X86}, is gone: ${NEWER_X86} takes its place`,
    })
  })
})
