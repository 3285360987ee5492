/** What EC2 keeps of networks. */
import type { Zone } from '../world/world'

export type Tags = Map<string, string>

/** A part of a network, or a network. */
export interface NetworkPart {
  id: string
  /** Until then describes do not know it. */
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
  /** First three numbers of its addresses. */
  network: string
  isDefault: boolean
  /** Machines get a public address unless their launch says otherwise. */
  hasPublicAddresses: boolean
  addresses: number
  used: number
}

export interface Gateway extends NetworkPart {
  /** The network that it is attached to. */
  vpcId?: string
}

export interface Route {
  cidr: string
  gatewayId?: string
  natGatewayId?: string
}

export interface RouteTable extends NetworkPart {
  vpcId: string
  /** Subnets without an association follow it. */
  isMain: boolean
  /** Beside the one within the network. */
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
