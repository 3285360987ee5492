import type { Statement } from './permissions'

/**
 * What an account needs, as data. Calls of the API (`drivers.ts`) and Terraform (`terraform.ts`) are both made of it, and of
 * nothing else.
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
  /** Ids of pieces that must be there before. */
  needs: readonly string[]
}

/** The role that a service keeps for itself in the account. */
export interface LinkedRolePiece extends Common {
  kind: 'linked-role'
  service: string
  description: string
}

export interface BucketPiece extends Common {
  kind: 'bucket'
  region: string
  /** Days after which a part of an upload that was never completed is removed. */
  abortUploadsAfterDays: number
  /** Objects that nobody needs for long, by prefix: after so many days. */
  expireAfterDays: Readonly<Record<string, number>>
  policy: readonly Statement[]
}

export interface RolePiece extends Common {
  kind: 'role'
  description: string
  trust: Statement
  /** Names of managed policies. */
  managed: readonly string[]
  /** Policies of its own by name. */
  policies: Readonly<Record<string, readonly Statement[]>>
  /**
   * Policies of its own, by name, that it had in older set-ups. They are removed once no machine is left that was started
   * without a grant.
   */
  formerPolicies?: readonly string[]
  /** How long a session of it can be; an hour when missing. */
  sessionSecondsMax?: number
  /** Beside those that everything has. */
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

/** One table for all subnets: everything leaves by the gateway. */
export interface RoutesPiece extends Common {
  kind: 'routes'
}

export interface SubnetPiece extends Common {
  kind: 'subnet'
  zone: string
  cidr: string
}

/** Traffic to the store stays inside, and costs nothing. */
export interface EndpointPiece extends Common {
  kind: 'endpoint'
  service: string
}

export interface GroupPiece extends Common {
  kind: 'group'
  description: string
  /** A network that was there; the one of the description when missing. */
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
  /** On everything that the set-up makes: its prefix. */
  setup: 'crucible:setup',
  /** On the machines' role: what else was chosen. */
  region: 'crucible:region',
  bucket: 'crucible:bucket',
} as const

export function policyText(statements: readonly Statement[]): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: statements })
}
