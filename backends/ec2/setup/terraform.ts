import type { Statement } from './permissions'
import { describeAccount, roleName, type Choices } from './description'
import { Expression, json, writeBlocks, type Block, type Value } from './hcl'
import { SETUP_TAGS, type Piece, type RolePiece, type SubnetPiece } from './pieces'
import { settingsOf } from './settings'

/** What the values of the variables are where nobody says otherwise; what is missing must be said. */
export interface TerraformDefaults extends Omit<Choices, 'account' | 'bucket'> {
  account?: string
  bucket?: string
}

const variable = (name: string): Expression => new Expression(`var.${name}`)
const the = (address: string): Expression => new Expression(address)
/** In texts of the description, and so in those that come of it. */
const inText = (name: string): string => `\${var.${name}}`

/** The account's description in files, by name. */
export function writeTerraform(defaults: TerraformDefaults): Record<string, string> {
  const { network } = defaults
  const pieces = describeAccount({
    account: inText('account_id'),
    region: inText('region'),
    prefix: inText('prefix'),
    bucket: inText('bucket'),
    network: 'vpcId' in network ? { vpcId: inText('vpc_id') } : network,
    makesSpotRole: defaults.makesSpotRole,
  })
  const subnets = pieces.filter((piece) => piece.kind === 'subnet')
  const others = pieces.filter((piece) => piece.kind !== 'subnet')
  return {
    'main.tf': writeBlocks([...others.flatMap(blocksOf), ...subnetBlocks(subnets)]),
    'variables.tf': writeBlocks(variables(defaults, subnets)),
    'outputs.tf': writeBlocks(outputs(defaults)),
  }
}

// eslint-disable-next-line max-params -- in the order in which Terraform writes it
function resource(type: string, id: string, attributes: Record<string, Value>, blocks: Block[] = []): Block {
  return { kind: 'resource', labels: [type, id], attributes, blocks }
}

const TAGS = { [SETUP_TAGS.setup]: variable('prefix') }
const named = (Name: string): { tags: Value } => ({ tags: { Name: plain(Name), ...TAGS } })

/** A text that is nothing but one variable is that variable. */
function plain(text: string): Value {
  const only = /^\$\{([^}]+)\}$/.exec(text)?.[1]
  return only === undefined ? text : the(only)
}

function valueOf(document: unknown): Value {
  if (typeof document === 'string') return plain(document)
  if (Array.isArray(document)) return document.map(valueOf)
  if (typeof document === 'object' && document !== null)
    return Object.fromEntries(Object.entries(document).map(([name, each]) => [name, valueOf(each)]))
  return document as Value
}

function policy(statements: readonly Statement[]): Expression {
  return json({ Version: '2012-10-17', Statement: valueOf(statements) })
}

function blocksOf(piece: Exclude<Piece, SubnetPiece>): Block[] {
  switch (piece.kind) {
    case 'linked-role':
      return [
        resource('aws_iam_service_linked_role', piece.id, {
          aws_service_name: piece.service,
          description: piece.description,
          tags: TAGS,
        }),
      ]
    case 'bucket':
      return bucketBlocks(piece)
    case 'role':
      return roleBlocks(piece)
    case 'profile':
      return [
        resource('aws_iam_instance_profile', piece.id, {
          ...{ name: plain(piece.name), role: the(`aws_iam_role.${piece.needs[0]}.name`), tags: TAGS },
        }),
      ]
    case 'vpc':
      return [resource('aws_vpc', piece.id, { cidr_block: piece.cidr, ...named(piece.name) })]
    case 'gateway':
      return [
        resource('aws_internet_gateway', piece.id, { vpc_id: the('aws_vpc.vpc.id'), ...named(piece.name) }),
      ]
    case 'routes': {
      const out = { cidr_block: '0.0.0.0/0', gateway_id: the('aws_internet_gateway.gateway.id') }
      return [
        resource('aws_route_table', piece.id, { vpc_id: the('aws_vpc.vpc.id'), ...named(piece.name) }, [
          { kind: 'route', attributes: out },
        ]),
      ]
    }
    case 'endpoint':
      return [
        resource('aws_vpc_endpoint', piece.id, {
          vpc_id: the('aws_vpc.vpc.id'),
          service_name: plain(piece.service),
          route_table_ids: [the('aws_route_table.routes.id')],
          ...named(piece.name),
        }),
      ]
    case 'group': {
      const vpc = piece.vpcId === undefined ? the('aws_vpc.vpc.id') : plain(piece.vpcId)
      const facts = { name: plain(piece.name), description: piece.description, vpc_id: vpc }
      const out = { from_port: 0, to_port: 0, protocol: '-1', cidr_blocks: ['0.0.0.0/0'] }
      return [
        resource('aws_security_group', piece.id, { ...facts, ...named(piece.name) }, [
          { kind: 'egress', attributes: out },
        ]),
      ]
    }
  }
}

function bucketBlocks(piece: Extract<Piece, { kind: 'bucket' }>): Block[] {
  const bucket = { bucket: the(`aws_s3_bucket.${piece.id}.id`) }
  const always: Block = { kind: 'filter' }
  const expiries = Object.entries(piece.expireAfterDays).map(([prefix, days]): Block => ({
    kind: 'rule',
    attributes: { id: `expire-${prefix.replace(/\W/g, '')}`, status: 'Enabled' },
    blocks: [
      { kind: 'filter', attributes: { prefix } },
      { kind: 'expiration', attributes: { days } },
    ],
  }))
  const abort = { days_after_initiation: piece.abortUploadsAfterDays }
  return [
    resource('aws_s3_bucket', piece.id, { bucket: plain(piece.name), tags: TAGS }),
    resource('aws_s3_bucket_public_access_block', piece.id, {
      ...bucket,
      ...{ block_public_acls: true, ignore_public_acls: true },
      ...{ block_public_policy: true, restrict_public_buckets: true },
    }),
    resource('aws_s3_bucket_server_side_encryption_configuration', piece.id, bucket, [
      {
        kind: 'rule',
        blocks: [
          { kind: 'apply_server_side_encryption_by_default', attributes: { sse_algorithm: 'AES256' } },
        ],
      },
    ]),
    resource('aws_s3_bucket_lifecycle_configuration', piece.id, bucket, [
      {
        kind: 'rule',
        attributes: { id: 'abort-uploads', status: 'Enabled' },
        blocks: [always, { kind: 'abort_incomplete_multipart_upload', attributes: abort }],
      },
      ...expiries,
    ]),
    resource('aws_s3_bucket_policy', piece.id, { ...bucket, policy: policy(piece.policy) }),
  ]
}

function roleBlocks(piece: RolePiece): Block[] {
  const { id, name, description, trust, policies, managed, tags, sessionSecondsMax } = piece
  const role = the(`aws_iam_role.${id}.name`)
  return [
    resource('aws_iam_role', id, {
      name: plain(name),
      description,
      assume_role_policy: policy([trust]),
      ...(sessionSecondsMax === undefined ? {} : { max_session_duration: sessionSecondsMax }),
      tags: { ...TAGS, ...(valueOf(tags) as Record<string, Value>) },
    }),
    ...Object.entries(policies).map(([policyName, statements]) =>
      resource('aws_iam_role_policy', `${id}_${policyName}`, {
        ...{ name: policyName, role, policy: policy(statements) },
      }),
    ),
    ...managed.map((each, at) =>
      resource('aws_iam_role_policy_attachment', `${id}_${at}`, {
        ...{ role, policy_arn: `arn:aws:iam::aws:policy/${each}` },
      }),
    ),
  ]
}

function subnetBlocks(subnets: readonly SubnetPiece[]): Block[] {
  if (subnets.length === 0) return []
  const zones = { for_each: variable('zones') }
  return [
    resource('aws_subnet', 'zone', {
      ...zones,
      vpc_id: the('aws_vpc.vpc.id'),
      availability_zone: the('each.key'),
      cidr_block: the('each.value'),
      map_public_ip_on_launch: true,
      ...named('${var.prefix} ${each.key}'),
    }),
    resource('aws_route_table_association', 'zone', {
      ...{ for_each: the('aws_subnet.zone'), subnet_id: the('each.value.id') },
      route_table_id: the('aws_route_table.routes.id'),
    }),
  ]
}

function variables(defaults: TerraformDefaults, subnets: readonly SubnetPiece[]): Block[] {
  const { account, region, prefix, bucket, network } = defaults
  // eslint-disable-next-line max-params -- a row of a table
  const one = (name: string, description: string, value: Value | undefined, type = 'string'): Block => ({
    kind: 'variable',
    labels: [name],
    attributes: { description, type: the(type), ...(value === undefined ? {} : { default: value }) },
  })
  const zones = Object.fromEntries(subnets.map(({ zone, cidr }) => [zone, cidr]))
  return [
    {
      kind: 'terraform',
      attributes: { required_version: '>= 1.5' },
      blocks: [
        { kind: 'required_providers', attributes: { aws: { source: 'hashicorp/aws', version: '>= 5.0' } } },
      ],
    },
    { kind: 'provider', labels: ['aws'], attributes: { region: variable('region') } },
    one('account_id', 'The account, twelve digits', account),
    one('region', 'Region of machines and store', region),
    one('prefix', 'What all names begin with', prefix),
    one('bucket', 'Name of the store, unique in the world', bucket),
    'vpcId' in network
      ? one('vpc_id', 'Network of the machines', network.vpcId)
      : one('zones', 'Zones with machines, and the addresses of each', zones, 'map(string)'),
  ]
}

/** The same settings as after `crucible setup aws`. */
function outputs({ network }: TerraformDefaults): Block[] {
  const subnets = 'vpcId' in network ? {} : { subnets: ['${join(",", values(aws_subnet.zone)[*].id)}'] }
  const settings = settingsOf({
    ...{
      region: inText('region'),
      bucket: '${aws_s3_bucket.store.bucket}',
      group: '${aws_security_group.machines.id}',
    },
    profile: roleName(inText('prefix'), 'machine'),
    grantRole: `arn:aws:iam::${inText('account_id')}:role/${roleName(inText('prefix'), 'grant')}`,
    ...subnets,
  })
  const value = Object.fromEntries(Object.entries(settings).map(([name, text]) => [name, plain(text)]))
  return [
    {
      kind: 'output',
      labels: ['settings'],
      comment: 'For the environment of clients and workers.',
      attributes: { value },
    },
  ]
}
