import type { Problem } from '../../backend'
import type { Subnet } from '../sdk/api'
import type { Host } from '../host'

/** Endpoints that the agent and the runner need. Since version 3.3.40 the agent does not need `ec2messages`. */
const NEEDED = ['ssm', 'ssmmessages', 's3']

/** Why machines of a subnet cannot reach their endpoints, or `undefined` if they can. */
export async function wayOut(host: Host, subnet: Subnet, signal: AbortSignal): Promise<Problem | undefined> {
  const [route, endpoints] = await Promise.all([
    host.api.network.defaultRoute(subnet, signal),
    host.api.network.endpoints(subnet.vpc, signal),
  ])
  const missing = NEEDED.filter((name) => !endpoints.includes(name))
  if (missing.length === 0) return undefined
  const where = `the subnet ${subnet.id} in ${subnet.zone}`
  if (route === undefined) {
    return {
      severity: 'error',
      message: `${where} has no outbound route: no default route, and no endpoints for ${missing.join(', ')}`,
      remedy: `Give it a route to an internet or NAT gateway, or endpoints for ${missing.join(', ')}, or leave it out of CRUCIBLE_EC2_SUBNETS.`,
    }
  }
  if (route.startsWith('igw-') && !subnet.givesPublicAddress) {
    return {
      severity: 'error',
      message: `${where} leads to an internet gateway, but gives its machines no public address`,
      remedy: `Run: aws ec2 modify-subnet-attribute --subnet-id ${subnet.id} --map-public-ip-on-launch; or route it through a NAT gateway.`,
    }
  }
  return undefined
}
