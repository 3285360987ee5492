/** The default network of a new account, as the world describes it. */
import { createHash } from 'node:crypto'
import type { World, RegionPlan } from '../world/world'
import type { Endpoint, Gateway, NetworkPart, Region, RouteTable, Rule, SecurityGroup, Subnet } from './model'

/** Ids of default resources depend only on the region's name, so that they are the same after a restart. */
export function lastingId(prefix: string, name: string): string {
  return `${prefix}-0${createHash('sha256').update(name).digest('hex').slice(0, 16)}`
}

const ENDPOINT_SERVICES = ['ssm', 'ssmmessages', 'ec2messages', 'sts', 'ec2']
export const EVERYWHERE = '0.0.0.0/0'
const CIDR = '172.31.0.0/16'

type Network = Pick<Region, 'vpcs' | 'gateways' | 'routeTables' | 'groups' | 'subnets' | 'endpoints' | 'nat'>

export function firstNetwork(world: World, plan: RegionPlan, nowMs: number): Network {
  if (!plan.hasDefaultVpc && plan.subnets.length === 0)
    return { vpcs: [], gateways: [], routeTables: [], groups: [], subnets: [], endpoints: [] }
  const name = `${world.account}/${plan.name}`
  const part = (prefix: string, of: string): NetworkPart => ({
    id: lastingId(prefix, of),
    visibleAtMs: nowMs,
    tags: new Map(),
  })
  const vpc = { ...part('vpc', name), cidr: CIDR, isDefault: plan.hasDefaultVpc }
  const subnets = plan.subnets.map((each, i): Subnet => {
    const zone = plan.zones.find((candidate) => candidate.name === each.zone)
    if (zone === undefined)
      throw new Error(`a subnet is in ${each.zone}, which is not a zone of ${plan.name}`)
    return {
      ...part('subnet', `${name}/${i}`),
      vpcId: vpc.id,
      zone,
      cidr: `172.31.${i * 16}.0/20`,
      network: `172.31.${i * 16}`,
      isDefault: each.isDefault,
      hasPublicAddresses: each.egress === 'public',
      addresses: each.addresses,
      used: 0,
    }
  })
  const gateway: Gateway = { ...part('igw', name), vpcId: vpc.id }
  const place = subnets.find(({ hasPublicAddresses }) => hasPublicAddresses) ?? subnets[0]
  const hasNat = place !== undefined && plan.subnets.some(({ egress }) => egress === 'nat')
  const nat = hasNat ? { id: lastingId('nat', name), subnet: place, publicIp: '198.51.100.1' } : undefined
  const routeTables = tablesOf(plan, subnets, (egress) => ({
    ...part('rtb', `${name}/${egress}`),
    vpcId: vpc.id,
    routes: routesOf(egress, { gatewayId: gateway.id, natGatewayId: nat?.id ?? '' }),
  }))
  return {
    vpcs: [{ ...vpc, hasDnsSupport: true, hasDnsHostnames: true }],
    gateways: [gateway],
    routeTables,
    subnets,
    groups: ['default', ...plan.groups].map((group) =>
      groupOf({ ...part('sg', `${name}/${group}`), vpcId: vpc.id, name: group }),
    ),
    endpoints: endpointsOf(plan, subnets, {
      createdAtMs: nowMs,
      routeTables,
      part: (service) => ({ ...part('vpce', `${name}/${service}`), vpcId: vpc.id }),
    }),
    ...(nat === undefined ? {} : { nat }),
  }
}

/** Creates a new group's rules: no inbound traffic, all outbound traffic. The default group accepts traffic from its own members. */
function groupOf(facts: NetworkPart & { vpcId: string; name: string; description?: string }): SecurityGroup {
  const isDefault = facts.name === 'default'
  const own: Rule = { protocol: '-1', cidrs: [], groupIds: [facts.id] }
  return {
    description: isDefault ? 'default VPC security group' : facts.name,
    ...facts,
    isDefault,
    ingress: isDefault ? [own] : [],
    egress: [{ protocol: '-1', cidrs: [EVERYWHERE], groupIds: [] }],
  }
}

type Egress = RegionPlan['subnets'][number]['egress']

function routesOf(egress: Egress, ways: { gatewayId: string; natGatewayId: string }): RouteTable['routes'] {
  if (egress === 'public') return [{ cidr: EVERYWHERE, gatewayId: ways.gatewayId }]
  return egress === 'nat' ? [{ cidr: EVERYWHERE, natGatewayId: ways.natGatewayId }] : []
}

/** Creates one table for each egress kind; the public one is the main table. */
function tablesOf(
  plan: RegionPlan,
  subnets: readonly Subnet[],
  make: (egress: Egress) => Omit<RouteTable, 'isMain' | 'associations'>,
): RouteTable[] {
  const found = [...new Set(plan.subnets.map(({ egress }) => egress))]
  const kinds: Egress[] = found.length === 0 ? ['public'] : found
  const main = kinds.includes('public') ? 'public' : kinds[0]
  return kinds.map((egress) => {
    const served = subnets.filter((_, i) => plan.subnets[i]!.egress === egress)
    const associations = served.map(({ id }) => ({ id: id.replace('subnet', 'rtbassoc'), subnetId: id }))
    const isMain = egress === main
    // The subnets of the main table use it without an explicit association.
    return { ...make(egress), isMain, associations: isMain ? [] : associations }
  })
}

function endpointsOf(
  plan: RegionPlan,
  subnets: readonly Subnet[],
  {
    part,
    createdAtMs,
    routeTables,
  }: {
    part: (service: string) => NetworkPart & { vpcId: string }
    createdAtMs: number
    routeTables: readonly RouteTable[]
  },
): Endpoint[] {
  const subnetIds = subnets.filter((_, i) => plan.subnets[i]!.egress === 'endpoints').map(({ id }) => id)
  if (subnetIds.length === 0) return []
  const tables = routeTables.filter(
    ({ isMain, associations }) =>
      associations.some(({ subnetId }) => subnetIds.includes(subnetId)) ||
      (isMain && subnetIds.length === subnets.length),
  )
  const interfaces = ENDPOINT_SERVICES.map((service): Endpoint => ({
    ...part(service),
    service: `com.amazonaws.${plan.name}.${service}`,
    type: 'Interface',
    subnetIds,
    routeTableIds: [],
    createdAtMs,
  }))
  const store: Endpoint = {
    ...part('s3'),
    service: `com.amazonaws.${plan.name}.s3`,
    type: 'Gateway',
    subnetIds: [],
    routeTableIds: tables.map(({ id }) => id),
    createdAtMs,
  }
  return [...interfaces, store]
}
