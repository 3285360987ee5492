/**
 * Set-up against moto, whose CloudFormation creates, changes and deletes most resources of the template. It has no bucket policies, no
 * bucket keys, no service-linked roles, no drift, no events of resources and no outputs of change sets; its change sets list resources whose
 * condition is false, its updates miss parameters in conditions, and it cannot delete route tables. stack.test.ts covers those with recorded answers.
 */
import {
  CreateLaunchTemplateCommand,
  DescribeLaunchTemplatesCommand,
  DescribeSubnetsCommand,
  EC2Client,
  GetEbsDefaultKmsKeyIdCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2'
import { CreateRoleCommand, GetRolePolicyCommand, ListRolesCommand } from '@aws-sdk/client-iam'
import {
  CreateBucketCommand,
  GetBucketEncryptionCommand,
  ListBucketsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { createAccountSetup, type SetupOptions } from '../../../../backends/ec2/setup'
import { createClients, type Clients } from '../../../../backends/ec2/setup/clients'
import type { AccountSetup, Step } from '../../../../backends/account'
import { awsClients } from '../../../support/aws-clients'
import { hasMotoIn, startMoto, type Moto } from '../../../support/moto'
import { patiently } from '../../harness'
import { ACCOUNT, BUCKET, preparedTemplate } from './accounts'
import type { Statement } from './template'

jest.setTimeout(240_000)

const { python } = awsClients()
const hasMoto = python !== undefined && hasMotoIn(python)

const OWN_TAGS = { team: 'ml', 'cost-center': '42' }

let server: Moto
let clients: Clients

/** The key of accounts that have set none of their own. */
const AWS_KEY = 'alias/aws/ebs'
let diskKey = AWS_KEY

/** Answers the call that moto lacks. */
function answerDiskKey(): void {
  const { send } = EC2Client.prototype as unknown as { send: (...sent: unknown[]) => Promise<unknown> }
  jest.spyOn(EC2Client.prototype, 'send').mockImplementation(function (this: EC2Client, ...sent: unknown[]) {
    if (sent[0] instanceof GetEbsDefaultKmsKeyIdCommand) return Promise.resolve({ KmsKeyId: diskKey })
    return send.apply(this, sent)
  } as never)
}

function setupOf(options: Partial<SetupOptions> = {}): Required<AccountSetup> {
  const { endpoint } = server
  return createAccountSetup({
    prefix: 'crucible',
    hasOwnNetwork: false,
    region: 'us-east-1',
    endpoint,
    ...options,
  })
}

const applied = (setup: AccountSetup): Promise<Step[]> => setup.apply({ ...patiently(), onStep: () => {} })
const removed = (setup: AccountSetup, hasData = false): Promise<Step[]> =>
  setup.remove({ ...patiently(), hasData, onStep: () => {} })
const surveyed = async (options: Partial<SetupOptions> = {}) => setupOf(options).survey(patiently().signal)
const buckets = async () =>
  (await clients.s3.send(new ListBucketsCommand({}))).Buckets!.map(({ Name }) => Name)
const roles = async () =>
  (await clients.iam.send(new ListRolesCommand({}))).Roles!.map(({ RoleName }) => RoleName)

;(hasMoto ? describe : describe.skip)('crucible setup aws', () => {
  beforeAll(async () => {
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
    delete process.env['AWS_SESSION_TOKEN']
    server = await startMoto(python!)
    clients = createClients({ region: 'us-east-1', endpoint: server.endpoint })
    answerDiskKey()
  }, 120_000)
  beforeEach(() => fetch(`${server.endpoint}/moto-api/reset`, { method: 'POST' }))
  afterAll(() => server?.stop())

  it('shows what an account lacks and leaves it as it was', async () => {
    const { place, parts, remarks, settings } = await surveyed()
    expect(place).toMatchObject({ account: ACCOUNT, region: 'us-east-1', prefix: 'crucible' })
    expect([...new Set(parts.map(({ state }) => state))]).toEqual(['missing'])
    expect(parts.map(({ what }) => what)).toEqual(
      expect.arrayContaining(['bucket', 'role', 'security group']),
    )
    expect(remarks.join(' ')).toMatch(/Machines in us-east-1 use the existing network vpc-/)
    expect(settings).not.toHaveProperty('CRUCIBLE_EC2_SECURITY_GROUPS')
    expect(await roles()).toEqual([])
    await expect(surveyed({ region: 'eu-west-1' })).resolves.toBeDefined()
  })

  it('creates it once, with the policies of the template, and removes it with an empty bucket', async () => {
    await applied(setupOf())
    expect((await roles()).sort()).toEqual(
      ['buyer', 'grant', 'machine', 'worker'].map((of) => `crucible-${of}`),
    )
    const { parts, settings } = await surveyed()
    expect([...new Set(parts.map(({ state }) => state))]).toEqual(['there'])
    expect(settings).toEqual({
      CRUCIBLE_BACKENDS: 'ec2',
      CRUCIBLE_EC2_REGION: 'us-east-1',
      CRUCIBLE_EC2_PROFILE: 'crucible-machine',
      CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/crucible-grant`,
      CRUCIBLE_EC2_SECURITY_GROUPS: expect.stringMatching(/^sg-/),
      CRUCIBLE_STORE: `s3://${BUCKET}?region=us-east-1`,
    })
    expect(await applied(setupOf())).toEqual([])
    for (const [policy, wanted] of Object.entries(preparedTemplate().policiesOf('crucible-worker'))) {
      const command = new GetRolePolicyCommand({ RoleName: 'crucible-worker', PolicyName: policy })
      const { PolicyDocument = '' } = await clients.iam.send(command)
      // moto keeps policies of CloudFormation in Python's notation.
      const text = decodeURIComponent(PolicyDocument).replaceAll("'", '"')
      const { Statement } = JSON.parse(text) as { Statement: Statement[] }
      expect(Statement).toEqual(wanted)
    }
    expect(await removed(setupOf())).toMatchObject([{ did: 'removed', part: { name: BUCKET } }])
    expect([await roles(), await buckets()]).toEqual([[], []])
    expect(await removed(setupOf())).toEqual([])
  })

  it('encrypts the bucket with the key of the company, lets its roles use it, and keeps key and path', async () => {
    const kmsKey = `arn:aws:kms:us-east-1:${ACCOUNT}:key/1234abcd`
    diskKey = `arn:aws:kms:us-east-1:${ACCOUNT}:key/5678dcba`
    await applied(setupOf({ kmsKey, rolePath: '/ml/', tags: OWN_TAGS }))
    const { ServerSideEncryptionConfiguration: encryption } = await clients.s3.send(
      new GetBucketEncryptionCommand({ Bucket: BUCKET }),
    )
    expect(encryption!.Rules).toMatchObject([
      { ApplyServerSideEncryptionByDefault: { KMSMasterKeyID: kmsKey } },
    ])
    for (const [role, PolicyName, key] of [
      ['grant', 'key', kmsKey],
      ['worker', 'key', kmsKey],
      ['worker', 'disk-keys', diskKey],
    ]) {
      const command = new GetRolePolicyCommand({ RoleName: `crucible-${role}`, PolicyName })
      const { PolicyDocument = '' } = await clients.iam.send(command)
      expect(decodeURIComponent(PolicyDocument)).toContain(key)
    }
    const { settings } = await surveyed({ tags: OWN_TAGS })
    expect(settings).toMatchObject({
      CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/ml/crucible-grant`,
      CRUCIBLE_EC2_TAGS: 'team=ml,cost-center=42',
    })
    const { ['terraform.tfvars.json']: values } = await setupOf().terraform(patiently().signal)
    expect(JSON.parse(values!)).toMatchObject({
      kms_key_arn: kmsKey,
      disk_key_arns: [diskKey],
      role_path: '/ml/',
    })
    diskKey = AWS_KEY
    await expect(surveyed({ kmsKey: `${kmsKey}5` })).rejects.toThrow(
      /was set up with the key .*:key\/1234abcd, without which/,
    )
    await expect(surveyed({ rolePath: '/' })).rejects.toThrow(/was set up with roles below \/ml\//)
  })

  it('creates a network in each Region that has no default one or where that is wanted, and keeps earlier Regions', async () => {
    const both = { region: 'us-east-1,eu-west-1', hasOwnNetwork: true }
    await applied(setupOf({ hasOwnNetwork: true }))
    await expect(surveyed({ region: 'eu-west-1' })).rejects.toMatchObject({
      failure: { hint: expect.stringContaining('--region us-east-1,eu-west-1') },
    })
    await applied(setupOf(both))
    const { place, settings, parts } = await surveyed()
    expect(place.region).toBe('us-east-1, eu-west-1')
    expect(settings).toMatchObject({
      CRUCIBLE_EC2_REGIONS: 'us-east-1,eu-west-1',
      CRUCIBLE_EC2_SECURITY_GROUPS: expect.stringMatching(/^sg-\w+,sg-\w+$/),
      CRUCIBLE_EC2_SUBNETS: expect.stringMatching(/^(?:subnet-\w+,?){9}$/),
    })
    expect(parts.filter(({ what }) => what === 'role')).toHaveLength(4)
    expect(parts.filter(({ name }) => name.endsWith(' in eu-west-1')).map(({ what }) => what)).toContain(
      'network',
    )
  })

  it('uses an existing bucket unchanged, and refuses one of another Region, roles of others and stacks of others', async () => {
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'mine' }))
    const mine = (await surveyed({ bucket: 'mine' })).parts.find(({ id }) => id === 'Store')
    expect(mine).toMatchObject({ what: 'bucket', name: 'mine', state: 'theirs' })
    const LocationConstraint = 'eu-west-1'
    await clients.s3.send(
      new CreateBucketCommand({ Bucket: 'far', CreateBucketConfiguration: { LocationConstraint } }),
    )
    await clients.iam.send(
      new CreateRoleCommand({ RoleName: 'crucible-worker', AssumeRolePolicyDocument: '{}' }),
    )
    const { parts } = await surveyed({ bucket: 'far' })
    expect(parts.map(({ name, state, remarks }) => [name, state, ...remarks])).toEqual([
      ['far', 'taken', expect.stringMatching(/^is in eu-west-1/)],
      [
        'crucible-worker',
        'taken',
        expect.stringMatching(/^already exists and was not created by this set-up/),
      ],
    ])
    expect(await removed(setupOf({ bucket: 'mine' }), true)).toEqual([])
    expect((await buckets()).sort()).toEqual(['far', 'mine'])
  })

  it('keeps a bucket that has data until its removal is confirmed', async () => {
    await applied(setupOf())
    await clients.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'jobs/a/checkpoint', Body: 'weights' }))
    expect(await removed(setupOf())).toMatchObject([
      { did: 'kept', reason: expect.stringContaining('--with-data') },
    ])
    expect([await roles(), await buckets()]).toEqual([[], [BUCKET]])
    expect((await surveyed()).parts.find(({ id }) => id === 'Store')).toMatchObject({ state: 'theirs' })
    expect(await removed(setupOf(), true)).toMatchObject([{ did: 'removed' }])
    expect(await buckets()).toEqual([])
  })

  it('removes the launch templates of its profile, and no others', async () => {
    await applied(setupOf())
    for (const profile of ['crucible-machine', 'other-machine'])
      await clients.ec2.send(
        new CreateLaunchTemplateCommand({
          LaunchTemplateName: `crucible-${profile}`,
          LaunchTemplateData: { IamInstanceProfile: { Name: profile }, InstanceType: 'm5.large' },
          TagSpecifications: [
            { ResourceType: 'launch-template', Tags: [{ Key: 'crucible:deployment', Value: profile }] },
          ],
        }),
      )
    const { parts } = await setupOf().removal(patiently().signal)
    expect(parts.filter(({ what }) => what === 'launch template')).toMatchObject([
      { name: 'crucible-crucible-machine' },
    ])
    await removed(setupOf())
    const { LaunchTemplates } = await clients.ec2.send(new DescribeLaunchTemplatesCommand({}))
    expect(LaunchTemplates!.map(({ LaunchTemplateName }) => LaunchTemplateName)).toEqual([
      'crucible-other-machine',
    ])
  })

  it('names machines that are in the way of a removal: with its profile or group, or of a deployment without a profile', async () => {
    await applied(setupOf())
    const { CRUCIBLE_EC2_SECURITY_GROUPS: group = '' } = (await surveyed()).settings
    const { Subnets } = await clients.ec2.send(new DescribeSubnetsCommand({}))
    const run = async (more: object): Promise<string> => {
      const common = { ImageId: 'ami-12c6146b', MinCount: 1, MaxCount: 1, InstanceType: 'm5.large' as const }
      const { Instances } = await clients.ec2.send(
        new RunInstancesCommand({ ...common, SubnetId: Subnets![0]!.SubnetId!, ...more }),
      )
      return Instances![0]!.InstanceId!
    }
    const tag = { Key: 'crucible:deployment', Value: 'team' }
    const TagSpecifications = [{ ResourceType: 'instance' as const, Tags: [tag] }]
    const bare = await run({ TagSpecifications })
    const grouped = await run({
      TagSpecifications,
      SecurityGroupIds: [group],
      IamInstanceProfile: { Name: 'crucible-machine' },
    })
    await run({})
    const ended = await run({ TagSpecifications })
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [ended] }))
    const { obstacles } = await setupOf().removal(patiently().signal)
    expect(obstacles).toHaveLength(1)
    expect(obstacles[0]!.message).toMatch(/^2 of its machines are still there: /)
    for (const id of [bare, grouped]) expect(obstacles[0]!.message).toContain(id)
  })

  it('writes the Terraform module with the values of the account, and without an account with usual ones', async () => {
    const valuesOf = async (options: Partial<SetupOptions>): Promise<unknown> => {
      const files = await setupOf(options).terraform(patiently().signal)
      expect(Object.keys(files)).toEqual(
        expect.arrayContaining(['main.tf', 'network.tf', 'variables.tf', 'outputs.tf']),
      )
      return JSON.parse(files['terraform.tfvars.json']!)
    }
    expect(await valuesOf({ letsWorkersBuy: true })).toEqual({
      prefix: 'crucible',
      regions: ['us-east-1'],
      bucket: BUCKET,
      create_spot_role: true,
      workers_may_buy: true,
      networks: { 'us-east-1': { vpc_id: expect.stringMatching(/^vpc-/) } },
    })
    expect(await valuesOf({ endpoint: 'http://127.0.0.1:9', region: 'us-east-1,eu-west-1' })).toEqual({
      prefix: 'crucible',
      regions: ['us-east-1', 'eu-west-1'],
      create_spot_role: true,
      workers_may_buy: false,
      networks: {
        'us-east-1': { zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'] },
        'eu-west-1': { zones: ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'] },
      },
    })
  })
})
