/** What accounts of companies have that a fresh one has not, over the wire. */
import { DescribeSpotInstanceRequestsCommand, RunInstancesCommand } from '@aws-sdk/client-ec2'
import { AssumeRoleCommand } from '@aws-sdk/client-sts'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../backends/backend'
import { createEc2Backend } from '../../../backends/ec2'
import { createSdkApi } from '../../../backends/ec2/sdk/index'
import type { LaunchOutcome } from '../../../core/activities'
import type { Offer, Pins } from '../../../core/offer'
import type { WorldText } from '#small-cloud'
import { IMAGE, stopClouds, testCloud, type TestCloud } from '../../../packages/small-cloud/test/support'
import { patiently } from '../harness'
import { makeOrder } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { CONFIG, DEFAULT_IMAGE } from './harness'
import { ACCOUNT, preparedTemplate } from './setup/accounts'

afterEach(stopClouds)

const REGION = { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } }

interface Keys {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

async function open(cloud: TestCloud, keys: Keys): Promise<Backend> {
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: keys.accessKeyId,
    AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
  })
  delete process.env['AWS_SESSION_TOKEN']
  if (keys.sessionToken !== undefined) process.env['AWS_SESSION_TOKEN'] = keys.sessionToken
  const config = { ...CONFIG, image: DEFAULT_IMAGE, types: ['m7i.large'], endpoint: cloud.cloud.endpoint }
  return createEc2Backend(config, { clock: Date.now, runnerUrl: async () => 'data:,', deployment: 'test' })
}

const worldOf = (more: WorldText): WorldText => ({
  account: ACCOUNT,
  throttling: 'off',
  regions: REGION,
  ...more,
})

async function launch(backend: Backend, offers: Offer[]): Promise<LaunchOutcome> {
  const order = makeOrder({ store: new MemoryStore(Date.now), offers, runnerStart: 'after-launch' })
  return backend.launch(order, patiently())
}

describe('a role of single sign-on, which has a path', () => {
  it('is asked for its permissions by its whole name', async () => {
    const name = 'AWSReservedSSO_Workers_0123456789abcdef'
    const path = '/aws-reserved/sso.amazonaws.com/eu-west-1/'
    const cloud = await testCloud(
      worldOf({
        roles: {
          'crucible-machine': { hasProfile: true, managed: ['AmazonSSMManagedInstanceCore'] },
          [name]: { path, managed: ['AdministratorAccess'] },
        },
      }),
    )
    const RoleArn = `arn:aws:iam::${ACCOUNT}:role${path}${name}`
    const { Credentials } = await cloud.clients.sts.send(
      new AssumeRoleCommand({ RoleArn, RoleSessionName: 'ann' }),
    )
    const backend = await open(cloud, {
      accessKeyId: Credentials!.AccessKeyId!,
      secretAccessKey: Credentials!.SecretAccessKey!,
      sessionToken: Credentials!.SessionToken!,
    })
    expect(await backend.check(patiently())).toEqual([])
  })
})

describe('an image that a job keeps', () => {
  it('is used also when AWS has deprecated it', async () => {
    const parameter = DEFAULT_IMAGE.replace('{arch}', 'x86_64')
    const first = await testCloud(worldOf({}))
    const [offer] = await (await open(first, first.cloud.credentials)).offers({}, patiently())
    const pins: Pins = offer!.pins!
    const cloud = await testCloud(worldOf({ deprecatedImages: [parameter] }))
    const backend = await open(cloud, cloud.cloud.credentials)
    const found = await backend.offers({}, patiently(), pins)
    expect(found[0]).toMatchObject({ pins })
    expect(found[0]!.note).toBeUndefined()
    const onDemand = found.filter(({ capacityType }) => capacityType === 'on-demand')
    expect(await launch(backend, onDemand)).toMatchObject({ kind: 'launched' })
  })
})

describe('a worker with the permissions of the set-up and no others', () => {
  it('launches both ways, and cancels the spot requests that carry its tag', async () => {
    const { machines } = preparedTemplate().policiesOf('crucible-worker')
    const policy = { Version: '2012-10-17', Statement: machines }
    const worker = { accessKeyId: 'worker', secretAccessKey: 's' }
    const cloud = await testCloud(
      worldOf({ users: { worker: { ...worker, policies: { all: policy as never } } } }),
    )
    const backend = await open(cloud, worker)
    const offers = await backend.offers({}, patiently())
    for (const way of ['on-demand', 'spot'])
      expect(
        await launch(
          backend,
          offers.filter(({ capacityType }) => capacityType === way),
        ),
      ).toMatchObject({ kind: 'launched' })
    const { SpotInstanceRequests: requests = [] } = await cloud.clients.ec2.send(
      new DescribeSpotInstanceRequestsCommand({}),
    )
    const tag = { Key: 'crucible:deployment', Value: 'test' }
    expect(requests.map(({ Tags }) => Tags)).toEqual([expect.arrayContaining([tag])])
    const { leftovers } = createSdkApi({ region: 'us-east-1', endpoint: cloud.cloud.endpoint })
    const { signal } = patiently()
    await leftovers.cancelSpotRequest(requests[0]!.SpotInstanceRequestId!, signal)
    expect(await leftovers.spotRequests(undefined, signal)).toEqual([])
    const { Instances } = await cloud.clients.ec2.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        MinCount: 1,
        MaxCount: 1,
        InstanceType: 'm7i.large',
        InstanceMarketOptions: { MarketType: 'spot' },
      }),
    )
    await expect(
      leftovers.cancelSpotRequest(Instances![0]!.SpotInstanceRequestId!, signal),
    ).rejects.toMatchObject({ code: 'UnauthorizedOperation' })
  })
})
