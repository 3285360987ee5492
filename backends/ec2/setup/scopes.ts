import { TAGS } from '../tags'

/** The scope of a permission. */
export type Scope =
  | 'region'
  | 'anywhere'
  | 'own-machines'
  | 'own-templates'
  | 'own-commands'
  | 'shell-document'
  | 'tags-at-launch'
  | 'machine-role'
  | 'pass-machine-role'
  | 'own-spot-requests'
  | 'machine-profile'
  | 'grant-role'
  | 'buyer-role'
  | 'own-reservations'
  | 'tagged-reservations'
  | 'tags-at-purchase'
  | 'spot-role'
  | 'public-parameters'
  | 'store'
  | 'store-objects'

/** Names used in policies. */
export interface PolicyFacts {
  account: string
  region: string
  /** Other Regions with the same permissions. */
  moreRegions?: readonly string[]
  machineRole: string
  machineProfile: string
  /** Name of the role behind the grants, if needed. */
  grantRole?: string
  /** Name of the role that buys, if needed. */
  buyerRole?: string
  bucket: string
}

export interface Statement {
  Effect: 'Allow' | 'Deny'
  Principal?: string | Record<string, string>
  Action: string | readonly string[]
  Resource?: string | readonly string[]
  Condition?: Record<string, Record<string, string | readonly string[]>>
}

/** A resource and a call's context for which a permission limited to a scope must be allowed. */
export interface Probe {
  resource: string
  context: Record<string, string>
}

const OWNED_TAG = TAGS.deployment
/** The same name in every AWS account. */
const SPOT_ROLE_PATH = 'aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot'

export interface ScopeRule {
  resource: (facts: PolicyFacts) => string | string[]
  condition?: (facts: PolicyFacts) => NonNullable<Statement['Condition']>
  probe: (facts: PolicyFacts) => Probe
}

/** One text for one Region, a list for several. */
function inEachRegion(
  { region, moreRegions = [] }: PolicyFacts,
  write: (region: string) => string,
): string | string[] {
  return moreRegions.length === 0 ? write(region) : [region, ...moreRegions].map(write)
}

const resourcesOf = (facts: PolicyFacts, name: string): string | string[] =>
  inEachRegion(facts, (region) => resourceOf({ ...facts, region }, name))
const resourceOf = ({ account, region }: PolicyFacts, name: string): string =>
  `arn:aws:ec2:${region}:${account}:${name}`

const shellDocumentIn = (region: string): string => `arn:aws:ssm:${region}::document/AWS-RunShellScript`

function machineRoleOf({ account, machineRole }: PolicyFacts): string {
  return `arn:aws:iam::${account}:role/${machineRole}`
}

function grantRoleOf({ account, grantRole = '' }: PolicyFacts): string {
  return `arn:aws:iam::${account}:role/${grantRole}`
}

function buyerRoleOf({ account, buyerRole = '' }: PolicyFacts): string {
  return `arn:aws:iam::${account}:role/${buyerRole}`
}

/** Calls that make a reservation, which is tagged in the same call. */
const PURCHASES = [
  'PurchaseCapacityBlock',
  'CreateCapacityReservation',
  'CreateCapacityReservationBySplitting',
] as const
const ANY_RESERVATION = 'capacity-reservation/cr-0123456789abcdef0'

export const SCOPES: Readonly<Record<Scope, ScopeRule>> = {
  anywhere: { resource: () => '*', probe: () => ({ resource: '*', context: {} }) },
  region: {
    resource: () => '*',
    condition: (facts) => ({
      StringEquals: { 'aws:RequestedRegion': inEachRegion(facts, (region) => region) },
    }),
    probe: ({ region }) => ({ resource: '*', context: { 'aws:RequestedRegion': region } }),
  },
  'own-machines': {
    resource: (facts) => [resourcesOf(facts, 'instance/*'), resourcesOf(facts, 'volume/*')].flat(),
    condition: () => ({ Null: { [`aws:ResourceTag/${OWNED_TAG}`]: 'false' } }),
    probe: (facts) => ({
      resource: resourceOf(facts, 'instance/i-0123456789abcdef0'),
      context: { [`aws:ResourceTag/${OWNED_TAG}`]: 'any' },
    }),
  },
  'own-templates': {
    resource: (facts) => resourcesOf(facts, 'launch-template/*'),
    condition: () => ({ Null: { [`aws:ResourceTag/${OWNED_TAG}`]: 'false' } }),
    probe: (facts) => ({
      resource: resourceOf(facts, 'launch-template/lt-0123456789abcdef0'),
      context: { [`aws:ResourceTag/${OWNED_TAG}`]: 'any' },
    }),
  },
  'own-commands': {
    resource: (facts) => resourcesOf(facts, 'instance/*'),
    condition: () => ({ StringLike: { [`ssm:resourceTag/${OWNED_TAG}`]: '*' } }),
    probe: (facts) => ({
      resource: resourceOf(facts, 'instance/i-0123456789abcdef0'),
      context: { [`ssm:resourceTag/${OWNED_TAG}`]: 'any' },
    }),
  },
  'shell-document': {
    resource: (facts) => inEachRegion(facts, shellDocumentIn),
    probe: ({ region }) => ({ resource: shellDocumentIn(region), context: {} }),
  },
  'tags-at-launch': {
    resource: (facts) => resourcesOf(facts, '*/*'),
    condition: () => ({
      StringEquals: { 'ec2:CreateAction': ['CreateFleet', 'RunInstances', 'CreateLaunchTemplate'] },
    }),
    probe: (facts) => ({
      resource: resourceOf(facts, 'instance/i-0123456789abcdef0'),
      context: { 'ec2:CreateAction': 'CreateFleet' },
    }),
  },
  'machine-role': {
    resource: machineRoleOf,
    probe: (facts) => ({ resource: machineRoleOf(facts), context: {} }),
  },
  'pass-machine-role': {
    resource: machineRoleOf,
    condition: () => ({ StringEquals: { 'iam:PassedToService': 'ec2.amazonaws.com' } }),
    probe: (facts) => ({
      resource: machineRoleOf(facts),
      context: { 'iam:PassedToService': 'ec2.amazonaws.com' },
    }),
  },
  'own-spot-requests': {
    resource: (facts) => resourcesOf(facts, 'spot-instances-request/*'),
    condition: () => ({ Null: { [`aws:ResourceTag/${OWNED_TAG}`]: 'false' } }),
    probe: (facts) => ({
      resource: resourceOf(facts, 'spot-instances-request/sir-0123456789ab'),
      context: { [`aws:ResourceTag/${OWNED_TAG}`]: 'any' },
    }),
  },
  'machine-profile': {
    resource: ({ account, machineProfile }) => `arn:aws:iam::${account}:instance-profile/${machineProfile}`,
    probe: ({ account, machineProfile }) => ({
      resource: `arn:aws:iam::${account}:instance-profile/${machineProfile}`,
      context: {},
    }),
  },
  'grant-role': {
    resource: grantRoleOf,
    probe: (facts) => ({ resource: grantRoleOf(facts), context: {} }),
  },
  'buyer-role': {
    resource: buyerRoleOf,
    probe: (facts) => ({ resource: buyerRoleOf(facts), context: {} }),
  },
  'own-reservations': {
    resource: (facts) => resourcesOf(facts, 'capacity-reservation/*'),
    condition: () => ({ Null: { [`aws:ResourceTag/${OWNED_TAG}`]: 'false' } }),
    probe: (facts) => ({
      resource: resourceOf(facts, ANY_RESERVATION),
      context: { [`aws:ResourceTag/${OWNED_TAG}`]: 'any' },
    }),
  },
  'tagged-reservations': {
    resource: (facts) => resourcesOf(facts, 'capacity-reservation/*'),
    condition: () => ({ Null: { [`aws:RequestTag/${OWNED_TAG}`]: 'false' } }),
    probe: (facts) => ({
      resource: resourceOf(facts, ANY_RESERVATION),
      context: { [`aws:RequestTag/${OWNED_TAG}`]: 'any' },
    }),
  },
  'tags-at-purchase': {
    resource: (facts) => resourcesOf(facts, '*/*'),
    condition: () => ({ StringEquals: { 'ec2:CreateAction': PURCHASES } }),
    probe: (facts) => ({
      resource: resourceOf(facts, ANY_RESERVATION),
      context: { 'ec2:CreateAction': PURCHASES[0] },
    }),
  },
  'spot-role': {
    resource: ({ account }) => `arn:aws:iam::${account}:role/${SPOT_ROLE_PATH}`,
    probe: ({ account }) => ({ resource: `arn:aws:iam::${account}:role/${SPOT_ROLE_PATH}`, context: {} }),
  },
  'public-parameters': {
    resource: (facts) => inEachRegion(facts, (region) => `arn:aws:ssm:${region}::parameter/aws/service/*`),
    probe: ({ region }) => ({
      resource: `arn:aws:ssm:${region}::parameter/aws/service/deeplearning/ami`,
      context: {},
    }),
  },
  store: {
    resource: ({ bucket }) => `arn:aws:s3:::${bucket}`,
    probe: ({ bucket }) => ({ resource: `arn:aws:s3:::${bucket}`, context: { 's3:prefix': 'jobs/' } }),
  },
  'store-objects': {
    resource: ({ bucket }) => `arn:aws:s3:::${bucket}/*`,
    probe: ({ bucket }) => ({ resource: `arn:aws:s3:::${bucket}/jobs/any`, context: {} }),
  },
}
