import { defined } from '../../../core/defined'
import type { Statement } from './permissions'
import { describeAccount, networkOf, roleName, type Choices } from './description'
import { json, writeBlocks, type Expression, type Block, type Value } from './hcl'
import type { Piece, RolePiece } from './pieces'
import { settingsOf } from './settings'
import { networkBlocks, zonesOf } from './terraform-network'
import {
  aliasOf,
  FIRST_PLACE,
  inText,
  placeIn,
  plain,
  resource,
  TAGS,
  the,
  variable,
  type RegionalPlace,
} from './terraform-terms'

/** Default values of the variables; a variable without one must be set. */
export interface TerraformDefaults extends Omit<Choices, 'account' | 'bucket' | 'moreRegions'> {
  account?: string
  bucket?: string
  /** The other Regions of machines. Each needs a separate provider, so they are fixed in the files and are no variables. */
  others?: readonly OtherRegion[]
}

export type OtherRegion = Pick<Choices, 'region' | 'network'>

/** A Region in the files. */
interface Regional {
  choices: Choices
  place: RegionalPlace
  /** Its default network. */
  network: Choices['network']
}

/** The account's description as files, by name. */
export function writeTerraform(defaults: TerraformDefaults): Record<string, string> {
  const regions = regionsOf(defaults)
  const [{ choices }] = regions
  const ofNetwork = networkOf(choices)
  const pieces = describeAccount(choices).filter(({ id }) => !ofNetwork.some((one) => one.id === id))
  return {
    'main.tf': writeBlocks([
      ...pieces.flatMap((piece) => blocksOf(piece as AccountPiece)),
      ...regions.flatMap((one) => networkBlocks(one.choices, one.place)),
    ]),
    'variables.tf': writeBlocks(variables(defaults, regions)),
    'outputs.tf': writeBlocks(outputs(regions)),
  }
}

/** All Regions, the one of the store first. */
function regionsOf({
  network,
  others = [],
  makesSpotRole,
  letsWorkersBuy,
}: TerraformDefaults): [Regional, ...Regional[]] {
  const common = { account: inText('account_id'), prefix: inText('prefix'), bucket: inText('bucket') }
  const moreRegions = others.map((other) => other.region)
  const regional = (one: OtherRegion, place: RegionalPlace): Regional => ({
    choices: {
      ...{ ...common, makesSpotRole, letsWorkersBuy, region: one.region },
      network: 'vpcId' in one.network ? { vpcId: inText(`vpc_id${place.suffix}`) } : one.network,
      ...(place === FIRST_PLACE && moreRegions.length > 0 && { moreRegions }),
    },
    network: one.network,
    place,
  })
  return [
    regional({ region: inText('region'), network }, FIRST_PLACE),
    ...others.map((other) => regional(other, placeIn(other.region))),
  ]
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

/** Belongs to the account: without a Region, or in the Region of the store. */
type AccountPiece = Extract<Piece, { kind: 'linked-role' | 'bucket' | 'role' | 'profile' }>

function blocksOf(piece: AccountPiece): Block[] {
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
      ...defined({ max_session_duration: sessionSecondsMax }),
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

function variables(defaults: TerraformDefaults, regions: readonly Regional[]): Block[] {
  const { account, region, prefix, bucket } = defaults
  // eslint-disable-next-line max-params -- a row of a table
  const one = (name: string, description: string, value: Value | undefined, type = 'string'): Block => ({
    kind: 'variable',
    labels: [name],
    attributes: { description, type: the(type), ...defined({ default: value }) },
  })
  const ofNetwork = ({ choices, network, place: { suffix } }: Regional): Block => {
    const where = suffix === '' ? '' : ` in ${choices.region}`
    return 'vpcId' in network
      ? one(`vpc_id${suffix}`, `Network of the machines${where}`, network.vpcId)
      : one(
          `zones${suffix}`,
          `Zones with machines${where}, and the addresses of each`,
          zonesOf({ ...choices, network }),
          'map(string)',
        )
  }
  const provider = (attributes: Record<string, Value>): Block => ({
    ...{ kind: 'provider', labels: ['aws'], attributes },
  })
  return [
    {
      kind: 'terraform',
      attributes: { required_version: '>= 1.5' },
      blocks: [
        { kind: 'required_providers', attributes: { aws: { source: 'hashicorp/aws', version: '>= 5.0' } } },
      ],
    },
    provider({ region: variable('region') }),
    ...(defaults.others ?? []).map((other) =>
      provider({ alias: aliasOf(other.region), region: other.region }),
    ),
    one('account_id', 'The account, twelve digits', account),
    one(
      'region',
      regions.length === 1 ? 'Region of machines and store' : 'First Region of machines, and of the store',
      region,
    ),
    one('prefix', 'What all names begin with', prefix),
    one('bucket', 'Name of the store, unique in the world', bucket),
    ...regions.map(ofNetwork),
  ]
}

/** The same settings as after `crucible setup aws`. */
function outputs(regions: readonly Regional[]): Block[] {
  const ids = regions
    .filter(({ network }) => !('vpcId' in network))
    .map(({ place: { suffix } }) => `values(aws_subnet.zone${suffix})[*].id`)
  // One expression, because quotes within a text would end it.
  const all = ids.length === 1 ? ids[0] : `concat(${ids.join(', ')})`
  const subnets = ids.length === 0 ? [] : [`\${join(",", ${all})}`]
  const groups = regions.map(({ place: { suffix } }) => `\${aws_security_group.machines${suffix}.id}`)
  const roleArn = (of: 'grant' | 'buyer'): string =>
    `arn:aws:iam::${inText('account_id')}:role/${roleName(inText('prefix'), of)}`
  const settings = settingsOf({
    ...{ region: inText('region'), bucket: '${aws_s3_bucket.store.bucket}', group: groups.join(',') },
    regions: regions.map(({ choices }) => choices.region),
    profile: roleName(inText('prefix'), 'machine'),
    grantRole: roleArn('grant'),
    ...(regions[0]?.choices.letsWorkersBuy === true && { buyerRole: roleArn('buyer') }),
    subnets,
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
