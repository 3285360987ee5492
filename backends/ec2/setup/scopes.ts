import { arnIn } from '../../../network/partitions'
import { TAGS } from '../tags'

/** Resources and conditions that a permission covers. */
export type Scope =
  | 'region'
  | 'anywhere'
  | 'own-machines'
  | 'own-templates'
  | 'tagged-templates'
  | 'own-commands'
  | 'shell-document'
  | 'tags-at-launch'
  | 'machine-role'
  | 'own-roles'
  | 'quotas'
  | 'pass-machine-role'
  | 'own-spot-requests'
  | 'machine-profile'
  | 'blocks'
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
  /** ARN of the machines' role. */
  machineRoleArn: string
  machineProfile: string
  bucket: string
  /** The deployment whose resources the caller changes; any if missing. */
  deployment?: string
}

/** A resource and a call's context for which a permission limited to a scope must be allowed. */
export interface Probe {
  resource: string
  context: Record<string, string>
}

/** The same name in every AWS account. */
const SPOT_ROLE_PATH = 'aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot'
const INSTANCE = 'instance/i-0123456789abcdef0'
const RESERVATION = 'capacity-reservation/cr-0123456789abcdef0'
const TEMPLATE = 'launch-template/lt-0123456789abcdef0'

type Ask = (facts: PolicyFacts) => Probe

/** A resource of EC2 in the Region. `context` is that of the call, in addition to the Region. */
const ec2 =
  (name: string, context: (facts: PolicyFacts) => Record<string, string>): Ask =>
  (facts) => ({
    resource: arnIn(facts.region, `ec2:${facts.region}:${facts.account}:${name}`),
    context: { 'aws:RequestedRegion': facts.region, ...context(facts) },
  })

const tagged =
  (key: string) =>
  ({ deployment = 'any' }: PolicyFacts): Record<string, string> => ({
    [`${key}/${TAGS.deployment}`]: deployment,
  })
const owned = tagged('aws:ResourceTag')
const creating = (action: string) => (): Record<string, string> => ({ 'ec2:CreateAction': action })

/** A resource of Systems Manager that AWS provides in every Region. */
const provided =
  (name: string): Ask =>
  ({ region }) => ({
    resource: arnIn(region, `ssm:${region}::${name}`),
    context: { 'aws:RequestedRegion': region },
  })

const named =
  (resource: (facts: PolicyFacts) => string, context: Record<string, string> = {}): Ask =>
  (facts) => ({ resource: resource(facts), context })

export const PROBES: Readonly<Record<Scope, Ask>> = {
  anywhere: named(() => '*'),
  region: ({ region }) => ({ resource: '*', context: { 'aws:RequestedRegion': region } }),
  'own-machines': ec2(INSTANCE, owned),
  'own-templates': ec2(TEMPLATE, owned),
  'tagged-templates': ec2(TEMPLATE, tagged('aws:RequestTag')),
  'own-spot-requests': ec2('spot-instances-request/sir-0123456789ab', owned),
  'own-commands': ec2(INSTANCE, tagged('ssm:resourceTag')),
  'tags-at-launch': ec2(INSTANCE, creating('CreateFleet')),
  blocks: ec2(RESERVATION, () => ({})),
  'own-reservations': ec2(RESERVATION, owned),
  'tagged-reservations': ec2(RESERVATION, tagged('aws:RequestTag')),
  'tags-at-purchase': ec2(RESERVATION, creating('PurchaseCapacityBlock')),
  'shell-document': provided('document/AWS-RunShellScript'),
  'public-parameters': provided('parameter/aws/service/deeplearning/ami'),
  quotas: ({ region, account }) => ({
    resource: arnIn(region, `servicequotas:${region}:${account}:ec2/L-00000000`),
    context: { 'aws:RequestedRegion': region },
  }),
  'own-roles': named(({ machineRoleArn }) => machineRoleArn),
  'machine-role': named(({ machineRoleArn }) => machineRoleArn),
  'pass-machine-role': named(({ machineRoleArn }) => machineRoleArn, {
    'iam:PassedToService': 'ec2.amazonaws.com',
  }),
  'machine-profile': named(({ region, account, machineProfile }) =>
    arnIn(region, `iam::${account}:instance-profile/${machineProfile}`),
  ),
  'spot-role': named(({ region, account }) => arnIn(region, `iam::${account}:role/${SPOT_ROLE_PATH}`)),
  store: named(({ region, bucket }) => arnIn(region, `s3:::${bucket}`), { 's3:prefix': 'jobs/' }),
  'store-objects': named(({ region, bucket }) => arnIn(region, `s3:::${bucket}/jobs/any`)),
}
