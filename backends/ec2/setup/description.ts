import {
  BUYER_PERMISSIONS,
  BUYING_PERMISSIONS,
  GRANT_PERMISSIONS,
  STORE_PERMISSIONS,
  statementsOf,
  WORKER_PERMISSIONS,
  type PolicyFacts,
  type Statement,
} from './permissions'
import { AGENT_ACTIONS, IMAGE_ACTIONS } from './role-actions'
import { BUYERS, SETUP_TAGS, type Piece, type RolePiece, type SubnetPiece } from './pieces'

/** Everything that the description depends on. Terraform replaces the texts by its variables. */
export interface Choices {
  account: string
  /** Region of the store, and of machines. */
  region: string
  /** Other Regions of machines: each gets a separate network or uses its default one. */
  moreRegions?: readonly string[]
  prefix: string
  bucket: string
  /** An existing network, or one to be created with a subnet in each zone. */
  network: { vpcId: string } | { zones: readonly string[] }
  /** The account has no spot role yet, or one that set-up created. */
  makesSpotRole: boolean
  /** Workers may take the role of the buyer. */
  letsWorkersBuy: boolean
}

const SPOT_SERVICE = 'spot.amazonaws.com'
/** Its first sixteenth belongs to the first zone. Differs from that of default networks, so that both can be peered. */
const CIDR = '10.42.0.0/16'
/** Workers end unfinished uploads after three days; this applies if no workers are left. */
const ABORT_UPLOADS_DAYS = 7
/** Objects that `crucible doctor` puts and removes, if it was killed in between. Nothing of a job ever expires. */
const EXPIRE_DAYS = { 'probes/': 1 }

/** Tag by which several set-ups in one account recognise each other. */
export const MACHINE_DESCRIPTION = 'Machines of Crucible: agent, store, images'
/** The longest possible session of a role: a grant of this length lets a machine outlive a long outage of the control plane. */
const GRANT_SESSION_SECONDS = 12 * 3600

/** The call that creates a service's role takes no tags: this text identifies its owner from the start. */
export const spotDescription = (prefix: string): string => `Made by the set-up ${prefix} of Crucible`

export const ROLES = ['machine', 'grant', 'worker', 'buyer'] as const
export type RoleOf = (typeof ROLES)[number]

export const roleName = (prefix: string, of: RoleOf): string => `${prefix}-${of}`

/** Everything that an account needs, in the order of creation. */
export function describeAccount(choices: Choices): Piece[] {
  const { account, region, moreRegions = [], prefix, bucket, makesSpotRole, letsWorkersBuy } = choices
  const machine = roleName(prefix, 'machine')
  const facts: PolicyFacts = {
    ...{ account, region, bucket, machineRole: machine, machineProfile: machine },
    grantRole: roleName(prefix, 'grant'),
    buyerRole: roleName(prefix, 'buyer'),
    ...(moreRegions.length > 0 && { moreRegions }),
  }
  return [
    ...(makesSpotRole ? [spotRole(prefix)] : []),
    {
      kind: 'bucket',
      id: 'store',
      name: bucket,
      needs: [],
      region,
      abortUploadsAfterDays: ABORT_UPLOADS_DAYS,
      expireAfterDays: EXPIRE_DAYS,
      policy: [onlyEncryptedTraffic(bucket)],
    },
    ...rolesOf(facts, { prefix, letsWorkersBuy }),
    { kind: 'profile', id: 'machine_profile', name: machine, needs: ['machine'], role: machine },
    ...networkOf(choices),
  ]
}

function spotRole(prefix: string): Piece {
  return {
    kind: 'linked-role',
    id: 'spot',
    name: 'AWSServiceRoleForEC2Spot',
    description: spotDescription(prefix),
    needs: [],
    service: SPOT_SERVICE,
  }
}

function onlyEncryptedTraffic(bucket: string): Statement {
  const arn = `arn:aws:s3:::${bucket}`
  return {
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:*',
    Resource: [arn, `${arn}/*`],
    Condition: { Bool: { 'aws:SecureTransport': 'false' } },
  }
}

const trusting = (principal: Record<string, string>): Statement => ({
  Effect: 'Allow',
  Principal: principal,
  Action: 'sts:AssumeRole',
})

function rolesOf(
  facts: PolicyFacts,
  { prefix, letsWorkersBuy }: Pick<Choices, 'prefix' | 'letsWorkersBuy'>,
): RolePiece[] {
  const { account, region, moreRegions = [], bucket } = facts
  const store = statementsOf(STORE_PERMISSIONS, facts)
  const everywhere = (Action: readonly string[]): Statement => ({ Effect: 'Allow', Action, Resource: '*' })
  const byAccount = trusting({ AWS: `arn:aws:iam::${account}:root` })
  const common = { kind: 'role', needs: [], tags: {}, managed: [] } as const
  return [
    {
      ...common,
      id: 'machine',
      name: roleName(prefix, 'machine'),
      description: MACHINE_DESCRIPTION,
      trust: trusting({ Service: 'ec2.amazonaws.com' }),
      policies: { agent: [everywhere(AGENT_ACTIONS)], images: [everywhere(IMAGE_ACTIONS)] },
      // Machines used the store with their role before they got grants.
      formerPolicies: ['store'],
      tags: {
        [SETUP_TAGS.region]: [region, ...moreRegions].join(' '),
        [SETUP_TAGS.bucket]: bucket,
        [SETUP_TAGS.buyer]: letsWorkersBuy ? BUYERS.workers : BUYERS.people,
      },
    },
    {
      ...common,
      id: 'grant',
      name: roleName(prefix, 'grant'),
      description: 'Machines of Crucible, narrowed by each session to one attempt of one job',
      trust: byAccount,
      policies: { store },
      sessionSecondsMax: GRANT_SESSION_SECONDS,
    },
    {
      ...common,
      id: 'worker',
      name: roleName(prefix, 'worker'),
      description: 'Workers and clients of Crucible: run jobs, and nothing else',
      trust: byAccount,
      policies: {
        machines: statementsOf(WORKER_PERMISSIONS, facts),
        grants: statementsOf(GRANT_PERMISSIONS, facts),
        ...(letsWorkersBuy && { buying: statementsOf(BUYING_PERMISSIONS, facts) }),
        store,
      },
    },
    {
      ...common,
      id: 'buyer',
      name: roleName(prefix, 'buyer'),
      description: 'Buys and holds capacity in advance, for good: for people, and for workers that may buy',
      trust: byAccount,
      policies: { buy: statementsOf(BUYER_PERMISSIONS, facts) },
    },
  ]
}

/** What machines of one Region need there. */
export function networkOf({ network, prefix, region }: Choices): Piece[] {
  const group = {
    kind: 'group',
    id: 'machines',
    name: `${prefix}-machine`,
    description: 'Machines of Crucible: nothing comes in',
  } as const
  if ('vpcId' in network) return [{ ...group, needs: [], vpcId: network.vpcId }]
  const subnets = network.zones.map((zone, at): SubnetPiece => {
    const cidr = CIDR.replace('.0.0/16', `.${at * 16}.0/20`)
    return {
      kind: 'subnet',
      id: `subnet_${at}`,
      name: `${prefix} ${zone}`,
      needs: ['vpc', 'routes'],
      zone,
      cidr,
    }
  })
  return [
    { kind: 'vpc', id: 'vpc', name: prefix, needs: [], cidr: CIDR },
    { kind: 'gateway', id: 'gateway', name: prefix, needs: ['vpc'] },
    { kind: 'routes', id: 'routes', name: prefix, needs: ['vpc', 'gateway'] },
    ...subnets,
    {
      kind: 'endpoint',
      id: 's3',
      name: prefix,
      needs: ['vpc', 'routes'],
      service: `com.amazonaws.${region}.s3`,
    },
    { ...group, needs: ['vpc'] },
  ]
}
