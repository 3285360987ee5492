/** What a fleet's errors stand for, over the wire to a small cloud that fails as EC2 does. */
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../../backends/backend'
import { createEc2Backend } from '../../../../backends/ec2'
import type { Ec2Config } from '../../../../backends/ec2/config'
import type { LaunchOutcome } from '../../../../core/activities'
import type { FailureClass } from '../../../../core/failure'
import type { Cloud, FaultText, WorldText } from '#small-cloud'
import { stopClouds, testCloud, type TestCloud } from '../../../../packages/small-cloud/test/support'
import { patiently } from '../../harness'
import { makeOrder } from '../../orders'
import { MemoryStore } from '../../scripted/memory-store'
import { adoptKeys } from '../../../support/cloud-keys'
import { CONFIG, DEFAULT_IMAGE } from '../harness'

afterEach(stopClouds)

const TYPE = 'm7i.large'
const GROUP = { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b'], groups: ['crucible-machine'] } }

interface Stage {
  cloud: TestCloud
  backend: Backend
  launch: (capacityType?: 'spot' | 'on-demand') => Promise<LaunchOutcome>
}

async function stage(
  world: WorldText = {},
  changes: Partial<Ec2Config> = {},
  credentials?: Cloud['credentials'],
): Promise<Stage> {
  const cloud = await testCloud({ throttling: 'off', regions: GROUP, ...world })
  adoptKeys({ credentials: credentials ?? cloud.cloud.credentials })
  const config = {
    ...CONFIG,
    image: DEFAULT_IMAGE,
    types: [TYPE],
    endpoint: cloud.cloud.endpoint,
    ...changes,
  }
  const backend = await createEc2Backend(config, {
    clock: () => cloud.clock.nowMs(),
    runnerUrl: async () => 'data:,',
  })
  return {
    cloud,
    backend,
    async launch(capacityType = 'on-demand') {
      const offers = await backend.offers({}, patiently())
      const order = makeOrder({
        store: new MemoryStore(Date.now),
        offers: offers.filter((one) => one.capacityType === capacityType),
        runnerStart: 'after-launch',
      })
      return backend.launch(order, patiently())
    },
  }
}

const WORKER = { accessKeyId: 'worker', secretAccessKey: 'worker' }
const denying = (action: string): WorldText => ({
  users: {
    worker: {
      ...WORKER,
      managed: ['AdministratorAccess'],
      policies: { no: { Statement: [{ Effect: 'Deny', Action: action, Resource: '*' }] } },
    },
  },
})

const saying = (code: string, zone = '*', message?: string): FaultText => ({
  fault: 'fleet-error',
  code,
  message,
  where: { zone },
})

describe('a fleet that answers with neither a machine nor an error', () => {
  it('is asked for its machine', async () => {
    const { launch, cloud } = await stage({ faults: [{ fault: 'fleet-silent' }] })
    const outcome = await launch()
    expect(outcome).toMatchObject({ kind: 'launched', handle: { id: cloud.cloud.instances()[0]!.id } })
  })

  it('is asked for its errors', async () => {
    const { launch } = await stage({ faults: [{ fault: 'fleet-silent' }, saying('VcpuLimitExceeded')] })
    expect(await launch()).toMatchObject({ kind: 'refused', failure: { class: 'quota' } })
  })

  it.each<[string, FaultText[]]>([
    ['what is on record of it is empty as well', [{ fault: 'fleet-silent', isShown: false }]],
    [
      'it may not be asked',
      [
        { fault: 'fleet-silent' },
        { fault: 'error', code: 'UnauthorizedOperation', where: { action: 'DescribeFleets' } },
      ],
    ],
  ])('leaves its machine to be found by its tag where %s', async (_, faults) => {
    const { launch, cloud, backend } = await stage({ faults })
    expect(await launch()).toMatchObject({ kind: 'unconfirmed' })
    const [machine] = cloud.cloud.instances()
    const found = await backend.find(machine!.tags['crucible:attempt']!, patiently())
    expect(found).toMatchObject({ kind: 'found', handles: [{ id: machine!.id }] })
  })
})

describe('a fleet that launched nothing', () => {
  it.each([
    ['iam:PassRole', /iam:PassRole/, /CRUCIBLE_EC2_PROFILE/],
    [
      'ec2:RunInstances',
      /ec2:RunInstances .* service control policy/,
      /policy denies this.*CRUCIBLE_EC2_TAGS/,
    ],
  ])('for want of %s stops the job, and names the permission', async (action, message, hint) => {
    const { launch } = await stage(denying(action), {}, WORKER)
    expect(await launch()).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'auth',
        code: 'UnauthorizedOperation',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(hint),
      },
    })
  })

  it('for want of the spot role stops the job, and says what to run', async () => {
    const world = { linkedRoles: [], ...denying('iam:CreateServiceLinkedRole') }
    const { launch } = await stage(world, {}, WORKER)
    expect(await launch('spot')).toMatchObject({
      failure: { class: 'auth', hint: expect.stringContaining('create-service-linked-role') },
    })
  })

  it('for a profile that is not there yet is tried again for a minute, then stops the job', async () => {
    const { launch, cloud, backend } = await stage({}, { profile: 'nobody' })
    const first = await launch()
    expect(first).toMatchObject({ kind: 'refused', failure: { class: 'transient' } })
    await cloud.clock.advance(61_000)
    expect(await launch()).toMatchObject({
      kind: 'refused',
      failure: { class: 'invalid', hint: expect.stringContaining('CRUCIBLE_EC2_PROFILE') },
    })
    // The pools have done nothing wrong.
    const offers = await backend.offers({}, patiently())
    expect(offers.map(({ availability }) => availability)).not.toContain('unavailable')
  })

  it.each<[string, FailureClass, FaultText[]]>([
    [
      'every pool says that a quota is full',
      'quota',
      [saying('VcpuLimitExceeded', '*a'), saying('UnfulfillableCapacity', '*b')],
    ],
    [
      'a pool without machines stands next to one over its quota',
      'capacity',
      [saying('VcpuLimitExceeded', '*a'), saying('InsufficientInstanceCapacity', '*b')],
    ],
    [
      'a denial stands next to a zone that does not have the type',
      'auth',
      [
        saying('UnauthorizedOperation', '*a'),
        saying(
          'InvalidFleetConfiguration',
          '*b',
          'Your requested instance type (m7i.large) is not supported in your requested Availability Zone (us-east-1b).',
        ),
      ],
    ],
    [
      'a wrong profile stands next to a pool without machines',
      'transient',
      [
        saying('InsufficientInstanceCapacity', '*a'),
        saying('InvalidParameterValue', '*b', 'Value (p) is invalid. Invalid IAM Instance Profile name'),
      ],
    ],
    [
      'a closed account stands next to a pool without machines',
      'auth',
      [saying('InsufficientInstanceCapacity', '*a'), saying('PendingVerification', '*b')],
    ],
    [
      'a request limit stands next to a pool that says nothing',
      'throttled',
      [saying('RequestLimitExceeded', '*a'), saying('UnfulfillableCapacity', '*b')],
    ],
    ['no pool says more', 'capacity', [saying('UnfulfillableCapacity')]],
  ])('where %s is a failure of the class %s', async (_, failureClass, faults) => {
    const { launch } = await stage({ faults })
    expect(await launch()).toMatchObject({ kind: 'refused', failure: { class: failureClass } })
  })

  it('leaves a pool alone for long only where its zone never has the type', async () => {
    const { launch, backend, cloud } = await stage({
      faults: [
        saying(
          'InvalidFleetConfiguration',
          '*a',
          'Your requested instance type (m7i.large) is not supported in your requested Availability Zone (us-east-1a).',
        ),
        saying('InsufficientInstanceCapacity', '*b'),
      ],
    })
    expect(await launch()).toMatchObject({ failure: { class: 'capacity' } })
    await cloud.clock.advance(4 * 60_000)
    const offers = await backend.offers({}, patiently())
    const left = offers.filter(({ availability, capacityType }) => {
      return capacityType === 'on-demand' && availability === 'unavailable'
    })
    expect(left.map(({ place }) => place)).toEqual(['us-east-1a'])
  })
})
