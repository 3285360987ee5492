/** The data that EC2 keeps for networks. */
import type { Zone } from '../world/world'

export type Tags = Map<string, string>

/** A part of a network, or a network. */
export interface NetworkPart {
  id: string
  /** Describe calls do not return it before this instant. */
  visibleAtMs: number
  tags: Tags
}

export interface Vpc extends NetworkPart {
  cidr: string
  isDefault: boolean
  hasDnsSupport: boolean
  hasDnsHostnames: boolean
}

export interface Subnet extends NetworkPart {
  vpcId: string
  zone: Zone
  cidr: string
  /** The first three numbers of its addresses. */
  network: string
  isDefault: boolean
  /** Whether machines get a public address by default. */
  hasPublicAddresses: boolean
  addresses: number
  used: number
}

export interface Gateway extends NetworkPart {
  /** The attached network. */
  vpcId?: string
}

interface Route {
  cidr: string
  gatewayId?: string
  natGatewayId?: string
}

export interface RouteTable extends NetworkPart {
  vpcId: string
  /** Subnets without an association use this table. */
  isMain: boolean
  /** Routes other than the local one. */
  routes: Route[]
  associations: { id: string; subnetId: string }[]
}

export interface Endpoint extends NetworkPart {
  vpcId: string
  service: string
  type: 'Interface' | 'Gateway'
  subnetIds: string[]
  routeTableIds: string[]
  createdAtMs: number
}

export interface Rule {
  protocol: string
  fromPort?: number
  toPort?: number
  cidrs: string[]
  groupIds: string[]
}

export interface SecurityGroup extends NetworkPart {
  name: string
  description: string
  vpcId: string
  isDefault: boolean
  ingress: Rule[]
  egress: Rule[]
}
