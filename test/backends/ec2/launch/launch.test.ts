import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '#small-cloud'
import type { FleetAnswer, MachinesApi } from '../../../../backends/ec2/sdk/api'
import { createBuyingApi } from '../../../../backends/ec2/sdk/buying'
import type { Clients } from '../../../../backends/ec2/sdk/index'
import { offerKey } from '../../../../core/offer'
import type { Order } from '../../../../core/job/plan'
import { HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import { patient } from '../../../support/patience'
import { patiently } from '../../harness'
import { BESIDE, Ec2Harness, type PaperHarness, type PaperOptions } from '../harness'

const PRICES: WorldText['prices'] = [
  { type: 'g5.xlarge', zone: 'us-east-1a', usdPerHour: 0.3018 },
  { type: 'g5.xlarge', zone: 'us-east-1b', usdPerHour: 0.4024 },
]

let h: PaperHarness
let order: Order
const start = async (options: PaperOptions = {}): Promise<void> => {
  h = await Ec2Harness.onPaper(options)
  order = await h.order()
}
afterEach(() => h.dispose())

const launch = (of = order) => h.backend.launch(of, patiently())
/** A pool of on-demand machines has none, with this code. */
const isEmpty = (zone: string, code = 'InsufficientInstanceCapacity') =>
  h.cloud.addFault({ fault: 'fleet-error', code, where: { zone } })

describe('a launch on EC2', () => {
  beforeEach(() => start())
  const availabilityOf = async (wanted: Order) => {
    const offers = await h.backend.offers({}, patiently())
    const keys = wanted.offers.map(offerKey)
    return offers.filter((offer) => keys.includes(offerKey(offer))).map(({ availability }) => availability)
  }

  it('is one request for any of the pools, with all that the machine and its finder must know', async () => {
    await launch()
    const [first, second] = order.offers.map(({ data }) => data!['subnet'])
    expect(h.calls('CreateFleet').at(-1)!.parameters).toMatchObject({
      ClientToken: order.token,
      TargetCapacitySpecification: { DefaultTargetCapacityType: 'on-demand' },
      LaunchTemplateConfigs: {
        1: {
          Overrides: {
            1: { InstanceType: 'g5.xlarge', SubnetId: first },
            2: { InstanceType: 'g5.xlarge', SubnetId: second },
          },
        },
      },
    })
    expect(h.cloud.instances()).toMatchObject([
      {
        tags: {
          'crucible:deployment': 'test',
          'crucible:job': order.jobId,
          'crucible:attempt': order.attemptId,
          'crucible:prices-1': `g5.xlarge@us-east-1a=${1_006_000 + BESIDE} g5.xlarge@us-east-1b=${1_006_000 + BESIDE}`,
          'crucible:beside': String(BESIDE),
        },
      },
    ])
    const { LaunchTemplateData: template } = h.calls('CreateLaunchTemplate')[0]!.parameters as {
      LaunchTemplateData: { UserData: string }
    }
    expect(template).toMatchObject({
      ImageId: order.offers[0]!.data!['image'],
      IamInstanceProfile: { Name: 'crucible-machine' },
      SecurityGroupId: { 1: expect.stringMatching(/^sg-/) },
      BlockDeviceMapping: { 1: { Ebs: { VolumeSize: '100' } } },
    })
    const userData = Buffer.from(template.UserData, 'base64').toString()
    expect(userData).toMatch(/^#!\/bin\/sh\n/)
    expect(userData).not.toContain(order.attemptId)
    expect(Buffer.byteLength(userData)).toBeLessThan(16_000)
  })

  it('gives each pool its own speed of disk, with one template', async () => {
    const offers = (
      await h.backend.offers({ diskGiB: { min: 9_000 }, diskLoadMibPerHour: 100 * 1024 }, patiently())
    ).filter(
      ({ type, place, capacityType }) =>
        /^(?:g5|m7i)\.xlarge$/.test(type) && place === 'us-east-1a' && capacityType === 'on-demand',
    )
    expect(await launch(await h.order({ offers }))).toMatchObject({ kind: 'launched' })
    expect(new Set(offers.map(({ data }) => data!['template'])).size).toBe(1)
    const sent = h.calls('CreateFleet').at(-1)!.parameters as {
      LaunchTemplateConfigs: { 1: { Overrides: Record<string, Record<string, unknown>> } }
    }
    const disk = (Throughput: string, Iops: string): object => ({
      1: {
        DeviceName: '/dev/sda1',
        Ebs: {
          Throughput,
          Iops,
          VolumeSize: '12000',
          VolumeType: 'gp3',
          Encrypted: 'true',
          DeleteOnTermination: 'true',
        },
      },
    })
    expect(
      Object.values(sent.LaunchTemplateConfigs[1].Overrides).map((one) => [
        one['InstanceType'],
        one['BlockDeviceMapping'],
      ]),
    ).toEqual([
      ['g5.xlarge', disk('500', '3000')],
      ['m7i.xlarge', disk('250', '3000')],
    ])
  })

  it('makes one template for all orders of one content, also when another worker was faster', async () => {
    const made = () => h.calls('CreateLaunchTemplate').filter(({ outcome }) => outcome === 'ok')
    await launch()
    await launch(await h.order())
    h.fail('CreateFleet', 'InvalidLaunchTemplateName.NotFoundException')
    expect(await launch(await h.order())).toMatchObject({ kind: 'launched' })
    expect(made()).toHaveLength(1)
    const larger = await h.backend.offers({ diskGiB: { min: 400 } }, patiently())
    const other = await h.order({ offers: larger.filter(({ type }) => type === 'g5.xlarge') })
    expect(await launch(other)).toMatchObject({ kind: 'launched' })
    expect(made().map(({ parameters }) => JSON.stringify(parameters))).toEqual([
      expect.stringContaining('"VolumeSize":"100"'),
      expect.stringContaining('"VolumeSize":"500"'),
    ])
  })

  it('marks the pools that had none, for a few minutes', async () => {
    isEmpty('us-east-1a')
    isEmpty('us-east-1b', 'Unsupported')
    expect(await launch()).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
    expect(await availabilityOf(order)).toEqual(['unavailable', 'unavailable'])
    await h.clock.advance(4 * MINUTE_MS)
    expect(await availabilityOf(order)).toEqual(['unknown', 'unavailable'])
  })

  it('is refused for quota where every pool says so, and for capacity where one may yet have a machine', async () => {
    isEmpty('us-east-1a', 'VcpuLimitExceeded')
    const recover = isEmpty('us-east-1b', 'VcpuLimitExceeded')
    expect(await launch()).toMatchObject({
      kind: 'refused',
      failure: { class: 'quota', code: 'VcpuLimitExceeded' },
    })
    const next = await h.order()
    recover()
    isEmpty('us-east-1b')
    expect(await launch(next)).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
  })

  it('knows at once that a refused order left nothing', async () => {
    h.cloud.addFault({ fault: 'no-capacity' })
    await launch()
    expect(await h.backend.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
    expect((await (await h.reopen()).find(order.attemptId, patiently())).kind).toBe('unsettled')
  })

  it('is unconfirmed after a fault of the server', async () => {
    await launch(await h.order())
    h.fail('CreateFleet', 'InternalError', { status: 500 })
    expect(await launch()).toMatchObject({ kind: 'unconfirmed' })
  })

  it('keeps the machine of a token that was used for another request', async () => {
    const first = await launch()
    const changed = { ...order, offers: order.offers.slice(1) }
    expect(await launch(changed)).toEqual(first)
    h.fail('CreateFleet', 'IdempotentParameterMismatch')
    expect(await launch(await h.order())).toMatchObject({ kind: 'refused', failure: { class: 'invalid' } })
  })

  it('waits for what was only just made, and then believes that it is not there', async () => {
    const missing = () => h.fail('CreateFleet', 'InvalidGroup.NotFound', { message: 'no group sg-1' })
    missing()
    await expect(launch()).rejects.toMatchObject({ failure: { class: 'transient' } })
    await h.clock.advance(2 * MINUTE_MS)
    missing()
    expect(await launch()).toMatchObject({ kind: 'refused', failure: { class: 'invalid' } })
  })
})

describe('a launch in another world', () => {
  it('repeats the same request unchanged, whatever has changed meanwhile', async () => {
    const changes: [string, number][] = [
      ['0s', 1.006],
      ['1h', 99],
    ]
    await start({ world: { prices: [{ type: 'g5.xlarge', capacity: 'on-demand', changes }] } })
    await launch()
    await h.clock.advance(2 * HOUR_MS)
    await (await h.reopen()).launch(order, patiently())
    const [first, second] = h.calls('CreateFleet').slice(-2)
    expect(second!.parameters).toEqual(first!.parameters)
  })

  it('takes the pool that has a machine, and says which and at what price', async () => {
    await start({ world: { prices: PRICES } })
    const spot = await h.order({ capacityType: 'spot' })
    h.cloud.addFault({ fault: 'no-capacity', where: { zone: 'us-east-1a' } })
    expect(await launch(spot)).toMatchObject({
      kind: 'launched',
      handle: {
        data: { beside: String(BESIDE) },
        realised: { capacityType: 'spot', place: 'us-east-1b', priceMicroUsdPerHour: 402_400 + BESIDE },
      },
    })
  })

  it('says what a machine is before the lists show it', async () => {
    await start({ world: { durations: { notFound: '1m' } }, config: { staleForMs: 600_000 } })
    const outcome = await launch()
    expect(outcome).toMatchObject({
      kind: 'launched',
      handle: {
        data: { beside: String(BESIDE) },
        realised: { type: 'g5.xlarge', place: 'us-east-1a', priceMicroUsdPerHour: 1_006_000 + BESIDE },
      },
    })
    if (outcome.kind !== 'launched') return
    expect(await h.backend.observe([outcome.handle], patiently())).toMatchObject([{ state: 'pending' }])
  })
})

describe('a fleet whose answer says nothing', () => {
  const SILENT: FleetAnswer = { machines: [], errors: [] }

  /** The cloud, with other answers of some calls. */
  async function launchedWith(machines: Partial<MachinesApi>) {
    await start()
    const backend = h.reopenWith((api) => ({ ...api, machines: { ...api.machines, ...machines } }))
    return { backend, outcome: await backend.launch(order, patiently()) }
  }

  it('is unconfirmed without an id to ask by, and marks no pool', async () => {
    const { backend, outcome } = await launchedWith({ createFleet: async () => SILENT })
    expect(outcome).toMatchObject({ kind: 'unconfirmed' })
    expect((await backend.find(order.attemptId, patiently())).kind).toBe('unsettled')
    const offers = await backend.offers({}, patiently())
    expect(offers.map(({ availability }) => availability)).not.toContain('unavailable')
  })

  it('may have bought a machine though the same order was refused before', async () => {
    const answers: FleetAnswer[] = [
      { machines: [], errors: [{ code: 'InsufficientInstanceCapacity', message: 'none' }] },
      SILENT,
    ]
    const { backend, outcome } = await launchedWith({ createFleet: async () => answers.shift()! })
    expect(outcome).toMatchObject({ kind: 'refused' })
    expect((await backend.find(order.attemptId, patiently())).kind).toBe('absent')
    expect(await backend.launch(order, patiently())).toMatchObject({ kind: 'unconfirmed' })
    expect((await backend.find(order.attemptId, patiently())).kind).toBe('unsettled')
  })

  it('is asked again when it is not on record at once', async () => {
    const asked: string[] = []
    const { outcome } = await launchedWith({
      createFleet: async () => ({ fleetId: 'fleet-1', ...SILENT }),
      fleet: async (id) => {
        asked.push(id)
        if (asked.length === 1) return undefined
        return { fleetId: id, machines: [{ id: 'i-1' }], errors: [] }
      },
    })
    expect(outcome).toMatchObject({ kind: 'launched', handle: { id: 'i-1' } })
    expect(asked).toEqual(['fleet-1', 'fleet-1'])
  })

  it('is one into a reservation, too, and is not known to have failed', async () => {
    const nothing = { send: async () => ({ Instances: [] }) }
    const api = createBuyingApi({ changing: { ec2: nothing } } as unknown as Clients)
    const request = {
      token: 't',
      templateName: 'l',
      pool: { type: 'g5.xlarge', subnet: 'subnet-a' },
      tags: {},
      reservation: 'cr-1',
      isBlock: false,
    }
    await expect(api.runReserved(request, AbortSignal.timeout(patient(5_000)))).rejects.toMatchObject({
      reach: 'unanswered',
    })
  })
})
