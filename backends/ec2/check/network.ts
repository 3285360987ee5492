import type { Problem } from '../../backend'
import { wayOut } from './egress'
import type { Host } from '../host'

/** Checks whether machines of some subnet reach their endpoints. */
export async function checkWaysOut(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const subnets = [...(await host.places.byZone(signal)).values()]
  const ways = await Promise.all(subnets.map((subnet) => wayOut(host, subnet, signal)))
  const blocked = ways.filter((problem) => problem !== undefined)
  // One subnet with a route out is enough to start.
  const severity = blocked.length === subnets.length ? 'error' : 'warning'
  return blocked.map((problem): Problem => ({ ...problem, severity }))
}

/** Checks whether the security groups allow outbound traffic and no inbound traffic. */
export async function checkGroups(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const subnets = [...(await host.places.byZone(signal)).values()]
  const vpcs = [...new Set(subnets.map(({ vpc }) => vpc))]
  const groups = (await Promise.all(vpcs.map((vpc) => host.places.groups(vpc, signal)))).flat()
  return [
    ...(groups.some(({ letsOut }) => letsOut)
      ? []
      : [
          {
            severity: 'error' as const,
            message: `the security groups ${groups.map(({ id }) => id).join(', ')} allow no outbound traffic`,
            remedy: 'Allow outbound HTTPS (TCP 443).',
          },
        ]),
    ...groups
      .filter(({ inboundRules }) => inboundRules > 0)
      .map(({ id, name }): Problem => ({
        severity: 'warning',
        message: `the security group ${name} (${id}) allows inbound traffic, which machines do not need`,
        remedy: 'Remove its inbound rules, or set CRUCIBLE_EC2_SECURITY_GROUPS to a group without any.',
      })),
  ]
}
