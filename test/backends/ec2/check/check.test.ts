import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Backend, Problem } from '../../../../backends/backend'
import type { SecurityGroup } from '../../../../backends/ec2/sdk/api'
import { patiently } from '../../harness'
import { Ec2Harness, type PaperHarness, type PaperOptions } from '../harness'

let h: PaperHarness
afterEach(() => h.dispose())

const start = async (options: PaperOptions = {}): Promise<void> => {
  h = await Ec2Harness.onPaper(options)
}
const check = (): Promise<Problem[]> => h.backend.check(patiently())

const ROLE = 'crucible-machine'
const machineRole = (managed: string[], policies = {}): PaperOptions['world'] => ({
  roles: { [ROLE]: { managed, policies, hasProfile: true, trusts: ['ec2.amazonaws.com'] } },
})
type Subnets = NonNullable<NonNullable<PaperOptions['world']>['regions']>[string]['subnets']
const withSubnets = (subnets: Subnets, groups = [ROLE]): PaperOptions['world'] => ({
  regions: { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b'], subnets, groups } },
  reservations: [],
})

/** The groups of the machines, as their owner has changed them. */
const changeGroups = (change: Partial<SecurityGroup>): Backend =>
  h.reopenWith((api) => ({
    ...api,
    network: {
      ...api.network,
      securityGroups: async (...asked) =>
        (await api.network.securityGroups(...asked)).map((group) => ({ ...group, ...change })),
    },
  }))

// quirks.test.ts has what an account lacks in its permissions, profile, quotas, plan, types, egress, bucket, clock and roles.
describe('the check of EC2', () => {
  it('finds nothing where nothing is wrong', async () => {
    await start()
    expect(await check()).toEqual([])
  })

  it('reports only the root user where that is the worker', async () => {
    await start()
    const backend = h.reopenWith((api) => ({
      ...api,
      account: {
        ...api.account,
        identity: async () => ({
          account: '111122223333',
          arn: 'arn:aws:iam::111122223333:root',
          clockAheadMs: 0,
        }),
      },
    }))
    expect(await backend.check(patiently())).toEqual([
      {
        severity: 'error',
        failure: 'auth',
        message: expect.stringContaining('root user'),
        remedy: expect.stringContaining('aws configure sso'),
      },
    ])
  })

  it('tells a right that a permissions boundary takes away from one that no policy gives', async () => {
    await start()
    const denied = [
      { action: 'ec2:CreateFleet', isOfBoundary: true },
      { action: 'ec2:RunInstances', isOfBoundary: false },
    ]
    const backend = h.reopenWith((api) => ({
      ...api,
      account: {
        ...api.account,
        deniedActions: async (_, { actions }) => denied.filter(({ action }) => actions.includes(action)),
      },
    }))
    const found = await backend.check(patiently())
    const about = (action: string): Problem | undefined =>
      found.find(({ message }) => message.includes(action))
    expect(about('ec2:CreateFleet')).toMatchObject({
      severity: 'error',
      message: expect.stringMatching(/^the permissions boundary of arn:.* does not allow ec2:CreateFleet$/),
      remedy: expect.stringContaining('in that boundary'),
    })
    expect(about('ec2:RunInstances')).toMatchObject({ message: expect.stringContaining('lacks permission') })
  })

  it.each<[string, PaperOptions, () => Backend | undefined | void, object]>([
    [
      'the right to ask for permissions',
      {},
      () => h.fail('SimulatePrincipalPolicy', 'AccessDenied', { status: 403, times: 99 }),
      { severity: 'warning', remedy: expect.stringContaining('iam:SimulatePrincipalPolicy') },
    ],
    [
      'a security group',
      { world: withSubnets(undefined, []) },
      () => undefined,
      { severity: 'error', remedy: expect.stringMatching(/create-security-group --vpc-id vpc-/) },
    ],
    [
      'a group that lets out',
      {},
      () => changeGroups({ letsOut: false }),
      { severity: 'error', message: expect.stringContaining('allow no outbound traffic') },
    ],
    [
      'a group that lets nothing in',
      {},
      () => changeGroups({ inboundRules: 1 }),
      { severity: 'warning', message: expect.stringContaining('allows inbound traffic') },
    ],
    [
      'the policy of the agent',
      { world: machineRole(['AmazonEC2ReadOnlyAccess']) },
      () => undefined,
      { severity: 'warning', remedy: expect.stringContaining('AmazonSSMManagedInstanceCore') },
    ],
    [
      'quota for spot machines with GPUs',
      { world: { quotas: { 'L-3819A6DF': 0 } } },
      () => undefined,
      { severity: 'warning', remedy: expect.stringContaining('L-3819A6DF'), failure: 'quota' },
    ],
    [
      'credentials',
      {},
      () => h.fail('GetCallerIdentity', 'InvalidClientTokenId', { status: 403, times: 9 }),
      { severity: 'error', remedy: expect.stringContaining('AWS_PROFILE'), failure: 'auth' },
    ],
    [
      'the image',
      {},
      () => h.fail('GetParameter', 'ParameterNotFound', { times: 9 }),
      { severity: 'error', remedy: expect.stringContaining('CRUCIBLE_EC2_IMAGE') },
    ],
  ])('says that %s is missing, and how to fix it', async (_name, options, breakIt, problem) => {
    await start(options)
    const backend = breakIt() ?? (await h.reopen())
    expect(await backend.check(patiently())).toContainEqual(expect.objectContaining(problem))
  })

  it('asks for all permissions of docs/reference/aws-account.md, and can do without those of the second group', async () => {
    const page = readFileSync(join(__dirname, '../../../../docs/reference/aws-account.md'), 'utf8')
    const [needed, useful] = (
      JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!) as { Action: string[] }[]
    ).map(({ Action }) => Action)
    const all = [...needed!, ...useful!]
    await start({
      world: {
        users: {
          worker: {
            accessKeyId: 'AKIAWORKER',
            secretAccessKey: 'secret',
            managed: ['AdministratorAccess'],
            // Denied to the simulation only: the calls of the check are made by another user.
            policies: { no: { Statement: [{ Effect: 'Deny', Action: all, Resource: '*' }] } },
          },
        },
      },
    })
    const worker = 'arn:aws:iam::111122223333:user/worker'
    const backend = h.reopenWith((api) => ({
      ...api,
      account: {
        ...api.account,
        identity: async (signal) => ({ ...(await api.account.identity(signal)), arn: worker }),
      },
    }))
    const problems = await backend.check(patiently())
    const severities = new Map(problems.map(({ remedy, severity }) => [remedy, severity]))
    const denied = (wanted: string): string[] =>
      all.filter((action) => severities.get(`Allow ${action} in its policies.`) === wanted)
    expect(denied('error')).toEqual(needed)
    expect(denied('warning')).toEqual(useful)
  })

  it('names a missing permission once that blocks several things, and checks everything else', async () => {
    await start({ world: withSubnets(undefined, []) })
    const message = 'User: me is not authorized to perform: ec2:DescribeRouteTables'
    h.fail('DescribeRouteTables', 'UnauthorizedOperation', { status: 403, message, times: 9 })
    expect(await check()).toMatchObject([
      { severity: 'error', remedy: expect.stringContaining('create-security-group') },
      { severity: 'warning', message, remedy: 'Allow ec2:DescribeRouteTables in its policies.' },
    ])
  })

  it('says that prices are old ones where the list cannot be reached', async () => {
    await start()
    h.cloud.addFault({
      fault: 'error',
      code: 'InternalErrorException',
      status: 500,
      where: { service: 'pricing' },
    })
    expect(await check()).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringMatching(/price list has not been read.* on 2026-07-20/),
        remedy: expect.stringContaining('pricing:GetProducts'),
      }),
    ])
  })

  it('asks for the permissions of the role, not of one session of it', async () => {
    await start()
    const session = 'arn:aws:sts::111122223333:assumed-role/crucible-grant/worker'
    const backend = h.reopenWith((api) => ({
      ...api,
      account: {
        ...api.account,
        identity: async (signal) => ({ ...(await api.account.identity(signal)), arn: session }),
      },
    }))
    await backend.check(patiently())
    const asked = h.calls('SimulatePrincipalPolicy').map(({ parameters }) => JSON.stringify(parameters))
    expect(asked.join()).toContain('arn:aws:iam::111122223333:role/crucible-grant')
    expect(asked.join()).not.toContain(':sts:')
  })

  it('wants the role of the machines to have nothing of the store, unless machines get no grants', async () => {
    const core = 'AmazonSSMManagedInstanceCore'
    const mayWrite = { a: { Statement: [{ Effect: 'Allow', Action: 's3:PutObject', Resource: '*' }] } }
    const problemsOf = async (policies: object, hasGrants = true): Promise<Problem[]> => {
      await h?.dispose()
      // The store itself does not answer here.
      const deps = { storeUrl: 's3://bucket?region=us-east-1' }
      await start({ world: machineRole([core], policies), config: { hasGrants }, deps })
      return (await check()).filter(({ message }) => message.includes('of the machines'))
    }
    expect(await problemsOf(mayWrite)).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringContaining(`the role ${ROLE} of the machines may use the store (s3:PutObject)`),
        remedy: expect.stringContaining('`crucible setup aws`'),
      }),
    ])
    expect(await problemsOf({}, false)).toEqual([
      expect.objectContaining({
        severity: 'error',
        message: expect.stringMatching(
          /lacks permissions for the store \(s3:GetObject, .*CRUCIBLE_EC2_GRANTS is "no"/,
        ),
      }),
    ])
    const all = { a: { Statement: [{ Effect: 'Allow', Action: 's3:*', Resource: '*' }] } }
    expect(await problemsOf(all, false)).toEqual([])
  })

  it('is content with one subnet that has a way out, and with endpoints instead of one', async () => {
    await start({
      world: withSubnets([
        { zone: 'us-east-1a', egress: 'public', isDefault: true },
        { zone: 'us-east-1b', egress: 'none', isDefault: true },
      ]),
    })
    expect((await check()).map(({ severity }) => severity)).toEqual(['warning'])
    await h.dispose()
    await start({ world: withSubnets([{ zone: 'us-east-1a', egress: 'endpoints', isDefault: true }]) })
    expect((await check()).filter(({ severity }) => severity === 'error')).toEqual([])
  })
})

describe('the way out of a subnet', () => {
  /** A subnet with a route and endpoints that the cloud's own networks do not have. */
  async function problems(found: {
    route?: string
    endpoints?: string[]
    isPublic?: boolean
  }): Promise<Problem[]> {
    await start()
    const backend = h.reopenWith((api) => ({
      ...api,
      network: {
        ...api.network,
        subnets: async (...asked) =>
          (await api.network.subnets(...asked)).map((subnet) => ({
            ...subnet,
            givesPublicAddress: found.isPublic ?? true,
          })),
        defaultRoute: async () => found.route,
        endpoints: async () => found.endpoints ?? [],
      },
    }))
    return backend.check(patiently())
  }

  it('through an internet gateway takes a public address', async () => {
    expect(await problems({ route: 'igw-1', isPublic: false })).toContainEqual(
      expect.objectContaining({
        severity: 'error',
        remedy: expect.stringContaining('map-public-ip-on-launch'),
      }),
    )
  })

  it.each(['ssm', 'ssmmessages', 's3'])('without a route takes the endpoint %s', async (name) => {
    const endpoints = ['s3', 'ssm', 'ssmmessages'].filter((one) => one !== name)
    expect((await problems({ endpoints }))[0]).toMatchObject({
      severity: 'error',
      remedy: expect.stringContaining(`endpoints for ${name},`),
    })
  })
})
