import { beforeEach, describe, expect, it } from '@jest/globals'
import { createBackendOver } from '../../../../backends/ec2'
import type { FleetAnswer, FleetRequest, MachinesApi } from '../../../../backends/ec2/sdk/api'
import { createBuyingApi } from '../../../../backends/ec2/sdk/buying'
import type { Clients } from '../../../../backends/ec2/sdk/index'
import { offerKey } from '../../../../core/offer'
import type { Order } from '../../../../core/job/plan'
import { patiently } from '../../harness'
import { CONFIG, Ec2Harness } from '../harness'
import { BESIDE, poolKey } from '../fake-market'
import { patient } from '../../../support/patience'

describe('a launch on EC2', () => {
  let h: Ec2Harness
  let order: Order
  beforeEach(async () => {
    h = new Ec2Harness()
    order = await h.order()
  })
  const launch = (of = order) => h.backend.launch(of, patiently())
  const requests = (): FleetRequest[] =>
    h.aws.calls.filter(({ name }) => name === 'createFleet').map(({ detail }) => detail as FleetRequest)
  const availabilityOf = async (wanted: Order) => {
    const offers = await h.backend.offers({}, patiently())
    const keys = wanted.offers.map(offerKey)
    return offers.filter((offer) => keys.includes(offerKey(offer))).map(({ availability }) => availability)
  }

  it('is one request for any of the pools, with all that the machine and its finder must know', async () => {
    await launch()
    expect(requests().at(-1)).toMatchObject({
      token: order.token,
      capacityType: 'on-demand',
      pools: [
        { type: 'g5.xlarge', subnet: 'subnet-a' },
        { type: 'g5.xlarge', subnet: 'subnet-b' },
      ],
      tags: {
        'crucible:deployment': 'test',
        'crucible:job': order.jobId,
        'crucible:attempt': order.attemptId,
        'crucible:prices-1': `g5.xlarge@us-east-1a=${1_006_000 + BESIDE} g5.xlarge@us-east-1b=${1_006_000 + BESIDE}`,
        'crucible:beside': String(BESIDE),
      },
    })
    const [template] = h.aws.templates.values()
    expect(template).toMatchObject({
      image: 'ami-0aaaaaaaaaaaaaaaa',
      profile: 'crucible-machine',
      securityGroups: ['sg-1'],
      diskGiB: 100,
    })
    expect(template!.userData).toMatch(/^#!\/bin\/sh\n/)
    expect(template!.userData).not.toContain(order.attemptId)
    expect(Buffer.byteLength(template!.userData)).toBeLessThan(16_000)
  })

  it('repeats the same request unchanged, whatever has changed meanwhile', async () => {
    await launch()
    h.aws.subnets = h.aws.subnets.slice(1)
    h.aws.prices = new Map([...h.aws.prices!].map(([type]) => [type, '99']))
    await h.open().launch(order, patiently())
    const [first, second] = requests().slice(-2)
    expect(second).toEqual(first)
  })

  it('makes one template for all orders of one content, also when another worker was faster', async () => {
    await launch()
    await launch(await h.order())
    h.aws.fail('createFleet', 'InvalidLaunchTemplateName.NotFoundException')
    expect(await launch(await h.order())).toMatchObject({ kind: 'launched' })
    expect(h.aws.templates.size).toBe(1)
    const other = await h.order({ offers: await h.backend.offers({ diskGiB: { min: 400 } }, patiently()) })
    expect(await launch(other)).toMatchObject({ kind: 'launched' })
    expect([...h.aws.templates.values()].map(({ diskGiB }) => diskGiB)).toEqual([100, 500])
  })

  it('takes the pool that has a machine, and says which and at what price', async () => {
    const spot = await h.order({ capacityType: 'spot' })
    h.aws.empty.set(poolKey('spot', 'g5.xlarge', 'subnet-a'), 'InsufficientInstanceCapacity')
    expect(await launch(spot)).toMatchObject({
      kind: 'launched',
      handle: {
        data: { beside: String(BESIDE) },
        realised: { capacityType: 'spot', place: 'us-east-1b', priceMicroUsdPerHour: 402_400 + BESIDE },
      },
    })
  })

  it('marks the pools that had none, for a few minutes', async () => {
    let nowMs = Date.now()
    h = new Ec2Harness({}, { clock: () => nowMs })
    order = await h.order()
    h.aws.empty.set(poolKey('on-demand', 'g5.xlarge', 'subnet-a'), 'InsufficientInstanceCapacity')
    h.aws.empty.set(poolKey('on-demand', 'g5.xlarge', 'subnet-b'), 'Unsupported')
    expect(await launch()).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
    expect(await availabilityOf(order)).toEqual(['unavailable', 'unavailable'])
    nowMs += 4 * 60_000
    expect(await availabilityOf(order)).toEqual(['unknown', 'unavailable'])
  })

  it('is refused for quota where every pool says so, and for capacity where one may yet have a machine', async () => {
    h.aws.empty.set(poolKey('on-demand', 'g5.xlarge', 'subnet-a'), 'VcpuLimitExceeded')
    h.aws.empty.set(poolKey('on-demand', 'g5.xlarge', 'subnet-b'), 'VcpuLimitExceeded')
    expect(await launch()).toMatchObject({
      kind: 'refused',
      failure: { class: 'quota', code: 'VcpuLimitExceeded' },
    })
    const next = await h.order()
    h.aws.empty.set(poolKey('on-demand', 'g5.xlarge', 'subnet-b'), 'InsufficientInstanceCapacity')
    expect(await launch(next)).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
  })

  it('knows at once that a refused order left nothing', async () => {
    await h.fill()
    await launch()
    expect(await h.backend.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
    expect((await h.open().find(order.attemptId, patiently())).kind).toBe('unsettled')
  })

  it('is unconfirmed after a fault of the server', async () => {
    await launch(await h.order())
    h.aws.fail('createFleet', 'InternalError', { httpStatus: 500 })
    expect(await launch()).toMatchObject({ kind: 'unconfirmed' })
  })

  it('keeps the machine of a token that was used for another request', async () => {
    const first = await launch()
    const changed = { ...order, offers: order.offers.slice(1) }
    expect(await launch(changed)).toEqual(first)
    h.aws.fail('createFleet', 'IdempotentParameterMismatch')
    expect(await launch(await h.order())).toMatchObject({ kind: 'refused', failure: { class: 'invalid' } })
  })

  it('says what a machine is before the lists show it', async () => {
    h.aws.staleForMs = 60_000
    h = Object.assign(h, { config: { staleForMs: 600_000 } })
    const backend = h.open()
    const outcome = await backend.launch(order, patiently())
    expect(outcome).toMatchObject({
      kind: 'launched',
      handle: {
        data: { beside: String(BESIDE) },
        realised: { type: 'g5.xlarge', place: 'us-east-1a', priceMicroUsdPerHour: 1_006_000 + BESIDE },
      },
    })
    if (outcome.kind !== 'launched') return
    expect(await backend.observe([outcome.handle], patiently())).toMatchObject([{ state: 'pending' }])
  })

  it('waits for what was only just made, and then believes that it is not there', async () => {
    let nowMs = Date.now()
    h = new Ec2Harness({}, { clock: () => nowMs })
    order = await h.order()
    const missing = () => h.aws.fail('createFleet', 'InvalidGroup.NotFound', { message: 'no group sg-1' })
    missing()
    await expect(launch()).rejects.toMatchObject({ failure: { class: 'transient' } })
    nowMs += 2 * 60_000
    missing()
    expect(await launch()).toMatchObject({ kind: 'refused', failure: { class: 'invalid' } })
  })
})

describe('a fleet whose answer says nothing', () => {
  const SILENT: FleetAnswer = { machines: [], errors: [] }

  /** The fake, with other answers of some calls. */
  async function launchedWith(machines: (h: Ec2Harness) => Partial<MachinesApi>) {
    const h = new Ec2Harness()
    const order = await h.order()
    const api = h.aws.api()
    const backend = createBackendOver({ ...api, machines: { ...api.machines, ...machines(h) } }, CONFIG, {
      ...{ clock: Date.now, runnerUrl: async () => 'data:,' },
    })
    return { h, order, backend, outcome: await backend.launch(order, patiently()) }
  }

  it('is unconfirmed without an id to ask by, and marks no pool', async () => {
    const { order, backend, outcome } = await launchedWith(() => ({ createFleet: async () => SILENT }))
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
    const { order, backend, outcome } = await launchedWith(() => ({
      createFleet: async () => answers.shift()!,
    }))
    expect(outcome).toMatchObject({ kind: 'refused' })
    expect((await backend.find(order.attemptId, patiently())).kind).toBe('absent')
    expect(await backend.launch(order, patiently())).toMatchObject({ kind: 'unconfirmed' })
    expect((await backend.find(order.attemptId, patiently())).kind).toBe('unsettled')
  })

  it('is asked again when it is not on record at once', async () => {
    const asked: string[] = []
    const { h, outcome } = await launchedWith((h) => ({
      createFleet: async () => ({ fleetId: 'fleet-1', ...SILENT }),
      fleet: async (id) => {
        asked.push(id)
        if (asked.length === 1) return undefined
        const tags = { 'crucible:attempt': 'a' }
        const machine = h.aws.add(
          { capacityType: 'on-demand', tags },
          { type: 'g5.xlarge', subnet: 'subnet-a' },
        )
        return { fleetId: id, machines: [{ id: machine.id }], errors: [] }
      },
    }))
    expect(outcome).toMatchObject({ kind: 'launched', handle: { id: [...h.aws.machines.keys()][0] } })
    expect(asked).toEqual(['fleet-1', 'fleet-1'])
  })

  it('is one into a reservation, too, and is not known to have failed', async () => {
    const nothing = { send: async () => ({ Instances: [] }) }
    const api = createBuyingApi({ changing: { ec2: nothing } } as unknown as Clients)
    const request = {
      ...{ token: 't', templateName: 'l', pool: { type: 'g5.xlarge', subnet: 'subnet-a' }, tags: {} },
      ...{ reservation: 'cr-1', isBlock: false },
    }
    await expect(api.runReserved(request, AbortSignal.timeout(patient(5_000)))).rejects.toMatchObject({
      reach: 'unanswered',
    })
  })
})
