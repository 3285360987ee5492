import {
  CreateTagsCommand,
  DescribeRegionsCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2'
import {
  GetInstanceProfileCommand,
  GetRoleCommand,
  ListAttachedRolePoliciesCommand,
  SimulatePrincipalPolicyCommand,
} from '@aws-sdk/client-iam'
import {
  GetServiceQuotaCommand,
  ListServiceQuotasCommand,
  RequestServiceQuotaIncreaseCommand,
} from '@aws-sdk/client-service-quotas'
import { DescribeInstanceInformationCommand, SendCommandCommand } from '@aws-sdk/client-ssm'
import {
  AssumeRoleCommand,
  GetCallerIdentityCommand,
  GetFederationTokenCommand,
  type AssumeRoleCommandInput,
} from '@aws-sdk/client-sts'
import { paginateGetProducts } from '@aws-sdk/client-pricing'
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  clientsOf,
  IMAGE,
  refusal,
  stopClouds,
  testCloud,
  UP_MS,
  type Clients,
  type TestCloud,
} from './support'

afterEach(stopClouds)

const GRANT = 'arn:aws:iam::111122223333:role/crucible-grant'
const MACHINE = 'arn:aws:iam::111122223333:role/crucible-machine'

async function assume(
  { cloud, clients }: TestCloud,
  more: Partial<AssumeRoleCommandInput> = {},
  by = clients.sts,
): Promise<Clients> {
  const { Credentials } = await by.send(
    new AssumeRoleCommand({ RoleArn: GRANT, RoleSessionName: 'job-1', ...more }),
  )
  return clientsOf(cloud.endpoint, {
    accessKeyId: Credentials!.AccessKeyId!,
    secretAccessKey: Credentials!.SecretAccessKey!,
    sessionToken: Credentials!.SessionToken!,
  })
}

describe('federated users', () => {
  const policy = JSON.stringify({
    Statement: [{ Effect: 'Allow', Action: ['ec2:DescribeRegions', 'iam:GetRole'], Resource: '*' }],
  })
  const federate = async ({ cloud, clients }: TestCloud, input: object = {}, by = clients.sts) => {
    const answer = await by.send(new GetFederationTokenCommand({ Name: 'job-1', Policy: policy, ...input }))
    const { AccessKeyId, SecretAccessKey, SessionToken } = answer.Credentials!
    const keys = { accessKeyId: AccessKeyId!, secretAccessKey: SecretAccessKey!, sessionToken: SessionToken! }
    return { answer, clients: clientsOf(cloud.endpoint, keys) }
  }

  it('may do what both their user and their policy allow, for as long as was asked', async () => {
    const at = await testCloud()
    const { answer, clients } = await federate(at, { DurationSeconds: 129_600 })
    expect(answer.FederatedUser).toEqual({
      FederatedUserId: '111122223333:job-1',
      Arn: 'arn:aws:sts::111122223333:federated-user/job-1',
    })
    expect(answer.Credentials!.Expiration!.getTime() - Date.now()).toBeGreaterThan(129_000_000)
    await clients.ec2.send(new DescribeRegionsCommand({}))
    expect((await clients.sts.send(new GetCallerIdentityCommand({}))).Arn).toContain('federated-user/job-1')
    const denied = [
      await refusal(clients.ssm.send(new DescribeInstanceInformationCommand({}))),
      await refusal(clients.iam.send(new GetRoleCommand({ RoleName: 'crucible-machine' }))),
    ]
    expect(denied.map(({ status }) => status)).toEqual([400, 403])
  })

  it('are allowed nothing without a policy, and are no users who could make others', async () => {
    const at = await testCloud()
    const { clients } = await federate(at, { Policy: undefined })
    expect(await refusal(clients.ec2.send(new DescribeRegionsCommand({})))).toMatchObject({ status: 403 })
    expect(await refusal(federate(at, {}, clients.sts))).toMatchObject({ code: 'AccessDenied', status: 403 })
    expect(await refusal(federate(at, {}, (await assume(at)).sts))).toMatchObject({ code: 'AccessDenied' })
    expect(await refusal(federate(at, { DurationSeconds: 60 }))).toMatchObject({ code: 'ValidationError' })
  })

  it('last no longer than the world has it', async () => {
    const { answer } = await federate(await testCloud({ durations: { session: '10s' } }))
    expect(answer.Credentials!.Expiration!.getTime() - Date.now()).toBeLessThan(11_000)
  })
})

describe('a permissions boundary', () => {
  const everything = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }] }
  const boundary = {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: ['ec2:DescribeRegions', 'sts:*'], Resource: '*' }],
  }

  it('limits a user, and the sessions of a role', async () => {
    const at = await testCloud({
      users: { test: { accessKeyId: 'test', secretAccessKey: 'test', policies: { everything }, boundary } },
      roles: { 'crucible-grant': { policies: { everything }, boundary } },
    })
    for (const { ec2, ssm } of [at.clients, await assume(at)]) {
      await ec2.send(new DescribeRegionsCommand({}))
      expect(await refusal(ssm.send(new DescribeInstanceInformationCommand({})))).toMatchObject({
        code: 'AccessDeniedException',
      })
    }
  })
})

describe('the owner of the account', () => {
  it('is the root user, which no role takes', async () => {
    const root = { accessKeyId: 'owner', secretAccessKey: 'secret', managed: ['AdministratorAccess'] }
    const at = await testCloud({ users: { root } })
    const { sts } = clientsOf(at.cloud.endpoint, root)
    expect(await sts.send(new GetCallerIdentityCommand({}))).toMatchObject({
      Arn: 'arn:aws:iam::111122223333:root',
      UserId: '111122223333',
    })
    expect(await refusal(assume(at, {}, sts))).toMatchObject({ code: 'AccessDenied', status: 403 })
  })
})

describe('signatures', () => {
  it('that do not hold are refused in the words of each service', async () => {
    const { cloud } = await testCloud()
    const asked = async (words: Parameters<typeof clientsOf>[1]) => {
      const { ec2, ssm, sts } = clientsOf(cloud.endpoint, words)
      const answers = [
        await refusal(ec2.send(new DescribeRegionsCommand({}))),
        await refusal(ssm.send(new DescribeInstanceInformationCommand({}))),
        await refusal(sts.send(new GetCallerIdentityCommand({}))),
      ]
      return answers.map(({ code, status }) => `${code} ${status}`)
    }
    expect(await asked({ secretAccessKey: 'wrong' })).toEqual([
      'AuthFailure 401',
      'InvalidSignatureException 400',
      'SignatureDoesNotMatch 403',
    ])
    expect(await asked({ accessKeyId: 'nobody' })).toEqual([
      'AuthFailure 401',
      'UnrecognizedClientException 400',
      'InvalidClientTokenId 403',
    ])
    expect(await asked({ sessionToken: 'stray' })).toEqual([
      'AuthFailure 401',
      'UnrecognizedClientException 400',
      'InvalidClientTokenId 403',
    ])
    expect(cloud.journal.calls().every(({ caller }) => caller === undefined)).toBe(true)
  })

  it('that are more than five minutes off are refused, and the SDK learns from the answer', async () => {
    const { cloud } = await testCloud()
    const { ec2 } = clientsOf(cloud.endpoint)
    ec2.config.systemClockOffset = -6 * 60_000
    expect(await refusal(ec2.send(new DescribeRegionsCommand({})))).toMatchObject({
      code: 'RequestExpired',
      status: 400,
    })
    await ec2.send(new DescribeRegionsCommand({}))
    ec2.config.systemClockOffset = 4 * 60_000
    await ec2.send(new DescribeRegionsCommand({}))
    expect(cloud.journal.calls().map(({ outcome }) => outcome)).toEqual(['RequestExpired', 'ok', 'ok'])
  })

  it('are missed if a request has none', async () => {
    const { cloud } = await testCloud()
    const answer = await fetch(cloud.endpoint, {
      method: 'POST',
      body: 'Action=DescribeRegions&Version=2016-11-15',
    })
    expect([answer.status, await answer.text()]).toEqual([
      403,
      expect.stringContaining('<Code>MissingAuthenticationToken</Code>'),
    ])
  })

  it('for a region that the world does not have are refused', async () => {
    const { cloud } = await testCloud()
    const { code, message } = await refusal(
      clientsOf(cloud.endpoint, { region: 'eu-west-9' }).ec2.send(new DescribeRegionsCommand({})),
    )
    expect([code, message]).toEqual(['AuthFailure', expect.stringContaining('its world has us-east-1')])
  })
})

describe('sessions', () => {
  it('are who they say, as long as they last', async () => {
    const test = await testCloud()
    const { sts, ec2, ssm } = await assume(test, { DurationSeconds: 900 })
    expect(await sts.send(new GetCallerIdentityCommand({}))).toMatchObject({
      Arn: 'arn:aws:sts::111122223333:assumed-role/crucible-grant/job-1',
      Account: '111122223333',
      UserId: expect.stringMatching(/^AROA\w+:job-1$/),
    })
    await test.clock.advance(901_000)
    expect((await refusal(sts.send(new GetCallerIdentityCommand({})))).code).toBe('ExpiredToken')
    expect((await refusal(ec2.send(new DescribeRegionsCommand({})))).code).toBe('RequestExpired')
    expect((await refusal(ssm.send(new DescribeInstanceInformationCommand({})))).code).toBe(
      'ExpiredTokenException',
    )
  })

  it('may do what both their role and their policy allow', async () => {
    const test = await testCloud({
      roles: { 'crucible-grant': { managed: ['AmazonEC2FullAccess', 'AmazonSSMFullAccess'] } },
    })
    const Policy = JSON.stringify({
      Version: '2012-10-17',
      Statement: { Effect: 'Allow', Action: ['ec2:Describe*', 's3:*'], Resource: '*' },
    })
    const { ec2, ssm } = await assume(test, { Policy })
    await ec2.send(new DescribeRegionsCommand({}))
    const tags = ec2.send(
      new CreateTagsCommand({ Resources: ['i-00000000000000000'], Tags: [{ Key: 'a', Value: 'b' }] }),
    )
    expect(await refusal(tags)).toMatchObject({ code: 'UnauthorizedOperation', status: 403 })
    expect((await refusal(ssm.send(new DescribeInstanceInformationCommand({})))).code).toBe(
      'AccessDeniedException',
    )
  })

  it('chained to another last an hour at most', async () => {
    const roles = { 'crucible-grant': { managed: ['AdministratorAccess'], sessionMax: '12h' } }
    const test = await testCloud({ roles })
    const { sts } = await assume(test, { DurationSeconds: 43_200 })
    expect((await refusal(assume(test, { DurationSeconds: 3601 }, sts))).code).toBe('ValidationError')
    await assume(test, { DurationSeconds: 3600 }, sts)
  })

  it.each<[string, Partial<AssumeRoleCommandInput>]>([
    ['AccessDenied', { RoleArn: 'arn:aws:iam::111122223333:role/none' }],
    ['AccessDenied', { RoleArn: MACHINE }],
    ['ValidationError', { DurationSeconds: 899 }],
    ['ValidationError', { RoleSessionName: 'a b' }],
    ['ValidationError', { Policy: `{"a":"${'x'.repeat(2048)}"}` }],
    ['MalformedPolicyDocumentException', { Policy: '{"Statement": 1}' }],
    ['ValidationError', { ExternalId: 'one' }],
  ])('are refused with %s', async (code, more) => {
    expect((await refusal(assume(await testCloud(), more))).code).toBe(code)
  })
})

describe('permissions', () => {
  it('of users come from the world', async () => {
    const policy = {
      Statement: [
        { Effect: 'Allow', Action: 'ec2:*', Resource: '*' },
        { Effect: 'Deny', Action: 'ec2:RunInstances', Resource: '*' },
      ],
    }
    const { cloud } = await testCloud({
      users: { ann: { accessKeyId: 'ann', secretAccessKey: 's', policies: { p: policy } } },
    })
    const { ec2, iam } = clientsOf(cloud.endpoint, { accessKeyId: 'ann', secretAccessKey: 's' })
    await ec2.send(new DescribeRegionsCommand({}))
    const launch = ec2.send(
      new RunInstancesCommand({ ImageId: IMAGE, MinCount: 1, MaxCount: 1, DryRun: true }),
    )
    expect((await refusal(launch)).code).toBe('UnauthorizedOperation')
    expect((await refusal(iam.send(new GetRoleCommand({ RoleName: 'x' })))).code).toBe('AccessDenied')
  })

  it('are simulated with resources and conditions', async () => {
    const policy = {
      Statement: [
        { Effect: 'Allow', Action: ['s3:GetObject', 's3:PutObject'], Resource: 'arn:aws:s3:::b/jobs/*' },
        {
          Effect: 'Allow',
          Action: 's3:ListBucket',
          Resource: 'arn:aws:s3:::b',
          Condition: { StringLike: { 's3:prefix': ['jobs/*'] } },
        },
      ],
    }
    const { clients } = await testCloud({ roles: { worker: { policies: { p: policy } } } })
    const ask = async (action: string, resource: string, prefix?: string) => {
      const { EvaluationResults } = await clients.iam.send(
        new SimulatePrincipalPolicyCommand({
          PolicySourceArn: 'arn:aws:iam::111122223333:role/worker',
          ActionNames: [action],
          ResourceArns: [resource],
          ...(prefix === undefined
            ? {}
            : {
                ContextEntries: [
                  { ContextKeyName: 's3:prefix', ContextKeyType: 'string', ContextKeyValues: [prefix] },
                ],
              }),
        }),
      )
      return EvaluationResults![0]!.EvalDecision
    }
    expect(await ask('s3:PutObject', 'arn:aws:s3:::b/jobs/1/a')).toBe('allowed')
    expect(await ask('s3:PutObject', 'arn:aws:s3:::b/other')).toBe('implicitDeny')
    expect(await ask('s3:ListBucket', 'arn:aws:s3:::b')).toBe('implicitDeny')
    expect(await ask('s3:ListBucket', 'arn:aws:s3:::b', 'jobs/1/')).toBe('allowed')
  })

  it('go by tags and Regions, for what ends machines, commands them and tags them', async () => {
    const tag = 'crucible:deployment'
    const isOurs = { Null: { [`aws:ResourceTag/${tag}`]: 'false' } }
    const document = 'arn:aws:ssm:us-east-1::document/AWS-RunShellScript'
    const allow = (Action: string | string[], Resource: string, Condition = {}) => {
      return { Effect: 'Allow', Action, Resource, Condition }
    }
    const policy = {
      Statement: [
        allow('ec2:RunInstances', '*', { StringEquals: { 'aws:RequestedRegion': 'us-east-1' } }),
        allow('ec2:DescribeRegions', '*', { StringEquals: { 'aws:RequestedRegion': 'eu-west-1' } }),
        allow('ec2:CreateTags', '*', { StringEquals: { 'ec2:CreateAction': 'RunInstances' } }),
        allow('ec2:TerminateInstances', 'arn:aws:ec2:us-east-1:111122223333:instance/*', isOurs),
        allow('ssm:SendCommand', document),
        allow('ssm:SendCommand', 'arn:aws:ec2:us-east-1:111122223333:instance/*', {
          StringLike: { [`ssm:resourceTag/${tag}`]: '*' },
        }),
      ],
    }
    const { cloud, clock, clients } = await testCloud({
      users: { ann: { accessKeyId: 'ann', secretAccessKey: 's', policies: { p: policy } } },
    })
    const ann = clientsOf(cloud.endpoint, { accessKeyId: 'ann', secretAccessKey: 's' })
    const launch = async (by: Clients, key: string, more: Partial<RunInstancesCommandInput> = {}) => {
      const TagSpecifications = [{ ResourceType: 'instance' as const, Tags: [{ Key: key, Value: 'd' }] }]
      const wish = { ImageId: IMAGE, MinCount: 1, MaxCount: 1, TagSpecifications, ...more }
      const { Instances } = await by.ec2.send(new RunInstancesCommand(wish))
      return Instances![0]!.InstanceId!
    }
    const theirs = await launch(clients, 'other')
    const ours = await launch(clients, tag, { IamInstanceProfile: { Name: 'crucible-machine' } })
    await clock.advance(UP_MS)
    const end = (id: string) => ann.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }))
    const command = (InstanceIds: string[], DocumentName = 'AWS-RunShellScript') =>
      ann.ssm.send(new SendCommandCommand({ DocumentName, InstanceIds, Parameters: { commands: ['true'] } }))
    const tagIt = new CreateTagsCommand({ Resources: [theirs], Tags: [{ Key: tag, Value: 'd' }] })
    const denied = [
      ann.ec2.send(new DescribeRegionsCommand({})),
      ann.ec2.send(tagIt),
      end(theirs),
      command([theirs]),
      command([ours, theirs]),
      command([ours], 'AWS-RunPatchBaseline'),
    ]
    const codes = await Promise.all(denied.map(async (each) => (await refusal(each)).code))
    const [unauthorized, forbidden] = ['UnauthorizedOperation', 'AccessDeniedException']
    expect(codes).toEqual([...Array(3).fill(unauthorized), ...Array(3).fill(forbidden)])
    await command([ours])
    await end(ours)
    await end(await launch(ann, tag))
  })

  it('of profiles can be read', async () => {
    const { clients } = await testCloud()
    const { InstanceProfile } = await clients.iam.send(
      new GetInstanceProfileCommand({ InstanceProfileName: 'crucible-machine' }),
    )
    expect(InstanceProfile!.Roles![0]!.Arn).toBe(MACHINE)
    const { AttachedPolicies } = await clients.iam.send(
      new ListAttachedRolePoliciesCommand({ RoleName: 'crucible-machine' }),
    )
    expect(AttachedPolicies!.map(({ PolicyName }) => PolicyName)).toContain('AmazonSSMManagedInstanceCore')
    expect(
      (await refusal(clients.iam.send(new GetInstanceProfileCommand({ InstanceProfileName: 'none' })))).code,
    ).toBe('NoSuchEntityException')
  })

  it('of machines come through their metadata, and are renewed', async () => {
    const test = await testCloud({ durations: { profileCredentials: '1h' } })
    await test.clients.ec2.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        MinCount: 1,
        MaxCount: 1,
        IamInstanceProfile: { Name: 'crucible-machine' },
      }),
    )
    await test.clock.advance(UP_MS)
    const [machine] = [...test.machines.values()]
    const read = () =>
      JSON.parse(machine!.metadata('iam/security-credentials/crucible-machine')!) as Record<string, string>
    const first = read()
    const who = (document: Record<string, string>) =>
      clientsOf(test.cloud.endpoint, {
        accessKeyId: document.AccessKeyId!,
        secretAccessKey: document.SecretAccessKey!,
        sessionToken: document.Token!,
      }).sts.send(new GetCallerIdentityCommand({}))
    expect((await who(first)).Arn).toBe(
      `arn:aws:sts::111122223333:assumed-role/crucible-machine/${machine!.id}`,
    )
    expect(read()).toEqual(first)
    await test.clock.advance(50 * 60_000)
    const second = read()
    expect(second.AccessKeyId).not.toBe(first.AccessKeyId)
    await who(second)
    await test.clock.advance(15 * 60_000)
    expect((await refusal(who(first))).code).toBe('ExpiredToken')
  })
})

interface Product {
  product: { attributes: { instanceType: string } }
  terms: { OnDemand: Record<string, { priceDimensions: Record<string, { pricePerUnit: { USD: string } }> }> }
}

describe('quotas and prices', () => {
  it('tell what the account may have, and take wishes for more', async () => {
    const { clients } = await testCloud({ quotas: { 'L-DB2E81BA': 8 } })
    const g = { ServiceCode: 'ec2', QuotaCode: 'L-DB2E81BA' }
    expect((await clients.quotas.send(new GetServiceQuotaCommand(g))).Quota).toMatchObject({
      Value: 8,
      QuotaName: 'Running On-Demand G and VT instances',
    })
    expect(
      (await clients.quotas.send(new ListServiceQuotasCommand({ ServiceCode: 'ec2' }))).Quotas!.length,
    ).toBeGreaterThan(5)
    const more = () => clients.quotas.send(new RequestServiceQuotaIncreaseCommand({ ...g, DesiredValue: 64 }))
    expect((await more()).RequestedQuota).toMatchObject({
      Status: 'PENDING',
      DesiredValue: 64,
      Created: expect.any(Date),
    })
    expect((await refusal(more())).code).toBe('ResourceAlreadyExistsException')
    expect(
      (
        await refusal(
          clients.quotas.send(new GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode: 'L-00000000' })),
        )
      ).code,
    ).toBe('NoSuchResourceException')
  })

  it('list products page by page', async () => {
    const { clients } = await testCloud({
      prices: [{ type: 'g5.xlarge', capacity: 'on-demand', usdPerHour: 2 }],
    })
    const Filters = [
      { Type: 'TERM_MATCH' as const, Field: 'regionCode', Value: 'us-east-1' },
      { Type: 'TERM_MATCH' as const, Field: 'operatingSystem', Value: 'Linux' },
    ]
    const prices = new Map<string, number>()
    let pages = 0
    for await (const { PriceList } of paginateGetProducts(
      { client: clients.pricing, pageSize: 10 },
      { ServiceCode: 'AmazonEC2', Filters },
    )) {
      pages += 1
      for (const text of PriceList ?? []) {
        const { product, terms } = JSON.parse(String(text)) as Product
        const [offer] = Object.values(terms.OnDemand)
        const [dimension] = Object.values(offer!.priceDimensions)
        prices.set(product.attributes.instanceType, Number(dimension!.pricePerUnit.USD))
      }
    }
    expect(pages).toBeGreaterThan(3)
    expect([prices.get('g5.xlarge'), prices.get('p5.48xlarge')]).toEqual([2, 55.04])
  })
})
