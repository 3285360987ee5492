import { PROBES, type PolicyFacts, type Probe, type Scope } from './scopes'

export type { PolicyFacts } from './scopes'

/** A permission that workers need, or that improves something. */
export interface Permission {
  /** Name of the action, as policies write it. */
  action: string
  /** Scopes of the permission; each of them is needed. */
  scopes: readonly Scope[]
  /** Only an optional feature needs the permission. */
  isOptional?: true
}

const needed = (scope: Scope, ...actions: string[]): Permission[] =>
  actions.map((action) => ({ action, scopes: [scope] }))
const useful = (scope: Scope, ...actions: string[]): Permission[] =>
  needed(scope, ...actions).map((each) => ({ ...each, isOptional: true }))

/**
 * Everything that the verbs, the checks and the store call: the checks test these permissions. deploy/aws and deploy/terraform grant them
 * to workers, and docs/reference/aws-account.md prints them; tests compare all three with this list.
 */
export const WORKER_PERMISSIONS: readonly Permission[] = [
  ...needed(
    'region',
    'ec2:DescribeInstances',
    'ec2:DescribeInstanceTypes',
    'ec2:DescribeInstanceTypeOfferings',
  ),
  ...needed('region', 'ec2:DescribeImages', 'ec2:DescribeSubnets', 'ec2:DescribeSecurityGroups'),
  ...needed('region', 'ec2:DescribeVolumes', 'ec2:CreateFleet', 'ec2:RunInstances'),
  ...needed('tagged-templates', 'ec2:CreateLaunchTemplate'),
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
  ...useful('region', 'ec2:DescribeSpotPriceHistory'),
  ...useful('own-machines', 'ec2:GetConsoleOutput'),
  ...useful(
    'region',
    'ec2:DescribeRouteTables',
    'ec2:DescribeVpcEndpoints',
    'ec2:DescribeCapacityReservations',
    'ec2:GetEbsDefaultKmsKeyId',
  ),
  // Shows the outcome of a fleet whose answer was empty.
  ...useful('region', 'ec2:DescribeFleets'),
  ...useful('region', 'ec2:DescribeLaunchTemplates', 'ec2:DescribeSpotInstanceRequests'),
  ...useful('own-spot-requests', 'ec2:CancelSpotInstanceRequests'),
  ...useful('quotas', 'servicequotas:GetServiceQuota'),
  ...useful('region', 'servicequotas:ListRequestedServiceQuotaChangeHistory'),
  ...useful('own-templates', 'ec2:DeleteLaunchTemplate'),
  ...useful('anywhere', 'pricing:GetProducts', 'freetier:GetAccountPlanState'),
  ...useful('own-roles', 'iam:SimulatePrincipalPolicy'),
  ...useful('machine-profile', 'iam:GetInstanceProfile'),
  ...useful('machine-role', 'iam:ListAttachedRolePolicies'),
  ...useful('spot-role', 'iam:GetRole'),
]

/**
 * Permissions to buy capacity in advance and to hold it: of a separate role, since a purchase cannot be undone. Capacity Blocks can be bought
 * without our tags, by people. An on-demand reservation must be tagged, and only tagged ones are changed and given back.
 */
export const BUYER_PERMISSIONS: readonly Permission[] = [
  ...needed('anywhere', 'ec2:DescribeInstanceTypes', 'ec2:DescribeCapacityReservations'),
  ...needed('anywhere', 'ec2:DescribeCapacityBlockOfferings', 'ec2:DescribeCapacityBlockExtensionOfferings'),
  ...needed('anywhere', 'ec2:DescribeCapacityBlockExtensionHistory'),
  ...needed('anywhere', 'ec2:DescribeCapacityReservationCancellationQuotes'),
  ...needed('blocks', 'ec2:PurchaseCapacityBlock', 'ec2:PurchaseCapacityBlockExtension'),
  ...needed('tagged-reservations', 'ec2:CreateCapacityReservation'),
  ...needed('own-reservations', 'ec2:ModifyCapacityReservation', 'ec2:CancelCapacityReservation'),
  ...needed('own-reservations', 'ec2:CreateCapacityReservationBySplitting'),
  ...needed('own-reservations', 'ec2:CreateCapacityReservationCancellationQuote'),
  ...needed('own-reservations', 'ec2:CreateCapacityReservationDateChangeQuote'),
  ...needed('tags-at-purchase', 'ec2:CreateTags'),
]

/** Permissions on the key of an encrypted store: of workers, and of the role behind the grants. */
export const STORE_KEY_ACTIONS = ['kms:Decrypt', 'kms:GenerateDataKey']

/** Permissions on the account's own key for disks, if there is one: without them EC2 accepts each launch and ends the machine at once. */
export const DISK_KEY_ACTIONS = [
  'kms:CreateGrant',
  'kms:Decrypt',
  'kms:DescribeKey',
  'kms:GenerateDataKeyWithoutPlaintext',
  'kms:ReEncryptFrom',
  'kms:ReEncryptTo',
]

/** Permissions on the store: of workers, of clients, and of the role behind the grants. */
export const STORE_PERMISSIONS: readonly Permission[] = [
  ...needed('store-objects', 's3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'),
  ...needed('store-objects', 's3:ListMultipartUploadParts'),
  ...needed('store', 's3:ListBucket'),
  ...useful('store', 's3:ListBucketMultipartUploads'),
]

/** The questions for a permission check: actions and the scopes in which they must be allowed. */
export function probesOf(
  permissions: readonly Permission[],
  facts: PolicyFacts,
): { actions: string[]; probe: Probe }[] {
  return scopesOf(permissions).map(([scope, some]) => ({
    actions: some.map(({ action }) => action),
    probe: PROBES[scope](facts),
  }))
}

function scopesOf(permissions: readonly Permission[]): [Scope, Permission[]][] {
  const scopes = [...new Set(permissions.flatMap(({ scopes: each }) => each))]
  return scopes.map((scope) => [scope, permissions.filter(({ scopes: each }) => each.includes(scope))])
}
