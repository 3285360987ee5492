import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from '@jest/globals'
import type { Problem } from '../../../../backends/backend'
import { patiently } from '../../harness'
import { FakeHarness } from '../fake-harness'

describe('the check of EC2', () => {
  let h: FakeHarness
  beforeEach(() => {
    h = new FakeHarness({}, { storeUrl: 's3://bucket/some/prefix?region=us-east-1' })
  })
  const check = (): Promise<Problem[]> => h.backend.check(patiently())

  it('finds nothing where nothing is wrong, and leaves nothing in the bucket', async () => {
    expect(await check()).toEqual([])
    expect([...h.aws.objects]).toEqual([])
    const probe = h.aws.calls.find(({ name }) => name === 'putIfAbsent')
    expect(probe?.detail).toEqual({ name: 'bucket', region: 'us-east-1' })
  })

  it.each<[string, (h: FakeHarness) => void, object]>([
    [
      'a permission',
      ({ aws }) => (aws.denied = ['ec2:CreateFleet']),
      {
        severity: 'error',
        message: expect.stringContaining('lacks permission for ec2:CreateFleet'),
        failure: 'auth',
      },
    ],
    [
      'the right to ask for permissions',
      ({ aws }) => aws.fail('deniedActions', 'AccessDenied', { httpStatus: 403 }),
      { severity: 'warning', remedy: expect.stringContaining('iam:SimulatePrincipalPolicy') },
    ],
    [
      'a way out of every subnet',
      ({ aws }) => (aws.defaultRoute = undefined),
      { severity: 'error', message: expect.stringMatching(/subnet-a .* no way out.*ssm, ssmmessages/) },
    ],
    [
      'a public address behind an internet gateway',
      ({ aws }) => (aws.subnets = aws.subnets.map((subnet) => ({ ...subnet, givesPublicAddress: false }))),
      { severity: 'error', remedy: expect.stringContaining('map-public-ip-on-launch') },
    ],
    [
      'a security group',
      ({ aws }) => (aws.groups = []),
      { severity: 'error', remedy: expect.stringContaining('create-security-group --vpc-id vpc-1') },
    ],
    [
      'a group that lets out',
      ({ aws }) => (aws.groups = aws.groups.map((group) => ({ ...group, letsOut: false }))),
      { severity: 'error', message: expect.stringContaining('let nothing out') },
    ],
    [
      'a group that lets nothing in',
      ({ aws }) => (aws.groups = aws.groups.map((group) => ({ ...group, inboundRules: 1 }))),
      { severity: 'warning', message: expect.stringContaining('allows inbound traffic') },
    ],
    [
      'the instance profile',
      ({ aws }) => (aws.profile = undefined),
      { severity: 'error', message: expect.stringContaining('no instance profile named crucible-machine') },
    ],
    [
      'the policy of the agent',
      ({ aws }) => (aws.profile = { roleName: 'machine', policies: ['S3Full'] }),
      { severity: 'warning', remedy: expect.stringContaining('AmazonSSMManagedInstanceCore') },
    ],
    [
      'quota for spot machines with GPUs',
      ({ aws }) => aws.quotas.set('L-3819A6DF', 0),
      { severity: 'warning', remedy: expect.stringContaining('L-3819A6DF'), failure: 'quota' },
    ],
    [
      'the bucket',
      ({ aws }) => (aws.bucketRegion = undefined),
      { severity: 'error', remedy: expect.stringContaining('aws s3 mb s3://bucket --region us-east-1') },
    ],
    [
      'a bucket nearby',
      ({ aws }) => (aws.bucketRegion = 'eu-west-1'),
      { severity: 'warning', message: expect.stringContaining('is in eu-west-1') },
    ],
    [
      "the bucket's region in the URL of the store",
      ({ aws }) => aws.fail('putIfAbsent', 'PermanentRedirect', { httpStatus: 301 }),
      { severity: 'error', remedy: expect.stringContaining('s3://BUCKET?region=REGION') },
    ],
    [
      'conditional writes',
      ({ aws }) => (aws.keepsPutIfAbsent = false),
      { severity: 'error', message: expect.stringContaining('conditional writes') },
    ],
    [
      'credentials',
      ({ aws }) => aws.fail('identity', 'InvalidClientTokenId', { httpStatus: 403 }),
      { severity: 'error', remedy: expect.stringContaining('AWS_PROFILE'), failure: 'auth' },
    ],
    [
      'the role of spot machines',
      ({ aws }) => (aws.roles = []),
      { severity: 'warning', remedy: expect.stringContaining('create-service-linked-role'), failure: 'auth' },
    ],
    [
      'the right time',
      ({ aws }) => (aws.clockAheadMs = 6 * 60_000),
      { severity: 'warning', message: 'the clock of this machine is 6m behind that of AWS' },
    ],
    [
      'the image',
      ({ aws }) => aws.fail('parameter', 'ParameterNotFound'),
      { severity: 'error', remedy: expect.stringContaining('CRUCIBLE_EC2_IMAGE') },
    ],
  ])('says that %s is missing, and how to fix it', async (_name, breakIt, problem) => {
    breakIt(h)
    expect(await check()).toContainEqual(expect.objectContaining(problem))
    expect([...h.aws.objects].filter(() => h.aws.keepsPutIfAbsent)).toEqual([])
  })

  it('asks for all permissions of docs/reference/aws-account.md, and can do without those of the second group', async () => {
    const page = readFileSync(join(__dirname, '../../../../docs/reference/aws-account.md'), 'utf8')
    const [needed, useful] = (
      JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!) as { Action: string[] }[]
    ).map(({ Action }) => Action)
    h.aws.denied = [...needed!, ...useful!]
    const denied = (wanted: string): string[] =>
      h.aws.denied.filter((action) => severities.get(`Allow ${action} in its policies.`) === wanted)
    const severities = new Map((await check()).map(({ remedy, severity }) => [remedy, severity]))
    expect(denied('error')).toEqual(needed)
    expect(denied('warning')).toEqual(useful)
  })

  it('names a missing permission once that blocks several things, and checks everything else', async () => {
    h.aws.denied = ['ec2:DescribeSubnets']
    const message = 'User: me is not authorized to perform: ec2:DescribeSubnets'
    h.aws.fail('subnets', 'UnauthorizedOperation', { httpStatus: 403, message })
    expect(await check()).toEqual([
      expect.objectContaining({ severity: 'error', remedy: 'Allow ec2:DescribeSubnets in its policies.' }),
    ])
    h = new FakeHarness()
    h.aws.groups = []
    const unreadable = 'User: me is not authorized to perform: ec2:DescribeRouteTables'
    h.aws.fail('defaultRoute', 'UnauthorizedOperation', { httpStatus: 403, message: unreadable })
    expect(await check()).toMatchObject([
      { severity: 'error', remedy: expect.stringContaining('create-security-group') },
      { severity: 'warning', message: unreadable, remedy: 'Allow ec2:DescribeRouteTables in its policies.' },
    ])
  })

  it('says that prices are old ones where the list cannot be reached', async () => {
    h.aws.prices = undefined
    expect(await check()).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringMatching(/price list cannot be reached.* on 2026-01-19/),
        remedy: expect.stringContaining('pricing:GetProducts'),
      }),
    ])
  })

  it('asks for the permissions of the role, not of one session of it', async () => {
    await check()
    const asked = h.aws.calls.filter(({ name }) => name === 'deniedActions').map(({ detail }) => detail)
    expect(asked).toContain('arn:aws:iam::123456789012:role/crucible')
    expect(asked.join()).not.toContain(':sts:')
  })

  it('wants the role of the machines to have nothing of the store, unless machines get no grants', async () => {
    h.aws.machineMay = ['s3:PutObject']
    expect(await check()).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringContaining('the role machine of the machines may use the store (s3:PutObject)'),
        remedy: expect.stringContaining('`crucible setup aws`'),
      }),
    ])
    h = new FakeHarness({ hasGrants: false }, { storeUrl: 's3://bucket' })
    expect(await check()).toEqual([
      expect.objectContaining({
        severity: 'error',
        message: expect.stringMatching(
          /lacks permissions for the store \(s3:GetObject, .*CRUCIBLE_EC2_GRANTS is "no"/,
        ),
      }),
    ])
    h.aws.machineMay = ['GetObject', 'PutObject', 'DeleteObject', 'AbortMultipartUpload'].map(
      (name) => `s3:${name}`,
    )
    h.aws.machineMay.push('s3:ListMultipartUploadParts', 's3:ListBucket')
    expect(await check()).toEqual([])
  })

  it.each(['ssm', 'ssmmessages', 's3'])('wants the endpoint %s without another way out', async (name) => {
    h = new FakeHarness()
    h.aws.defaultRoute = undefined
    h.aws.endpoints = ['s3', 'ssm', 'ssmmessages'].filter((one) => one !== name)
    const [problem] = await check()
    expect(problem).toMatchObject({
      severity: 'error',
      remedy: expect.stringContaining(`endpoints for ${name},`),
    })
  })

  it('is content with one subnet that has a way out, and with endpoints instead of one', async () => {
    h.aws.subnets = h.aws.subnets.map((subnet, at) => ({ ...subnet, givesPublicAddress: at === 0 }))
    expect((await check()).map(({ severity }) => severity)).toEqual(['warning'])
    h = new FakeHarness()
    h.aws.defaultRoute = undefined
    h.aws.endpoints = ['s3', 'ssm', 'ssmmessages']
    expect(await check()).toEqual([])
  })
})
