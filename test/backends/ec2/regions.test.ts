/** Several Regions of one account as one backend, over the wire. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { EC2Client, RunInstancesCommand } from '@aws-sdk/client-ec2'
import type { Backend } from '../../../backends/backend'
import type { Ec2Config } from '../../../backends/ec2/config'
import type { Ec2Deps } from '../../../backends/ec2/host'
import type { MachineHandle } from '../../../core/handle'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import type { WorldText } from '#small-cloud'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { issueOrder, makeOrder } from '../orders'
import { Ec2Harness } from './harness'

const [EAST, WEST] = ['us-east-1', 'us-west-2']
const ROLE = 'crucible-machine'
const zoned = (region: string) => ({ zones: [`${region}a`], groups: [ROLE] })
const TWO: WorldText = { regions: { [EAST]: zoned(EAST), [WEST]: zoned(WEST) }, reservations: [] }
const regionOf = ({ place }: Pick<Offer, 'place'>): string => place.slice(0, -1)

let h: Ec2Harness
afterEach(() => h.dispose())

const make = (world: WorldText = {}, config: Partial<Ec2Config> = {}): Promise<Ec2Harness> =>
  Ec2Harness.make({ ...TWO, ...world }, { regions: [EAST, WEST], ...config })

async function ordered(backend: Backend, region: string, over: Partial<Order> = {}): Promise<Order> {
  const offers = (await backend.offers({}, patiently())).filter(
    (offer) => regionOf(offer) === region && offer.capacityType === 'on-demand' && offer.type === 'g5.xlarge',
  )
  const order = makeOrder({
    store: h.store,
    offers,
    deployment: 'test',
    runnerStart: 'after-launch',
    ...over,
  })
  await issueOrder(h.store, order, Date.now())
  return order
}

async function launched(backend: Backend, order: Order): Promise<MachineHandle> {
  const outcome = await backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  return outcome.handle
}

/** Whom each call of one action went to. */
const askedOf = (action: string): string[] => [
  ...new Set(h.cloud.journal.calls({ action }).map(({ region }) => region)),
]

const down = (region: string, code = 'InternalError', status = 500): void =>
  void h.cloud.addFault({ fault: 'error', code, status, where: { service: 'ec2', region } })

describe('offers of several Regions', () => {
  it('come from each of them, with its prices and its images', async () => {
    h = await make({ prices: [{ region: WEST, type: 'g5.xlarge', capacity: 'on-demand', usdPerHour: 7 }] })
    const offers = await h.backend.offers({}, patiently())
    const priceIn = (region: string) =>
      offers.find(
        (one) => one.region === region && one.capacityType === 'on-demand' && one.type === 'g5.xlarge',
      )!
    expect(priceIn(WEST).priceMicroUsdPerHour).toBeGreaterThan(7e6)
    expect(priceIn(EAST).priceMicroUsdPerHour).toBeLessThan(2e6)
    expect(priceIn(EAST).data!['image']).not.toBe(priceIn(WEST).data!['image'])
    expect(priceIn(EAST).pins).toEqual({ [`image/x86_64@${EAST}`]: priceIn(EAST).data!['image'] })
  })

  it('keep to the image that the job has in that Region', async () => {
    h = await make()
    const before = await h.backend.offers({}, patiently())
    const pins = Object.assign({}, ...before.map(({ pins: each }) => each)) as Record<string, string>
    const after = await h.backend.offers({}, patiently(), pins)
    expect(after.map(({ data }) => data!['image'])).toEqual(before.map(({ data }) => data!['image']))
    expect(after.filter(({ note = '' }) => note.includes('is gone'))).toEqual([])
  })

  it.each([
    ['is down', 'InternalError', 500, /InternalError|error/i],
    ['is throttled', 'RequestLimitExceeded', 503, /limit/i],
    ['is denied by a policy', 'UnauthorizedOperation', 403, /UnauthorizedOperation|authorized/i],
  ])('continue without a Region that %s, and report it', async (_name, code, status, words) => {
    h = await make()
    down(WEST, code, status)
    const silent: [string, string][] = []
    const unseen = (place: string, error: unknown) => void silent.push([place, (error as Error).message])
    const offers = await h.backend.offers({}, { ...patiently(), unseen })
    expect(new Set(offers.map(regionOf))).toEqual(new Set([EAST]))
    expect(silent).toEqual([[WEST, expect.stringMatching(words)]])
    down(EAST, code, status)
    const backend = await h.reopen()
    await expect(backend.offers({}, { ...patiently(), unseen })).rejects.toThrow()
  })

  it('follow the quotas of each Region', async () => {
    const g = { 'L-DB2E81BA': 0 }
    h = await make({ regions: { [EAST]: { ...zoned(EAST), quotas: g }, [WEST]: zoned(WEST) } })
    const offers = (await h.backend.offers({}, patiently())).filter(
      ({ type, capacityType }) => type === 'g5.xlarge' && capacityType === 'on-demand',
    )
    expect(offers.map((one) => [regionOf(one), one.availability])).toEqual([
      [EAST, 'no-quota'],
      [WEST, 'unknown'],
    ])
  })

  const IN_EAST: Partial<Ec2Deps> = { storeUrl: `s3://jobs?region=${EAST}&endpoint=http://127.0.0.1:1` }

  it('say what data to and from a store in another Region costs, each way', async () => {
    h = await make({ transfers: [{ from: WEST, usdPerGb: 0.07 }] })
    const backend = await h.reopen({}, IN_EAST)
    const offers = await backend.offers({}, patiently())
    expect(
      offers.filter(({ region }) => region === EAST).every(({ transfer }) => transfer === undefined),
    ).toBe(true)
    const [there] = offers.filter(({ region }) => region === WEST)
    expect(there!.transfer).toMatchObject({
      storeRegion: EAST,
      upMicroUsdPerGb: 70_000,
      downMicroUsdPerGb: 20_000,
      priceSource: { kind: 'live' },
    })
    const asked = h.cloud.journal.calls({ action: 'GetProducts' }).length
    await backend.offers({}, patiently())
    expect(h.cloud.journal.calls({ action: 'GetProducts' })).toHaveLength(asked)
  })

  it('assume the usual price of that where the price list cannot be reached', async () => {
    h = await make({ transfers: [{ from: WEST, usdPerGb: 0.07 }] })
    h.cloud.addFault({ fault: 'error', code: 'AccessDeniedException', where: { service: 'pricing' } })
    const offers = await (await h.reopen({}, IN_EAST)).offers({}, patiently())
    const [there] = offers.filter(({ region }) => region === WEST)
    expect(there!.transfer).toMatchObject({ upMicroUsdPerGb: 20_000, priceSource: { kind: 'static' } })
  })

  it('tell the price of another Region that stands in for their own', async () => {
    h = await make()
    h.cloud.addFault({ fault: 'error', code: 'AccessDeniedException', where: { service: 'pricing' } })
    const offers = await (await h.reopen({}, IN_EAST)).offers({}, patiently())
    const [here, there] = [EAST, WEST].map((region) => offers.find((one) => one.region === region)!)
    expect(here!.priceSource.standIn).toBeUndefined()
    expect(there!.priceSource).toMatchObject({ kind: 'static', standIn: EAST })
    expect(there!.note).toContain(`price of ${EAST} on 2026-07-20, not of ${WEST}`)
  })

  it('of one Region carry none of that', async () => {
    h = await make({}, { regions: [EAST] })
    const offers = await h.backend.offers({}, patiently())
    expect(offers.some((one) => 'region' in one || 'transfer' in one)).toBe(false)
    expect(offers[0]!.pins).toEqual({ 'image/x86_64': offers[0]!.data!['image'] })
    expect(askedOf('DescribeInstanceTypes')).toEqual([EAST])
  })
})

describe('a machine of a Region', () => {
  it('is bought, found, seen, started and ended there', async () => {
    h = await make()
    const order = await ordered(h.backend, WEST)
    const handle = await launched(h.backend, order)
    expect(handle.realised.place).toBe(`${WEST}a`)
    expect(h.backend.placeOf!(handle)).toBe(WEST)
    expect(askedOf('CreateFleet')).toEqual([WEST])
    const found = await h.backend.find(order.attemptId, patiently())
    expect(found).toMatchObject({ kind: 'found', handles: [{ id: handle.id }] })
    await until(async () => (await h.backend.observe([handle], patiently()))[0]!.state === 'running')
    await h.backend.terminate(handle, patiently())
    expect(askedOf('TerminateInstances')).toEqual([WEST])
    await until(async () => (await h.backend.observe([handle], patiently()))[0]!.state === 'gone')
  })

  it('is looked for where its order went, though another Region is down', async () => {
    h = await make()
    const order = await ordered(h.backend, WEST)
    await launched(h.backend, order)
    down(EAST)
    await expect(h.backend.find(order.attemptId, patiently())).rejects.toThrow()
    const within = order.offers.map(({ place }) => place)
    expect(await h.backend.find(order.attemptId, { ...patiently(), within })).toMatchObject({ kind: 'found' })
  })

  it('stays reachable when its Region is taken out of the settings', async () => {
    h = await make()
    const handle = await launched(h.backend, await ordered(h.backend, WEST))
    const backend = await h.reopen({ regions: [EAST] })
    await until(async () => (await backend.observe([handle], patiently()))[0]!.state === 'running')
    await backend.terminate(handle, patiently())
    await until(() => h.cloud.instances().every(({ state }) => state === 'terminated'))
  })

  it('is listed where it was left, with a handle that leads to its end', async () => {
    h = await make()
    const { id } = await launched(h.backend, await ordered(h.backend, WEST))
    const backend = await h.reopen({ regions: [EAST] })
    expect(await backend.list('test', patiently())).toEqual([])
    const [left, ...others] = await backend.list('test', { ...patiently(), alsoAt: [WEST] })
    expect(others).toEqual([])
    expect(left).toMatchObject({ handle: { id, data: { region: WEST } }, place: `${WEST}a` })
    const [template] = await backend.leftovers!('test', { ...patiently(), alsoAt: [WEST] })
    expect(template).toMatchObject({ handle: { kind: 'template', data: { region: WEST } } })
    await backend.terminate(left!.handle, patiently())
    await backend.terminate(template!.handle, patiently())
    await until(() => h.cloud.instances().every(({ state }) => state === 'terminated'))
    expect(h.cloud.account().regions[WEST]!['launch-template'] ?? []).toEqual([])
  })
})

describe('the check of several Regions', () => {
  it('says what one of them lacks, and where', async () => {
    h = await make({ regions: { [EAST]: zoned(EAST), [WEST]: { ...zoned(WEST), groups: [] } } })
    const problems = await h.backend.check(patiently())
    const own = problems.filter(({ message }) => /security group/.test(message))
    expect(own).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringMatching(/^in us-west-2: the network .* has no security group/),
      }),
    ])
    expect(problems.filter(({ message }) => message.includes(`in ${EAST}`))).toEqual([])
  })

  it('says once what all of them lack', async () => {
    h = await make({ roles: {} })
    const problems = await h.backend.check(patiently())
    const profile = problems.filter(({ message }) => /instance profile/.test(message))
    expect(profile).toEqual([
      expect.objectContaining({
        severity: 'error',
        message: 'there is no instance profile named crucible-machine',
      }),
    ])
  })

  it('says of a Region that the account has not enabled how to enable it', async () => {
    const far = 'ap-east-1'
    h = await make(
      { regions: { [EAST]: zoned(EAST), [far]: { ...zoned(far), isEnabled: false } } },
      { regions: [EAST, far] },
    )
    const problems = await h.backend.check(patiently())
    expect(problems.filter(({ message }) => message.includes(far))).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringMatching(/^in ap-east-1: /),
        remedy: expect.stringContaining('aws account enable-region --region-name ap-east-1'),
      }),
    ])
  })
})

describe('the small cloud with several Regions', () => {
  it('knows an id in its own Region only', async () => {
    h = await make()
    const { id } = await launched(h.backend, await ordered(h.backend, WEST))
    const client = new EC2Client({ region: EAST, endpoint: h.cloud.endpoint })
    const { TerminateInstancesCommand } = await import('@aws-sdk/client-ec2')
    await expect(client.send(new TerminateInstancesCommand({ InstanceIds: [id] }))).rejects.toMatchObject({
      name: 'InvalidInstanceID.NotFound',
    })
    client.destroy()
  })

  it('counts a client token in each Region', async () => {
    h = await make()
    const wish = { MinCount: 1, MaxCount: 1, InstanceType: 'm7i.large', ClientToken: 'same' } as const
    const ids = []
    for (const region of [EAST, WEST]) {
      const client = new EC2Client({ region, endpoint: h.cloud.endpoint })
      const offer = (await h.backend.offers({}, patiently())).find((one) => one.region === region)!
      const { Instances } = await client.send(
        new RunInstancesCommand({ ...wish, ImageId: offer.data!['image']! }),
      )
      ids.push(Instances![0]!.InstanceId)
      client.destroy()
    }
    expect(new Set(ids).size).toBe(2)
  })
})
