import type { Statement } from './permissions'

/**
 * What an account needs, as data. API calls (`drivers.ts`) and Terraform (`terraform.ts`) are both derived from it, and from nothing else.
 */
export type Piece =
  | LinkedRolePiece
  | BucketPiece
  | RolePiece
  | ProfilePiece
  | VpcPiece
  | GatewayPiece
  | RoutesPiece
  | SubnetPiece
  | EndpointPiece
  | GroupPiece

interface Common {
  /** Unique in the description, and the name of the resource in Terraform. */
  id: string
  name: string
  /** Ids of pieces that must exist first. */
  needs: readonly string[]
}

/** The role of an AWS service in the account. */
export interface LinkedRolePiece extends Common {
  kind: 'linked-role'
  service: string
  description: string
}

export interface BucketPiece extends Common {
  kind: 'bucket'
  region: string
  /** Days after which parts of an unfinished upload are removed. */
  abortUploadsAfterDays: number
  /** Short-lived objects, by prefix: days until they expire. */
  expireAfterDays: Readonly<Record<string, number>>
  policy: readonly Statement[]
}

export interface RolePiece extends Common {
  kind: 'role'
  description: string
  trust: Statement
  /** Names of managed policies. */
  managed: readonly string[]
  /** Inline policies by name. */
  policies: Readonly<Record<string, readonly Statement[]>>
  /** Names of inline policies of older set-ups. They are removed once no machine is left that was started without a grant. */
  formerPolicies?: readonly string[]
  /** Maximum length of a session; an hour if missing. */
  sessionSecondsMax?: number
  /** In addition to the common tags. */
  tags: Readonly<Record<string, string>>
}

export interface ProfilePiece extends Common {
  kind: 'profile'
  /** Name of its role. */
  role: string
}

export interface VpcPiece extends Common {
  kind: 'vpc'
  cidr: string
}

export interface GatewayPiece extends Common {
  kind: 'gateway'
}

/** One route table for all subnets: all traffic leaves through the gateway. */
export interface RoutesPiece extends Common {
  kind: 'routes'
}

export interface SubnetPiece extends Common {
  kind: 'subnet'
  zone: string
  cidr: string
}

/** Traffic to the store stays inside the network, and is free. */
export interface EndpointPiece extends Common {
  kind: 'endpoint'
  service: string
}

export interface GroupPiece extends Common {
  kind: 'group'
  description: string
  /** An existing network; the one of the description if missing. */
  vpcId?: string
}

export const WHAT: Readonly<Record<Piece['kind'], string>> = {
  'linked-role': 'role of a service',
  bucket: 'bucket',
  role: 'role',
  profile: 'instance profile',
  vpc: 'network',
  gateway: 'internet gateway',
  routes: 'route table',
  subnet: 'subnet',
  endpoint: 'endpoint',
  group: 'security group',
}

export const SETUP_TAGS = {
  /** Tag on everything that set-up creates: its prefix. */
  setup: 'crucible:setup',
  /** Tag on the machines' role: the other choices. */
  region: 'crucible:region',
  bucket: 'crucible:bucket',
  /** Who takes the role of the buyer: one of `BUYERS`. */
  buyer: 'crucible:buyer',
} as const

export const BUYERS = { workers: 'workers', people: 'people' } as const

export function policyText(statements: readonly Statement[]): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: statements })
}
