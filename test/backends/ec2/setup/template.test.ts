/** The template of CloudFormation, and the Terraform module held against it. Judges that are not installed are left out. */
/* eslint-disable @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-argument, @typescript-eslint/no-unsafe-return -- the properties of any resource */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { deployFolder } from '../../../../backends/ec2/setup/stack'
import { terraformFiles } from '../../../../backends/ec2/setup/terraform'
import { awsClients } from '../../../support/aws-clients'
import { hasTerraform, hasTerraformParser, readTerraform, unformatted } from '../../../support/terraform'
import { evaluateTemplate, type Resource, type Statement } from './template'

jest.setTimeout(120_000)

const { python } = awsClients()
const hasLinter = python !== undefined && spawnSync(python, ['-c', 'import cfnlint']).status === 0
const MODULE = join(deployFolder(), 'terraform')
const ACCOUNT = '111122223333'

/** An action of EC2 that the newest linter does not list yet: a finding has a line, a place and an empty line. */
const YOUNGER = /^W3037 'createcapacityreservationdatechangequote' .*\n.*\n\n?/gm

;(hasLinter ? describe : describe.skip)('the template', () => {
  it('is clean for cfn-lint', () => {
    const file = join(deployFolder(), 'aws', 'crucible.template.yaml')
    const { stdout, stderr } = spawnSync(
      python!,
      ['-c', 'from cfnlint.runner import main; main()', '-c', 'I', '--', file],
      {
        encoding: 'utf8',
      },
    )
    expect((stdout + stderr).replaceAll(YOUNGER, '')).toBe('')
  })
})

/** Actions with resources that are allowed on all of them; the template gives the reasons. */
const ON_ALL = [
  // The image, the subnet and the reservation of a launch may belong to another account.
  'ec2:CreateFleet',
  'ec2:RunInstances',
  'ec2:DescribeCapacityBlockExtensionOfferings',
  'ssm:ListInstanceAssociations',
  'ssm:UpdateInstanceInformation',
  'ecr:BatchCheckLayerAvailability',
  'ecr:BatchGetImage',
  'ecr:GetDownloadUrlForLayer',
]
/** Prints the actions that have resources, by AWS's own list. */
const WITH_RESOURCES = `import json, sys, cfnlint, os
known = json.load(open(os.path.join(os.path.dirname(cfnlint.__file__), "data/AdditionalSpecs/Policies.json")))
def has(action):
    service, name = action.lower().split(":")
    return {key.lower(): value for key, value in known[service]["Actions"].items()}[name].get("Resources")
print(json.dumps([action for action in json.load(sys.stdin) if has(action)]))`

;(hasLinter ? describe : describe.skip)('a role of the template', () => {
  it.each(['machine', 'grant', 'worker', 'buyer'])(
    'covers all resources only with actions that have none, or with a reason: %s',
    (role) => {
      const statements = Object.values(template.policiesOf(`p-${role}`)).flat()
      const onAll = statements.filter(({ Resource: resource }) => [resource].flat().includes('*'))
      const actions = onAll
        .flatMap(({ Action }) => Action)
        .filter((action) => !action.startsWith('freetier:'))
      const { stdout } = spawnSync(python!, ['-c', WITH_RESOURCES], {
        input: JSON.stringify(actions),
        encoding: 'utf8',
      })
      const named = JSON.parse(stdout) as string[]
      expect(named.filter((action) => !ON_ALL.includes(action))).toEqual([])
    },
  )
})

const template = evaluateTemplate({
  account: ACCOUNT,
  parameters: {
    Prefix: 'p',
    Regions: 'us-east-1,eu-west-1',
    Bucket: 'b',
    WorkersMayBuy: 'yes',
    Deployment: 'team',
    KmsKeyArn: 'key',
    DiskKeyArns: 'disk-key',
    RolePath: '/path/',
    PermissionsBoundary: 'boundary',
    ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((zone) => [`Zone${zone}`, `us-east-1-${zone}`])),
  },
})
const ofType = (type: string): Resource[] =>
  Object.values(template.resources).filter(({ Type }) => Type === type)
const only = (type: string): Resource['Properties'] => ofType(type)[0]!.Properties

/** Values of the module's expressions for the same choices. */
const EXPRESSIONS: Record<string, string | string[]> = {
  'var.regions': ['us-east-1', 'eu-west-1'],
  'var.prefix': 'p',
  'var.bucket': 'b',
  'var.deployment': 'team',
  'var.kms_key_arn': 'key',
  'var.disk_key_arns': ['disk-key'],
  'var.role_path': '/path/',
  'var.permissions_boundary': 'boundary',
  'local.partition': 'aws',
  'local.account': ACCOUNT,
  'local.bucket': 'arn:aws:s3:::b',
  'local.ec2': `arn:aws:ec2:*:${ACCOUNT}`,
  'aws_iam_instance_profile.machine.arn': `arn:aws:iam::${ACCOUNT}:instance-profile/p-machine`,
  ...Object.fromEntries(
    ['machine', 'grant', 'worker', 'buyer'].flatMap((role) => [
      [`aws_iam_role.${role}.arn`, `arn:aws:iam::${ACCOUNT}:role/path/p-${role}`],
      [`aws_iam_role.${role}.name`, `p-${role}`],
    ]),
  ),
  'each.key': 'us-east-1',
}

function evaluated(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(evaluated)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, evaluated(each)]))
  if (typeof value !== 'string') return value
  const whole = EXPRESSIONS[/^\$\{([^{}]+)\}$/.exec(value)?.[1] ?? '']
  return whole ?? value.replace(/\$\{([^{}]+)\}/g, (text, name: string) => String(EXPRESSIONS[name] ?? text))
}

/** The arguments of a block, as Terraform writes them. */
type Facts = Resource['Properties']

const sorted = (value: string | string[] | undefined): string[] => [value ?? []].flat().sort()

/** A statement in one form, however it was written. */
function normal({ Effect, Action, Resource: resource, Principal, Condition = {} }: Statement): object {
  const conditions = Object.entries(Condition).flatMap(([test, about]) =>
    Object.entries(about).map(([variable, values]) => JSON.stringify([test, variable, sorted(values)])),
  )
  const principal = Principal === '*' ? { '*': '*' } : Principal
  return {
    Effect,
    Action: sorted(Action),
    Resource: sorted(resource),
    Principal: principal,
    conditions: conditions.sort(),
  }
}

;(hasTerraformParser ? describe : describe.skip)('the Terraform module', () => {
  const blocks = hasTerraformParser ? readTerraform(MODULE) : { resource: [], data: [] }
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the arguments of any resource
  const all = (kind: string, type: string): [string, any][] =>
    blocks[kind]!.flatMap((block) => Object.entries(block[type] ?? {})).map(([id, body]) => [
      id,
      evaluated(body),
    ])
  const one = (type: string) => all('resource', type)[0]![1]
  const documents = Object.fromEntries(all('data', 'aws_iam_policy_document'))
  const statementsOf = (policy: string): object[] => {
    const name = /data\.aws_iam_policy_document\.(\w+)\.json/.exec(policy)![1]!
    return documents[name].statement.map(
      ({ effect, actions, resources, principals = [], condition = [] }: Facts) => {
        const Condition: Statement['Condition'] = {}
        for (const { test, variable, values } of condition) (Condition[test] ??= {})[variable] = values
        const [principal] = principals
        const Principal = principal && { [principal.type]: principal.identifiers[0] }
        return normal({
          Effect: effect ?? 'Allow',
          Action: actions,
          Resource: resources,
          Principal,
          Condition,
        })
      },
    )
  }

  it('has the resources of the template', () => {
    const names: Record<string, string> = {
      'AWS::S3::Bucket': 'aws_s3_bucket',
      'AWS::S3::BucketPolicy': 'aws_s3_bucket_policy',
      'AWS::IAM::ServiceLinkedRole': 'aws_iam_service_linked_role',
      'AWS::IAM::Role': 'aws_iam_role',
      'AWS::IAM::Policy': 'aws_iam_role_policy',
      'AWS::IAM::InstanceProfile': 'aws_iam_instance_profile',
      'AWS::EC2::VPC': 'aws_vpc',
      'AWS::EC2::InternetGateway': 'aws_internet_gateway',
      // Terraform attaches a gateway by its argument `vpc_id`.
      'AWS::EC2::VPCGatewayAttachment': 'aws_internet_gateway',
      'AWS::EC2::RouteTable': 'aws_route_table',
      'AWS::EC2::Route': 'aws_route',
      'AWS::EC2::Subnet': 'aws_subnet',
      'AWS::EC2::SubnetRouteTableAssociation': 'aws_route_table_association',
      'AWS::EC2::VPCEndpoint': 'aws_vpc_endpoint',
      'AWS::EC2::SecurityGroup': 'aws_security_group',
    }
    // Settings of the bucket, which the template writes inside the bucket.
    const settings = [
      'public_access_block',
      'server_side_encryption_configuration',
      'lifecycle_configuration',
    ]
    const wanted = Object.values(template.resources).map(({ Type }) => names[Type])
    const types = blocks['resource']!.flatMap((block) => Object.keys(block))
    expect([...new Set(types)].sort()).toEqual(
      [...new Set([...wanted, ...settings.map((name) => `aws_s3_bucket_${name}`)])].sort(),
    )
  })

  it('has the roles of the template, with the same trust', () => {
    const roles = ofType('AWS::IAM::Role').map(({ Properties }) => ({
      name: Properties.RoleName,
      path: Properties.Path,
      permissions_boundary: Properties.PermissionsBoundary,
      description: Properties.Description,
      max_session_duration: Properties.MaxSessionDuration,
      trust: Properties.AssumeRolePolicyDocument.Statement.map(normal),
      tags: Properties.Tags.map(({ Key }: { Key: string }) => Key).sort(),
    }))
    const { tags: common } = Object.assign({}, ...blocks['locals']!) as { tags: string }
    const same = all('resource', 'aws_iam_role').map(([, body]) => {
      const { assume_role_policy, tags, ...facts } = body
      const text = `${tags.includes('local.tags') ? common : ''}${tags}`
      return {
        ...facts,
        trust: statementsOf(assume_role_policy),
        tags: (text.match(/"crucible:\w+"(?= =)/g) ?? []).map((key) => key.slice(1, -1)).sort(),
      }
    })
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    expect(same.sort(byName)).toEqual(roles.sort(byName))
  })

  it('gives each role the policies of the template', () => {
    const given: Record<string, Record<string, object[]>> = {}
    for (const [, { role, name, policy }] of all('resource', 'aws_iam_role_policy'))
      (given[role] ??= {})[name] = statementsOf(policy)
    const wanted = ['p-machine', 'p-grant', 'p-worker', 'p-buyer'].map((role) => [
      role,
      Object.fromEntries(
        Object.entries(template.policiesOf(role)).map(([name, statements]) => [name, statements.map(normal)]),
      ),
    ])
    expect(given).toEqual(Object.fromEntries(wanted))
  })

  it('has the bucket of the template', () => {
    const bucket = only('AWS::S3::Bucket')
    expect(one('aws_s3_bucket').bucket).toBe(bucket.BucketName)
    const { block_public_acls, ignore_public_acls, block_public_policy, restrict_public_buckets } = one(
      'aws_s3_bucket_public_access_block',
    )
    expect([block_public_acls, ignore_public_acls, block_public_policy, restrict_public_buckets]).toEqual(
      Object.values(bucket.PublicAccessBlockConfiguration),
    )
    const [rule] = one('aws_s3_bucket_server_side_encryption_configuration').rule
    const [{ sse_algorithm, kms_master_key_id }] = rule.apply_server_side_encryption_by_default
    const [{ ServerSideEncryptionByDefault: encryption }] =
      bucket.BucketEncryption.ServerSideEncryptionConfiguration
    expect(encryption).toEqual({ SSEAlgorithm: 'aws:kms', KMSMasterKeyID: kms_master_key_id })
    expect(sse_algorithm).toBe('${var.kms_key_arn == null ? "AES256" : "aws:kms"}')
    expect(
      one('aws_s3_bucket_lifecycle_configuration').rule.map((each: Resource['Properties']) => ({
        Id: each.id,
        Status: each.status,
        Prefix: each.filter[0].prefix,
        ExpirationInDays: each.expiration?.[0].days,
        AbortIncompleteMultipartUpload: each.abort_incomplete_multipart_upload && {
          DaysAfterInitiation: each.abort_incomplete_multipart_upload[0].days_after_initiation,
        },
      })),
    ).toEqual(bucket.LifecycleConfiguration.Rules)
    expect(statementsOf(one('aws_s3_bucket_policy').policy)).toEqual(
      only('AWS::S3::BucketPolicy').PolicyDocument.Statement.map(normal),
    )
  })

  it('has the network of the template', () => {
    const group = only('AWS::EC2::SecurityGroup')
    const { name, description, egress, ingress } = one('aws_security_group')
    expect({ name, description, ingress }).toEqual({
      name: group.GroupName,
      description: group.GroupDescription,
    })
    expect(egress).toEqual([{ from_port: 0, to_port: 0, protocol: '-1', cidr_blocks: ['0.0.0.0/0'] }])
    expect(group).not.toHaveProperty('SecurityGroupIngress')
    expect(group.SecurityGroupEgress).toEqual([{ IpProtocol: '-1', CidrIp: '0.0.0.0/0' }])
    expect(one('aws_vpc').cidr_block).toBe(only('AWS::EC2::VPC').CidrBlock)
    expect(one('aws_route').destination_cidr_block).toBe(only('AWS::EC2::Route').DestinationCidrBlock)
    expect(one('aws_vpc_endpoint').service_name).toBe(only('AWS::EC2::VPCEndpoint').ServiceName)
    expect(one('aws_subnet').map_public_ip_on_launch).toBe(only('AWS::EC2::Subnet').MapPublicIpOnLaunch)
    // `cidrsubnet("10.42.0.0/16", 4, at)`, a sixteenth for each zone.
    expect(ofType('AWS::EC2::Subnet').map(({ Properties }) => Properties.CidrBlock)).toEqual(
      [0, 1, 2, 3, 4, 5].map((at) => `10.42.${at * 16}.0/20`),
    )
    expect(Object.assign({}, ...blocks['locals']!).subnets).toContain('cidrsubnet("10.42.0.0/16", 4, at)')
  })

  it('declares the values that `setup aws --terraform` writes, and needs no others', () => {
    const files = terraformFiles({
      prefix: 'p',
      regions: ['us-east-1'],
      bucket: 'b',
      create_spot_role: true,
      workers_may_buy: false,
      networks: {},
    })
    const given = Object.keys(JSON.parse(files['terraform.tfvars.json']!) as object)
    const declared = blocks['variable']!.flatMap((block) => Object.entries<{ default?: unknown }>(block))
    expect(declared.map(([variable]) => variable)).toEqual(expect.arrayContaining(given))
    const needed = declared.filter(([, about]) => !('default' in about)).map(([variable]) => variable)
    expect(given).toEqual(expect.arrayContaining(needed))
  })
})

;(hasTerraform ? describe : describe.skip)('the files of the Terraform module', () => {
  it('are formatted as Terraform formats them', () => expect(unformatted(MODULE)).toBe(''))
})
