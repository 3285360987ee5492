/**
 * What the files for Terraform plan, held against what `setup aws` makes in a small cloud of the same choices: the same resources with the
 * same facts in each Region. Skipped without Terraform or its provider of AWS.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  DescribeInternetGatewaysCommand,
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  EC2Client,
  type Tag,
} from '@aws-sdk/client-ec2'
import {
  GetInstanceProfileCommand,
  GetRoleCommand,
  GetRolePolicyCommand,
  ListRolePoliciesCommand,
  type IAMClient,
} from '@aws-sdk/client-iam'
import { GetBucketLifecycleConfigurationCommand, GetBucketPolicyCommand } from '@aws-sdk/client-s3'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import type { Cloud, WorldText } from '#small-cloud'
import { clientsOf } from '../../../../packages/small-cloud/test/support'
import { testFolder } from '../../../support/folders'
import { chosen } from '../../../support/selection'
import { terraformIn } from '../../../support/terraform'
import { applied, emptyAccount, ignoring, setupOf, storeClient } from './accounts'

jest.setTimeout(180_000)

const [HOME, FAR] = ['us-east-1', 'eu-west-1']
const ROLES = ['machine', 'grant', 'worker', 'buyer']
const terraform = terraformIn()
const judged = terraform === undefined ? describe.skip : describe

let cloud: Cloud
afterEach(() => cloud?.stop())

type Facts = Record<string, unknown>

interface Planned {
  /** `aws_subnet.zone_eu_west_1["eu-west-1a"]` */
  address: string
  type: string
  region: string
  values: Facts
}

interface PlanJson {
  planned_values: { root_module: { resources: { address: string; type: string; values: Facts }[] } }
  configuration: {
    provider_config: Record<string, { expressions: { region: { constant_value?: string } } }>
    root_module: { resources: { address: string; provider_config_key: string }[] }
  }
}

/** With these Terraform sends no request. */
const credentials = (regions: readonly string[]): string =>
  ['', ...regions.slice(1)]
    .map((region) => {
      const alias = region === '' ? '' : `  alias = "${region.replaceAll('-', '_')}"\n`
      const skipped = ['skip_credentials_validation', 'skip_requesting_account_id', 'skip_metadata_api_check']
      return `provider "aws" {\n${alias}  access_key = "a"\n  secret_key = "b"\n${skipped.map((one) => `  ${one} = true\n`).join('')}}\n`
    })
    .join('\n')

/** The resources that the files plan, each with its Region. */
function plannedBy(files: Record<string, string>, regions: readonly string[]): Planned[] {
  const folder = join(testFolder('terraform'), 'infra')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  writeFileSync(join(folder, 'credentials_override.tf'), credentials(regions))
  expect(terraform!(folder, 'init', '-backend=false')).toMatchObject({ status: 0 })
  const plan = terraform!(folder, 'plan', '-refresh=false', '-input=false', '-out=plan')
  expect(plan).toMatchObject({ status: 0 })
  const { planned_values, configuration } = JSON.parse(
    terraform!(folder, 'show', '-json', 'plan').output,
  ) as PlanJson
  const keys = new Map(
    configuration.root_module.resources.map(({ address, provider_config_key }) => [
      address,
      provider_config_key,
    ]),
  )
  return planned_values.root_module.resources.map(({ address, type, values }) => {
    const provider = configuration.provider_config[keys.get(address.replace(/\[.*\]$/, ''))!]!
    return { address, type, values, region: provider.expressions.region.constant_value ?? regions[0]! }
  })
}

const sorted = <T>(all: T[]): T[] => [...all].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

/** What the set-up tagged as its own in one Region, in the words of both. */
async function networkIn(region: string): Promise<Record<string, Facts[]>> {
  const ec2 = new EC2Client({ region, endpoint: cloud.endpoint })
  const Filters = [{ Name: 'tag:crucible:setup', Values: ['crucible'] }]
  const { Vpcs = [] } = await ec2.send(new DescribeVpcsCommand({ Filters }))
  const { Subnets = [] } = await ec2.send(new DescribeSubnetsCommand({ Filters }))
  const { InternetGateways = [] } = await ec2.send(new DescribeInternetGatewaysCommand({ Filters }))
  const { RouteTables = [] } = await ec2.send(new DescribeRouteTablesCommand({ Filters }))
  const { VpcEndpoints = [] } = await ec2.send(new DescribeVpcEndpointsCommand({ Filters }))
  const { SecurityGroups = [] } = await ec2.send(new DescribeSecurityGroupsCommand({ Filters }))
  ec2.destroy()
  const nameOf = (tags: readonly Tag[] = []) => tags.find(({ Key }) => Key === 'Name')?.Value
  return {
    aws_vpc: Vpcs.map(({ CidrBlock, Tags }) => ({ cidr: CidrBlock, name: nameOf(Tags) })),
    aws_subnet: sorted(
      Subnets.map(({ AvailabilityZone, CidrBlock, MapPublicIpOnLaunch, Tags }) => ({
        ...{ zone: AvailabilityZone, cidr: CidrBlock, isPublic: MapPublicIpOnLaunch, name: nameOf(Tags) },
      })),
    ),
    aws_internet_gateway: InternetGateways.map(({ Tags }) => ({ name: nameOf(Tags) })),
    aws_route_table: RouteTables.map(({ Routes = [], Tags }) => ({
      routes: Routes.filter(({ GatewayId }) => GatewayId?.startsWith('igw-')).map(
        ({ DestinationCidrBlock }) => DestinationCidrBlock,
      ),
      name: nameOf(Tags),
    })),
    aws_route_table_association: RouteTables.flatMap(({ Associations = [] }) =>
      Associations.filter(({ SubnetId }) => SubnetId !== undefined).map(() => ({})),
    ),
    aws_vpc_endpoint: VpcEndpoints.map(({ ServiceName, Tags }) => ({
      service: ServiceName,
      name: nameOf(Tags),
    })),
    aws_security_group: SecurityGroups.map(({ GroupName, Description, IpPermissionsEgress = [], Tags }) => ({
      ...{ group: GroupName, description: Description, name: nameOf(Tags) },
      out: IpPermissionsEgress.map(({ IpProtocol, IpRanges }) => [IpProtocol, IpRanges?.[0]?.CidrIp]),
    })),
  }
}

/** The same of a plan. */
function networkOfPlan(planned: Planned[], region: string): Record<string, Facts[]> {
  const of = (type: string, facts: (values: Facts) => Facts): Facts[] =>
    sorted(
      planned.filter((one) => one.type === type && one.region === region).map(({ values }) => facts(values)),
    )
  const nameOf = ({ tags }: Facts): unknown => (tags as Facts)['Name']
  return {
    aws_vpc: of('aws_vpc', (values) => ({ cidr: values['cidr_block'], name: nameOf(values) })),
    aws_subnet: of('aws_subnet', (values) => ({
      ...{ zone: values['availability_zone'], cidr: values['cidr_block'] },
      ...{ isPublic: values['map_public_ip_on_launch'], name: nameOf(values) },
    })),
    aws_internet_gateway: of('aws_internet_gateway', (values) => ({ name: nameOf(values) })),
    aws_route_table: of('aws_route_table', (values) => ({
      routes: (values['route'] as Facts[]).map(({ cidr_block }) => cidr_block),
      name: nameOf(values),
    })),
    aws_route_table_association: of('aws_route_table_association', () => ({})),
    aws_vpc_endpoint: of('aws_vpc_endpoint', (values) => ({
      service: values['service_name'],
      name: nameOf(values),
    })),
    aws_security_group: of('aws_security_group', (values) => ({
      ...{ group: values['name'], description: values['description'], name: nameOf(values) },
      out: (values['egress'] as Facts[]).map(({ protocol, cidr_blocks }) => [
        protocol,
        (cidr_blocks as string[])[0],
      ]),
    })),
  }
}

const document = (text: unknown): unknown => JSON.parse(decodeURIComponent(String(text)))

async function roleIn(iam: IAMClient, RoleName: string): Promise<Facts> {
  const { Role } = await iam.send(new GetRoleCommand({ RoleName }))
  const { PolicyNames = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName }))
  const policies = await Promise.all(
    PolicyNames.map(async (PolicyName) => {
      const { PolicyDocument } = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }))
      return [PolicyName, document(PolicyDocument)] as const
    }),
  )
  return {
    trust: document(Role!.AssumeRolePolicyDocument),
    description: Role!.Description,
    session: Role!.MaxSessionDuration ?? 3600,
    tags: Object.fromEntries(Role!.Tags!.map(({ Key, Value }) => [Key, Value])),
    policies: Object.fromEntries(policies),
  }
}

function roleOfPlan(planned: Planned[], name: string): Facts {
  const { values } = planned.find((one) => one.type === 'aws_iam_role' && one.values['name'] === name)!
  const own = planned.filter((one) => one.type === 'aws_iam_role_policy' && one.values['role'] === name)
  return {
    trust: document(values['assume_role_policy']),
    description: values['description'],
    session: values['max_session_duration'] ?? 3600,
    tags: values['tags'],
    policies: Object.fromEntries(own.map(({ values: each }) => [each['name'], document(each['policy'])])),
  }
}

const WORLDS: [string, WorldText, readonly string[]][] = [
  ['one Region', { regions: { [HOME]: { zones: [`${HOME}a`, `${HOME}b`], hasDefaultVpc: false } } }, [HOME]],
  [
    'two Regions with networks of their own',
    {
      regions: {
        [HOME]: { zones: [`${HOME}a`, `${HOME}b`], hasDefaultVpc: false },
        [FAR]: { zones: [`${FAR}a`, `${FAR}b`, `${FAR}c`], hasDefaultVpc: false },
      },
    },
    [HOME, FAR],
  ],
  [
    'two Regions, one with a default network',
    { regions: { [HOME]: { zones: [`${HOME}a`] }, [FAR]: { zones: [`${FAR}a`], hasDefaultVpc: false } } },
    [HOME, FAR],
  ],
]

judged.each(chosen(WORLDS, WORLDS.slice(-1)))('the plan of the files in %s', (_, world, regions) => {
  it('is what set-up makes (skipped without Terraform and its provider)', async () => {
    cloud = await emptyAccount(world)
    const setup = setupOf(cloud, { region: regions.join(',') })
    const files = await setup.terraform(ignoring())
    const planned = plannedBy(files, regions)
    await applied(setup)
    expect(new Set(planned.map(({ region }) => region))).toEqual(new Set(regions))
    for (const region of regions) expect(networkOfPlan(planned, region)).toEqual(await networkIn(region))
    const { settings } = await setup.survey(ignoring())
    const named = [...files['outputs.tf']!.matchAll(/CRUCIBLE_\w+/g)].map(([name]) => name)
    expect(named).toEqual(Object.keys(settings))
    await compareIdentities(planned)
    await compareStore(planned)
  })
})

async function compareIdentities(planned: Planned[]): Promise<void> {
  const { iam } = clientsOf(cloud.endpoint)
  for (const role of ROLES)
    expect(roleOfPlan(planned, `crucible-${role}`)).toEqual(await roleIn(iam, `crucible-${role}`))
  const { InstanceProfile } = await iam.send(
    new GetInstanceProfileCommand({ InstanceProfileName: 'crucible-machine' }),
  )
  const profiles = planned.filter(({ type }) => type === 'aws_iam_instance_profile')
  expect(profiles.map(({ values }) => [values['name'], values['role']])).toEqual([
    [InstanceProfile!.InstanceProfileName, InstanceProfile!.Roles![0]!.RoleName],
  ])
}

/** One, in the first Region. */
async function compareStore(planned: Planned[]): Promise<void> {
  const Bucket = `crucible-111122223333-${HOME}`
  const [store, ...more] = planned.filter(({ type }) => type === 'aws_s3_bucket')
  expect([store!.region, store!.values['bucket'], more]).toEqual([HOME, Bucket, []])
  const s3 = storeClient(cloud)
  const { Policy } = await s3.send(new GetBucketPolicyCommand({ Bucket }))
  const { Rules = [] } = await s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }))
  s3.destroy()
  const policy = planned.find(({ type }) => type === 'aws_s3_bucket_policy')!
  expect(document(policy.values['policy'])).toEqual(JSON.parse(Policy!))
  const lifecycle = planned.find(({ type }) => type === 'aws_s3_bucket_lifecycle_configuration')!
  const rules = lifecycle.values['rule'] as { id: string; expiration: { days: number }[] }[]
  expect(rules.map(({ id, expiration }) => [id, expiration[0]?.days])).toEqual(
    Rules.map(({ ID, Expiration }) => [ID, Expiration?.Days]),
  )
}
