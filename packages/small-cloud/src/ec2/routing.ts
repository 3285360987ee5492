/** Routes of a subnet's traffic. */
import { EVERYWHERE } from './first-network'
import type { Instance, Region, RouteTable, Subnet } from './model'

/** Returns the table of a subnet: its own, otherwise the main one of its network. */
function tableOf({ routeTables }: Region, { id, vpcId }: Subnet): RouteTable | undefined {
  const own = routeTables.find(({ associations }) => associations.some(({ subnetId }) => subnetId === id))
  return own ?? routeTables.find((table) => table.vpcId === vpcId && table.isMain)
}

/** Whether a machine can reach the Internet: its subnet has a route, and its groups allow outbound traffic. */
export function hasInternet(
  region: Region,
  { subnet, publicIp, groupIds }: Pick<Instance, 'subnet' | 'publicIp' | 'groupIds'>,
): boolean {
  const route = tableOf(region, subnet)?.routes.find(({ cidr }) => cidr === EVERYWHERE)
  const gateway = region.gateways.find(({ id }) => id === route?.gatewayId)
  const isPublic = publicIp !== undefined && gateway?.vpcId === subnet.vpcId
  return mayLeave(region, groupIds) && (route?.natGatewayId !== undefined || isPublic)
}

/** Whether a machine can reach the services through endpoints in its subnet. */
export function hasEndpoints(
  region: Region,
  { subnet, groupIds }: Pick<Instance, 'subnet' | 'groupIds'>,
): boolean {
  const serves = region.endpoints.some(({ subnetIds }) => subnetIds.includes(subnet.id))
  return mayLeave(region, groupIds) && serves
}

const HTTPS = 443

function mayLeave({ groups }: Region, ids: readonly string[]): boolean {
  return groups
    .filter(({ id }) => ids.includes(id))
    .some(({ egress }) =>
      egress.some(
        ({ protocol, fromPort = 0, toPort = 65_535 }) =>
          protocol === '-1' || (protocol === 'tcp' && fromPort <= HTTPS && toPort >= HTTPS),
      ),
    )
}
