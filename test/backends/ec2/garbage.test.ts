/** What garbage collection finds and ends, over the wire to the small cloud. */
import {
  CreateLaunchTemplateCommand,
  DescribeLaunchTemplatesCommand,
  DescribeSpotInstanceRequestsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { MachineHandle, OwnedResource } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { Ec2Harness } from './harness'

let h: Ec2Harness
let client: EC2Client
const open = async (...how: Parameters<typeof Ec2Harness.make>): Promise<void> => {
  h = await Ec2Harness.make(...how)
  client = new EC2Client({ region: 'us-east-1', endpoint: h.cloud.endpoint })
}
beforeEach(() => open({ durations: { terminatedVisible: [600_000, 600_000] } }))
afterEach(async () => {
  client.destroy()
  await h.dispose()
})

const launched = async (order: Order): Promise<MachineHandle> => {
  const outcome = await h.backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  return outcome.handle
}
const leftovers = (deployment = 'test', backend = h.backend): Promise<OwnedResource[]> =>
  backend.leftovers!(deployment, patiently())
const ended = (handle: MachineHandle) =>
  until(async () => (await h.backend.observe([handle], patiently()))[0]!.state === 'gone')
const templates = async (): Promise<(string | undefined)[]> =>
  (await client.send(new DescribeLaunchTemplatesCommand({}))).LaunchTemplates!.map(
    ({ LaunchTemplateId }) => LaunchTemplateId,
  )

describe('a launch template', () => {
  it('is needed while a machine of it is, and while it is young', async () => {
    const order = await h.order()
    const handle = await launched(order)
    expect(await leftovers()).toMatchObject([
      {
        handle: { kind: 'template' },
        place: 'us-east-1',
        costMicroUsdPerDay: 0,
        use: { isNeeded: true, reason: `${handle.id} was launched from it` },
      },
    ])
    // However old it is.
    const old = await h.reopen({ templatesKeptMs: 1 })
    expect((await leftovers('test', old))[0]!.use).toMatchObject({ isNeeded: true })
    await h.backend.terminate(handle, patiently())
    await ended(handle)
    expect((await leftovers())[0]!.use).toMatchObject({ isNeeded: true, reason: expect.stringMatching('7d') })
    expect((await leftovers('test', old))[0]!.use).toMatchObject({ isNeeded: false })
  })

  it('is deleted once and for all, and made again by an order that was recorded with it', async () => {
    const order = await h.order()
    const [template] = await leftovers()
    await h.backend.terminate(template!.handle, patiently())
    await h.backend.terminate(template!.handle, patiently())
    expect(await leftovers()).toEqual([])
    await launched(order)
    const [again] = await leftovers()
    expect(again!.description.split(',')[0]).toBe(template!.description.split(',')[0])
    expect(again!.handle.id).not.toBe(template!.handle.id)
  })

  it('of somebody else is neither told nor deleted', async () => {
    await h.order()
    const [ours] = await leftovers()
    const Tags = [{ Key: 'crucible:deployment', Value: 'another' }]
    for (const LaunchTemplateName of ['theirs', 'nobodys'])
      await client.send(
        new CreateLaunchTemplateCommand({
          LaunchTemplateName,
          LaunchTemplateData: { InstanceType: 'g5.xlarge' },
          TagSpecifications:
            LaunchTemplateName === 'theirs' ? [{ ResourceType: 'launch-template', Tags }] : undefined,
        }),
      )
    expect(await leftovers()).toEqual([ours])
    const [theirs] = await leftovers('another')
    const guarded = await h.reopen({}, { deployment: 'test' })
    await expect(guarded.terminate(theirs!.handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringContaining('belongs to deployment another') },
    })
    expect(await templates()).toHaveLength(3)
  })
})

describe('a spot request', () => {
  const states = async (): Promise<(string | undefined)[]> =>
    (await client.send(new DescribeSpotInstanceRequestsCommand({}))).SpotInstanceRequests!.map(
      ({ State }) => State,
    )
  const requests = async (deployment = 'test'): Promise<OwnedResource[]> =>
    (await leftovers(deployment)).filter(({ handle }) => handle.kind === 'spot-request')

  it('of a machine that lives is part of that machine', async () => {
    const handle = await launched(await h.order({ capacityType: 'spot' }))
    expect(await requests()).toEqual([])
    await h.backend.terminate(handle, patiently())
    await ended(handle)
    expect([await requests(), await states()]).toEqual([[], ['closed']])
  })

  it('that outlives its machine is reported with its owner, and taken back', async () => {
    h.cloud.addFault({ fault: 'request-dangles' })
    const order = await h.order({ capacityType: 'spot' })
    const handle = await launched(order)
    await h.backend.terminate(handle, patiently())
    await ended(handle)
    const [request] = await requests()
    expect(request).toMatchObject({
      owner: { attemptId: order.attemptId },
      description: expect.stringContaining(`whose machine ${handle.id} has ended, active since`),
    })
    expect(await requests('another')).toEqual([])
    await h.backend.terminate(request!.handle, patiently())
    await h.backend.terminate(request!.handle, patiently())
    expect([await requests(), await states()]).toEqual([[], ['cancelled']])
  })

  it('is not taken back while its machine lives, though a list that is late says so', async () => {
    const handle = await launched(await h.order({ capacityType: 'spot' }))
    const [{ SpotInstanceRequestId: id } = {}] = (
      await client.send(new DescribeSpotInstanceRequestsCommand({}))
    ).SpotInstanceRequests!
    await h.backend.terminate(
      { backend: 'ec2', kind: 'spot-request', id: id!, data: { region: 'us-east-1' } },
      patiently(),
    )
    expect(await states()).toEqual(['active'])
    expect((await h.backend.observe([handle], patiently()))[0]!.state).not.toBe('gone')
  })
})

describe('what costs', () => {
  it('is reported with its price for a day, and its place', async () => {
    const handle = await launched(await h.order())
    const [machine] = await h.backend.list('test', patiently())
    expect(machine).toMatchObject({
      place: handle.realised.place,
      costMicroUsdPerDay: 24 * handle.realised.priceMicroUsdPerHour,
    })
  })
})
