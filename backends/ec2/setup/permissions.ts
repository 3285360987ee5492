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
  | 'spot-role'
  | 'public-parameters'
  | 'store'
  | 'store-objects'

/** A permission that workers need, or that improves something. */
export interface Permission {
  /** As in policies. */
  action: string
  /** All of them are needed. */
  scopes: readonly Scope[]
  /** Without it an optional feature is missing. */
  isOptional?: true
}

const needed = (scope: Scope, ...actions: string[]): Permission[] =>
  actions.map((action) => ({ action, scopes: [scope] }))
const useful = (scope: Scope, ...actions: string[]): Permission[] =>
  needed(scope, ...actions).map((each) => ({ ...each, isOptional: true }))

/**
 * Everything that the verbs, the checks and the store call. The only list: the checks test these permissions, set-up grants them to
 * workers, and docs/reference/aws-account.md prints them.
 */
export const WORKER_PERMISSIONS: readonly Permission[] = [
  ...needed(
    'region',
    'ec2:DescribeInstances',
    'ec2:DescribeInstanceTypes',
    'ec2:DescribeInstanceTypeOfferings',
  ),
  ...needed('region', 'ec2:DescribeImages', 'ec2:DescribeSubnets', 'ec2:DescribeSecurityGroups'),
  ...needed(
    'region',
    'ec2:DescribeVolumes',
    'ec2:CreateFleet',
    'ec2:RunInstances',
    'ec2:CreateLaunchTemplate',
  ),
  ...needed('tags-at-launch', 'ec2:CreateTags'),
  ...needed('own-machines', 'ec2:TerminateInstances', 'ec2:DeleteVolume'),
  ...needed('pass-machine-role', 'iam:PassRole'),
  ...needed('public-parameters', 'ssm:GetParameter'),
  ...needed(
    'region',
    'ssm:DescribeInstanceInformation',
    'ssm:ListCommandInvocations',
    'ssm:GetCommandInvocation',
  ),
  { action: 'ssm:SendCommand', scopes: ['shell-document', 'own-commands'] },
  ...useful('region', 'ec2:DescribeSpotPriceHistory', 'ec2:GetConsoleOutput', 'ec2:DescribeRouteTables'),
  ...useful('region', 'ec2:DescribeVpcEndpoints', 'ec2:DescribeCapacityReservations'),
  // Shows the outcome of a fleet whose answer was empty.
  ...useful('region', 'ec2:DescribeFleets'),
  ...useful('region', 'ec2:DescribeLaunchTemplates', 'ec2:DescribeSpotInstanceRequests'),
  ...useful('own-spot-requests', 'ec2:CancelSpotInstanceRequests'),
  ...useful('region', 'servicequotas:GetServiceQuota'),
  ...useful('region', 'servicequotas:ListRequestedServiceQuotaChangeHistory'),
  ...useful('own-templates', 'ec2:DeleteLaunchTemplate'),
  ...useful('anywhere', 'pricing:GetProducts', 'freetier:GetAccountPlanState', 'iam:SimulatePrincipalPolicy'),
  ...useful('machine-profile', 'iam:GetInstanceProfile'),
  ...useful('machine-role', 'iam:ListAttachedRolePolicies'),
  ...useful('spot-role', 'iam:GetRole'),
]

/** What workers need to give each machine separate credentials. `crucible doctor` requests some and tries them. */
export const GRANT_PERMISSIONS: readonly Permission[] = needed('grant-role', 'sts:AssumeRole')

/** Permissions on the store: of workers, of clients, and of the role behind the grants. */
export const STORE_PERMISSIONS: readonly Permission[] = [
  ...needed('store-objects', 's3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'),
  ...needed('store-objects', 's3:ListMultipartUploadParts'),
  ...needed('store', 's3:ListBucket'),
  ...useful('store', 's3:ListBucketMultipartUploads'),
]

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

interface ScopeRule {
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

const SCOPES: Readonly<Record<Scope, ScopeRule>> = {
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

/** Permissions as statements, one per scope. */
export function statementsOf(permissions: readonly Permission[], facts: PolicyFacts): Statement[] {
  return scopesOf(permissions).map(([scope, some]) => {
    const { resource, condition } = SCOPES[scope]
    return {
      Effect: 'Allow',
      Action: some.map(({ action }) => action),
      Resource: resource(facts),
      ...(condition === undefined ? {} : { Condition: condition(facts) }),
    }
  })
}

/** The questions for a permission check: actions and the scopes in which they must be allowed. */
export function probesOf(
  permissions: readonly Permission[],
  facts: PolicyFacts,
): { actions: string[]; probe: Probe }[] {
  return scopesOf(permissions).map(([scope, some]) => ({
    actions: some.map(({ action }) => action),
    probe: SCOPES[scope].probe(facts),
  }))
}

function scopesOf(permissions: readonly Permission[]): [Scope, Permission[]][] {
  const scopes = [...new Set(permissions.flatMap(({ scopes: each }) => each))]
  return scopes.map((scope) => [scope, permissions.filter(({ scopes: each }) => each.includes(scope))])
}
