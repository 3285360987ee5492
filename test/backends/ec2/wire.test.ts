import {
  CancelCapacityReservationCommand,
  DescribeVolumesCommand,
  EC2Client,
  StartInstancesCommand,
  StopInstancesCommand,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import { createSdkApi } from '../../../backends/ec2/sdk/index'
import type { Drain } from '../../../core/documents'
import type { BackendError } from '../../../backends/errors'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { patient } from '../../support/patience'
import { until } from '../../support/until'
import { patiently, settled } from '../harness'
import { DURATIONS, Ec2Harness } from './harness'

describe('over the wire', () => {
  let h: Ec2Harness
  afterEach(() => h.dispose())
  const launched = (order: Order): Promise<MachineHandle> => h.launched(order)
  const look = async (handle: MachineHandle) => (await h.backend.observe([handle], patiently()))[0]!
  const started = (handle: MachineHandle, order: Order) =>
    until(async () => (await settled(h.backend.start!(handle, order, patiently()))) === 'answer')

  it('a spot machine is bought as such, and seen to be taken back', async () => {
    h = await Ec2Harness.make()
    const order = await h.order({ capacityType: 'spot' })
    const handle = await launched(order)
    expect(handle.realised).toMatchObject({ capacityType: 'spot', type: 'g5.xlarge' })
    await until(async () => (await look(handle)).state === 'running')
    h.cloud.interrupt(handle.id, { noticeMs: 500 })
    await until(async () => (await look(handle)).state === 'gone')
    expect(await look(handle)).toMatchObject({ cause: 'interrupted' })
  })

  it('a machine is priced with its disk and its address, as the cloud bills it', async () => {
    h = await Ec2Harness.make()
    const { market } = createSdkApi({ region: 'us-east-1', endpoint: h.cloud.endpoint })
    const { signal } = patiently()
    const [listed, disk] = [await market.onDemandPrices('us-east-1', signal), 0.08]
    expect(await market.diskRates('us-east-1', signal)).toEqual({
      usdPerGiBMonth: disk,
      usdPerMibpsMonth: 0.04,
      usdPerIopsMonth: 0.005,
    })
    expect(await market.diskRates('mars-north-1', signal)).toBeUndefined()
    expect(await market.transferUsdPerGb({ from: 'us-east-1', to: 'mars-north-1' }, signal)).toBeUndefined()
    const handle = await launched(await h.order({ capacityType: 'on-demand' }))
    const { type, priceMicroUsdPerHour } = handle.realised
    const usdPerHour = Number(listed.get(type)) + (100 * disk) / 720 + 0.005
    expect(priceMicroUsdPerHour).toBe(Math.round(usdPerHour * 1e6))
    await until(async () => (await look(handle)).state === 'running')
    await h.backend.terminate(handle, patiently())
    await until(() => h.cloud.instances()[0]!.bill.untilMs !== undefined)
    // It is billed for one minute, for it did not last as long.
    const { usd } = h.cloud.instances()[0]!.bill
    expect(usd).toBeCloseTo(usdPerHour / 60, 6)
  })

  it.each(['on-demand', 'reserved'] as const)(
    'a machine that is bought %s has the disk that its offer was priced with',
    async (capacityType) => {
      h = await Ec2Harness.make()
      const request = { diskMibPerSecond: 1_000, diskIops: 5_000 }
      const all = await h.backend.offers(request, patiently())
      const [offer] = all.filter((one) => one.type === 'g5.xlarge' && one.capacityType === capacityType)
      await launched(await h.order({ capacityType, offers: [offer!] }))
      await until(() => h.cloud.instances()[0]!.state === 'running')
      const ec2 = new EC2Client({ region: 'us-east-1', endpoint: h.cloud.endpoint })
      const { Volumes } = await ec2.send(new DescribeVolumesCommand({}))
      ec2.destroy()
      expect(Volumes).toMatchObject([{ Throughput: 1_000, Iops: 5_000, Size: 100, Encrypted: true }])
    },
  )

  it("the account's and the job's own tags are on all that a launch makes, and on its repetition", async () => {
    h = await Ec2Harness.make({}, { tags: { team: 'ml', Owner: 'ada' } })
    const order = { ...(await h.order({ capacityType: 'spot' })), tags: { project: 'ranker', team: 'other' } }
    const handle = await launched(order)
    // The settings changed meanwhile: the order is still the same one.
    const again = await (await h.reopen({ tags: {} })).launch(order, patiently())
    expect(again).toMatchObject({ kind: 'launched', handle: { id: handle.id } })
    const own = { project: 'ranker', team: 'ml', Owner: 'ada', 'crucible:attempt': order.attemptId }
    expect(h.cloud.instances().map(({ tags }) => tags)).toEqual([expect.objectContaining(own)])
    const sent = JSON.stringify(h.calls('CreateFleet').map(({ parameters }) => parameters))
    for (const kind of ['fleet', 'instance', 'volume']) expect(sent).toContain(`"${kind}"`)
    const api = createSdkApi({ region: 'us-east-1', endpoint: h.cloud.endpoint })
    const template = { id: undefined, tag: { name: 'team', value: 'ml' } }
    expect(await api.leftovers.templates(template, patiently().signal)).toHaveLength(1)
  })

  it('machines that end at one moment share a few calls, and one that EC2 does not know spoils no other', async () => {
    h = await Ec2Harness.make()
    const orders = await Promise.all([h.order(), h.order(), h.order()])
    const handles = await Promise.all(orders.map(launched))
    const attempts = Array.from({ length: 60 }, (_, index) => orders[index % 3]!.attemptId)
    const asked = h.calls('DescribeInstances').length
    const found = await Promise.all(attempts.map((id) => h.backend.find(id, patiently())))
    expect(found.map((one) => (one.kind === 'found' ? one.handles.map(({ id }) => id) : []))).toEqual(
      attempts.map((_, index) => [handles[index % 3]!.id]),
    )
    const unknown: MachineHandle = { ...handles[0]!, id: 'i-0123456789abcdef0' }
    const all = [...Array.from({ length: 8 }, () => unknown), ...handles]
    await Promise.all(all.map((handle) => h.backend.terminate(handle, patiently())))
    for (const handle of handles) expect((await look(handle)).state).not.toBe('running')
    expect(h.calls('DescribeInstances').length - asked).toBeLessThan(20)
    expect(
      h
        .calls('TerminateInstances')
        .some(({ parameters }) => JSON.stringify(parameters).split('i-').length > 2),
    ).toBe(true)
  })

  it('a machine that a person stops is lost, and is ended with its disk', async () => {
    // Its system waits for the runner as long as the test says.
    h = await Ec2Harness.make({ durations: { ...DURATIONS, osShutdown: '10m' } })
    const order = await h.order()
    const handle = await launched(order)
    await started(handle, order)
    await until(() => h.read(handle.id, order.attemptId, 'starts') !== '')
    const letGo = h.hold(handle.id, order.attemptId)
    const client = new EC2Client({ region: 'us-east-1', endpoint: h.cloud.endpoint })
    const InstanceIds = [handle.id]
    await client.send(new StopInstancesCommand({ InstanceIds }))
    expect(await look(handle)).toMatchObject({ state: 'stopping', cause: 'ended' })
    letGo()
    await until(async () => (await look(handle)).state === 'gone')
    expect(await look(handle)).toMatchObject({ cause: 'ended', endedAtMs: expect.any(Number) })
    // It could be started again, and its disk is paid for: settling the attempt finds it, and so does garbage collection.
    expect(await h.backend.find(order.attemptId, patiently())).toMatchObject({ handles: [{ id: handle.id }] })
    const owned = await h.backend.list(order.deployment, patiently())
    expect(owned).toMatchObject([{ handle: { id: handle.id }, owner: { attemptId: order.attemptId } }])
    await h.backend.terminate(handle, patiently())
    await expect(client.send(new StartInstancesCommand({ InstanceIds }))).rejects.toMatchObject({
      name: 'IncorrectInstanceState',
    })
    expect((await client.send(new DescribeVolumesCommand({}))).Volumes).toEqual([])
    expect(await h.backend.list(order.deployment, patiently())).toEqual([])
    client.destroy()
  })

  it('a machine whose subnet has no way out never registers, and the diagnosis says so', async () => {
    const zones = ['us-east-1a']
    const subnets = [{ zone: 'us-east-1a', egress: 'none' as const, isDefault: true }]
    h = await Ec2Harness.make(
      { regions: { 'us-east-1': { zones, subnets, groups: ['crucible-machine'] } }, reservations: [] },
      { registerWithinMs: 1_000 },
    )
    const order = await h.order()
    const handle = await launched(order)
    await until(async () => {
      const failure: unknown = await h.backend.start!(handle, order, patiently()).catch(
        (error: unknown) => error,
      )
      return (failure as BackendError).class === 'unreachable'
    })
    await expect(h.backend.start!(handle, order, patiently())).rejects.toMatchObject({
      failure: { hint: expect.stringMatching(/has no outbound route.*ssm/) },
    })
    expect((await h.backend.check(patiently())).map(({ message }) => message).join()).toMatch(
      /has no outbound route/,
    )
  })

  it('a command that is delivered twice starts one runner', async () => {
    h = await Ec2Harness.make()
    h.cloud.addFault({ fault: 'command-doubled', times: 1 })
    const order = await h.order()
    const handle = await launched(order)
    await started(handle, order)
    expect(await h.startsOf(order.attemptId)).toBe(1)
  })

  it('a runner is started once though the answer to its command was lost', async () => {
    h = await Ec2Harness.make()
    h.cloud.addFault({ fault: 'lost-answer', times: 1, where: { action: 'SendCommand' } })
    const order = await h.order()
    const handle = await launched(order)
    await started(handle, order)
    expect(await h.startsOf(order.attemptId)).toBe(1)
    expect(h.cloud.journal.calls({ action: 'SendCommand' })).toHaveLength(1)
  })

  it('a machine tells what it knows of its runner, and takes an order to drain', async () => {
    h = await Ec2Harness.make()
    const order = await h.order()
    const handle = await launched(order)
    await started(handle, order)
    expect(await h.startsOf(order.attemptId)).toBe(1)
    const { text } = await h.backend.logs!(handle, undefined, patiently())
    expect(text).toMatch(
      /# The agent \(SSM\)\nis online[^]*crucible-runner.service[^]*active[^]*# The console\n[^]*booted/,
    )
    const letGo = h.hold(handle.id, order.attemptId)
    const drain = { reason: 'cancelled', windowMs: 5_000, requestedAtMs: 1 } as const
    const there = (): unknown => JSON.parse(h.read(handle.id, order.attemptId, 'drain.json'))
    const tell = async (told: Drain) =>
      (await settled(h.backend.drain!(handle, told, patiently()))) === 'answer'
    await until(() => tell(drain))
    expect(there()).toEqual(drain)
    // A shorter window takes its place.
    const shorter = { ...drain, seq: 2, windowMs: 1_000 }
    await until(() => tell(shorter))
    expect(there()).toEqual(shorter)
    letGo()
    await until(() => h.read(handle.id, order.attemptId, 'ended') !== '')
  })

  it('a launch that fails after it was accepted is reported with its class', async () => {
    h = await Ec2Harness.make()
    h.cloud.addFault({ fault: 'launch-fails', reason: 'Client.VolumeLimitExceeded' })
    const handle = await launched(await h.order())
    await until(async () => (await look(handle)).state === 'gone')
    expect(await look(handle)).toMatchObject({ cause: 'failed-to-start', failure: { class: 'quota' } })
  })

  it('an order moves on to the pool that has a machine', async () => {
    h = await Ec2Harness.make()
    h.cloud.addFault({ fault: 'no-capacity', where: { zone: 'us-east-1a' } })
    const handle = await launched(await h.order())
    expect(handle.realised.place).toBe('us-east-1b')
  })

  it('a machine on demand takes no place of a reservation that is open to it', async () => {
    const reservation = { kind: 'on-demand', type: 'g5.xlarge', count: 2, matching: 'open' } as const
    h = await Ec2Harness.make({
      reservations: [
        { ...reservation, zone: 'us-east-1a' },
        { ...reservation, zone: 'us-east-1b' },
      ],
    })
    const handle = await launched(await h.order())
    expect(handle.realised.capacityType).toBe('on-demand')
    expect(h.cloud.reservations().map(({ free }) => free)).toEqual([2, 2])
    expect(h.cloud.instances()[0]).toMatchObject({ capacity: 'on-demand' })
    // One that is open can be named as well.
    const reserved = await launched(await h.order({ capacityType: 'reserved' }))
    expect(reserved.realised).toMatchObject({ capacityType: 'reserved', type: 'g5.xlarge' })
    expect(h.cloud.reservations().map(({ free }) => free)).toContain(1)
  })

  it.each(['ReservationCapacityExceeded', 'InvalidCapacityReservationState.PendingActivation'] as const)(
    'a launch into a block before its start waits, whether EC2 answers %s',
    async (earlyLaunch) => {
      const block = { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 1 } as const
      const reservations = [{ ...block, starts: '2h', ends: '24h' }]
      h = await Ec2Harness.make({ blockMarket: { earlyLaunch }, reservations }, {}, 'block')
      const order = await h.order()
      expect(order.offers).toMatchObject([
        {
          availability: 'unavailable',
          reservation: { free: expect.any(Number), startsAtMs: expect.any(Number) },
          note: expect.stringMatching(/is (?:payment-pending|scheduled): it cannot be used yet, from \d{4}-/),
        },
      ])
      expect(await h.backend.launch(order, patiently())).toMatchObject({
        kind: 'refused',
        failure: {
          class: 'capacity',
          code: earlyLaunch,
          message: expect.stringMatching(
            /is (?:payment-pending|scheduled): it cannot be used yet. It begins \d{4}-/,
          ),
        },
      })
      expect(h.cloud.journal.calls({ action: 'RunInstances' }).length).toBeGreaterThan(0)
    },
  )

  it('a reservation that was cancelled meanwhile has expired, and its machines go on', async () => {
    h = await Ec2Harness.make()
    const { id } = h.cloud.reservations()[0]!
    const [first, late] = [
      await h.order({ capacityType: 'reserved' }),
      await h.order({ capacityType: 'reserved' }),
    ]
    const handle = await launched(first)
    const client = new EC2Client({ region: 'us-east-1', endpoint: h.cloud.endpoint })
    await client.send(new CancelCapacityReservationCommand({ CapacityReservationId: id }))
    client.destroy()
    expect(await h.backend.launch(late, patiently())).toMatchObject({
      kind: 'refused',
      failure: { class: 'expired', code: 'ReservationCapacityExceeded' },
    })
    expect(h.cloud.instances()).toHaveLength(1)
    await until(async () => (await look(handle)).state === 'running')
    // What it was bought as stays as it was.
    expect(await h.backend.find(first.attemptId, patiently())).toEqual({ kind: 'found', handles: [handle] })
  })

  it('quotas stand in the offers, and in the refusal', async () => {
    h = await Ec2Harness.make({ quotas: { 'L-DB2E81BA': 0 } })
    const offers = await h.backend.offers({ accelerators: ['A10G'] }, patiently())
    const of = (type: string) => offers.find(({ capacityType }) => capacityType === type)?.availability
    expect([of('on-demand'), of('spot')]).toEqual(['no-quota', 'unknown'])
    expect(await h.backend.launch(await h.order(), patiently())).toMatchObject({
      kind: 'refused',
      failure: { class: 'quota', code: 'VcpuLimitExceeded' },
    })
  })

  it('lists that lag neither hide a machine nor make a second one', async () => {
    h = await Ec2Harness.make({ durations: { notFound: patient(3_000) } }, { staleForMs: 60_000 })
    const order = await h.order()
    const handle = await launched(order)
    expect(await look(handle)).toMatchObject({ state: 'pending' })
    expect((await h.backend.find(order.attemptId, patiently())).kind).toBe('unsettled')
    await until(async () => (await h.backend.find(order.attemptId, patiently())).kind === 'found')
    expect(h.cloud.instances()).toHaveLength(1)
  })

  it('a machine on which no runner begins ends itself', async () => {
    h = await Ec2Harness.make()
    const order = await h.order({ timing: { startWithinMs: -30_000 } })
    const handle = await launched(order)
    await until(async () => (await look(handle)).state === 'gone')
    expect(await look(handle)).toMatchObject({ cause: 'ended' })
  })

  it('its machines are closed, ask for a token, and end with their disks', async () => {
    h = await Ec2Harness.make()
    await launched(await h.order())
    const [template] = h.cloud.journal.calls({ action: 'CreateLaunchTemplate' })
    expect(JSON.stringify(template)).toMatch(/HttpTokens.*required/)
  })
})
