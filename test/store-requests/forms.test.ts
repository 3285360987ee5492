/** Sends drawn forms of AWS's Query protocol, signed with the grant of one attempt, and drawn requests for the metadata of a machine. */
import { EC2Client, RunInstancesCommand } from '@aws-sdk/client-ec2'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { metadataOf } from '../../packages/small-cloud/src/machines/metadata'
import { MetadataService } from '../../packages/small-cloud/src/machines/metadata-service'
import { PaperMachine } from '../../packages/small-cloud/test/support'
import { Dice } from '../kit/dice'
import { inLanes } from '../kit/lanes'
import { grantKeys } from '../small-cloud/grants'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { RawS3, type RawKeys, type RawRequest } from '../support/raw-s3'
import { chosen } from '../support/selection'
import { drawHostile, sendHostile } from './hostile-targets'

const SEEDS = Array.from({ length: chosen([10_000], [1_000])[0]! }, (_, index) => index + 1)
const SERVICES = ['ec2', 'ssm', 'iam', 'sts', 'pricing', 'EC2', 's3', 'ec2/', ''] as const
const ACTIONS = [
  'DescribeInstances', 'TerminateInstances', 'RunInstances', 'StopInstances', 'CreateTags', 'DeleteTags', 'CreateFleet',
  'ModifyInstanceAttribute', 'GetConsoleOutput', 'DescribeInstanceAttribute', 'PurchaseCapacityBlock', 'AssumeRole',
  'CreateAccessKey', 'GetUser', 'PutRolePolicy', 'PassRole', 'SendCommand', 'GetParameter', 'terminateinstances',
  'TerminateInstances ', 'TerminateInstances\u0000', '__proto__', 'constructor', '',
] as const // prettier-ignore
const FIELDS = [
  'InstanceId.1', 'InstanceId.0', 'InstanceId.member.1', 'InstanceIds.1', 'RoleArn', 'RoleSessionName', 'UserName',
  'ResourceId.1', 'Tag.1.Key', 'Tag.1.Value', 'DryRun', '__proto__.a', 'a..b', 'Action.1', 'Version', 'X-Amz-Target',
  'Filter.1.Name', 'AWSAccessKeyId', 'SecurityToken',
] as const // prettier-ignore

interface Target {
  instance: string
  roleArn: string
}

function drawForm(dice: Dice, { instance, roleArn }: Target): RawRequest & { service: string } {
  const values = [instance, roleArn, '*', '1', 'true', 'false', 'x', '', '../', 'crucible-grant'] as const
  const pairs = [
    ['Action', dice.oneOf(ACTIONS)],
    ['InstanceId.1', instance],
  ]
  for (let times = dice.between(0, 3); times > 0; times--)
    pairs.push([dice.oneOf(FIELDS), dice.oneOf(values)])
  if (dice.chance(0.2)) pairs.unshift(['Action', 'GetCallerIdentity'])
  if (dice.chance(0.1)) pairs.push(['%41ction', dice.oneOf(ACTIONS)])
  // The one action that every key may use.
  if (dice.chance(0.05)) pairs.splice(0, pairs.length, ['Action', 'GetCallerIdentity'])
  const form = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value!)}`).join('&')
  const target = dice.oneOf([
    '/',
    '/',
    '/',
    '/',
    '/',
    '/',
    '//',
    '/?',
    `/?${form}`,
    '/x',
    '/%2e%2e/',
    '/_sim/journal',
    '/_modal/v1/jobs',
  ])
  const headers: Record<string, string> = { 'content-type': 'application/x-www-form-urlencoded' }
  if (dice.chance(0.2)) headers['x-amz-target'] = `AmazonSSM.${dice.oneOf(ACTIONS)}`
  if (dice.chance(0.1)) headers['content-type'] = 'application/x-amz-json-1.1'
  const body = dice.chance(0.1) ? JSON.stringify({ InstanceIds: [instance] }) : form
  const method = dice.oneOf(['POST', 'POST', 'POST', 'GET', 'PUT'])
  return {
    method,
    target,
    headers,
    body: method === 'GET' ? '' : body,
    service: dice.chance(0.6) ? 'ec2' : dice.oneOf(SERVICES),
  }
}

describe('the services of AWS in the small cloud, sent forms that the grant of an attempt signs,', () => {
  let cloud: TestCloud
  let keys: RawKeys
  let target: Target
  const senders = new Map<string, RawS3>()
  beforeAll(async () => {
    cloud = await startTestCloud('judged', {}, { createMachine: (spec) => new PaperMachine(spec) })
    keys = await grantKeys('s3://judged/store', cloud, { jobId: 'job-a', attempt: 1 })
    const ec2 = new EC2Client({})
    const ImageId = 'resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64'
    const { Instances } = await ec2.send(new RunInstancesCommand({ ImageId, MinCount: 1, MaxCount: 1 }))
    ec2.destroy()
    const { arn } = cloud.account().roles.find(({ name }) => name === 'crucible-grant')!
    target = { instance: Instances![0]!.InstanceId!, roleArn: arn }
    for (const service of SERVICES)
      senders.set(service, new RawS3({ endpoint: cloud.endpoint, region: cloud.region, service }))
  }, 120_000)
  afterAll(async () => {
    for (const sender of senders.values()) sender.close()
    await cloud.stop()
  })

  it('do nothing, show nothing and never fail', async () => {
    const before = JSON.stringify([cloud.instances().map(({ id, tags }) => [id, tags]), cloud.account()])
    const from = cloud.journal.calls({}).length
    const statuses: Record<string, number> = {}
    const shown: number[] = []
    await inLanes(SEEDS, { jobs: 8 }, async (seed) => {
      const { service, ...request } = drawForm(new Dice(seed), target)
      const { status, body } = await senders.get(service)!.send(request, keys)
      statuses[status] = (statuses[status] ?? 0) + 1
      if (status > 0 && status < 300 && !body.includes('GetCallerIdentityResponse')) shown.push(seed)
    })
    expect(shown).toEqual([])
    expect(statuses[500]).toBeUndefined()
    const allowed = cloud.journal
      .calls({})
      .slice(from)
      .filter(({ outcome }) => outcome === 'ok')
    expect(new Set(allowed.map(({ action }) => action))).toEqual(new Set(['GetCallerIdentity']))
    expect(JSON.stringify([cloud.instances().map(({ id, tags }) => [id, tags]), cloud.account()])).toBe(
      before,
    )
    // Signed requests reach the judge: many are refused by its policy, not by their form.
    expect(statuses[403]).toBeGreaterThan(SEEDS.length / 10)
  }, 120_000)
})

describe('the metadata of a machine, sent drawn requests,', () => {
  const FACTS = {
    instanceId: 'i-0123456789abcdef0',
    instanceType: 'g5.xlarge',
    imageId: 'ami-0123456789abcdef0',
    accountId: '123456789012',
    region: 'eu-west-1',
    zone: 'eu-west-1b',
    zoneId: 'euw1-az2',
    privateIp: '10.0.3.7',
    architecture: 'x86_64',
    capacityType: 'spot',
    launchedAt: new Date(0),
  } as const
  const ROUTES = [
    'api/token',
    'user-data',
    'meta-data/',
    'meta-data/instance-id',
    'dynamic/instance-identity/document',
  ]
  const services: MetadataService[] = []
  afterAll(() => Promise.all(services.map((service) => service.close())))

  it.each([
    { whose: 'another process', isOwn: false },
    { whose: 'a process of the machine without a token', isOwn: true },
  ])(
    'tells nothing to $whose',
    async ({ isOwn }) => {
      const service = new MetadataService(metadataOf(FACTS), 'key=5f1c', { isOwn: () => isOwn })
      services.push(service)
      const port = Number(new URL(await service.listen()).port)
      const through: unknown[] = []
      await inLanes(SEEDS, { jobs: 8 }, async (seed) => {
        const dice = new Dice(seed)
        const request = drawHostile(
          dice,
          ROUTES.map((route) => `/${dice.oneOf(['latest', '1.0', '2021-07-15'])}/${route}`),
        )
        if (dice.chance(0.3))
          request.headers['x-aws-ec2-metadata-token'] = dice.oneOf(['', 'x', '__proto__', 'null'])
        const status = await sendHostile(port, request)
        if (status === 500 || (status > 0 && status < 400)) through.push({ seed, status, request })
      })
      expect(through).toEqual([])
    },
    120_000,
  )
})
