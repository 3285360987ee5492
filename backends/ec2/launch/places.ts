import { MINUTE_MS } from '../../../core/time/time'
import type { Ec2Api, SecurityGroup, Subnet } from '../sdk/api'
import { cached } from '../../calls'
import { GROUP_DEFAULT, type Ec2Config } from '../config'
import { invalid } from '../errors'

/** Subnets and security groups for machines. */
export interface Places {
  /** Returns all configured subnets. */
  subnets(signal: AbortSignal): Promise<Subnet[]>
  /** Returns for each zone the subnet with the most free addresses. */
  byZone(signal: AbortSignal): Promise<ReadonlyMap<string, Subnet>>
  /** The security groups of the machines in one network. */
  groups(vpc: string, signal: AbortSignal): Promise<SecurityGroup[]>
}

/** Long enough to cost little, short enough that a new subnet is soon used and a full one noticed. */
const FRESH_MS = 2 * MINUTE_MS

export function createPlaces({
  config,
  api,
  clock,
}: {
  config: Ec2Config
  api: Ec2Api
  clock: () => number
}): Places {
  const subnets = cached({
    freshForMs: FRESH_MS,
    clock,
    read: async (signal) => {
      const named = await api.network.subnets(config.subnets, signal)
      // Subnets are named for some Regions; the others use their default ones.
      const isElsewhere = named.length === 0 && config.subnets !== 'default' && config.regions.length > 1
      const found = isElsewhere ? await api.network.subnets('default', signal) : named
      if (found.length === 0) throw invalid(...whyNoSubnets(config))
      return found
    },
  })
  const groups = cached({
    freshForMs: FRESH_MS,
    clock,
    read: async (signal) => {
      const vpcs = [...new Set((await subnets.get(signal)).value.map(({ vpc }) => vpc))]
      const { securityGroups } = config
      const wanted = 'ids' in securityGroups ? securityGroups : { name: securityGroups.name, vpcs }
      return api.network.securityGroups(wanted, signal)
    },
  })
  return {
    subnets: async (signal) => (await subnets.get(signal)).value,
    byZone: async (signal) => roomiest((await subnets.get(signal)).value),
    groups: async (vpc, signal) => {
      const found = (await groups.get(signal)).value.filter((group) => group.vpc === vpc)
      if (found.length === 0) throw invalid(...whyNoGroups(config, vpc))
      return found
    },
  }
}

function roomiest(subnets: Subnet[]): Map<string, Subnet> {
  const byZone = new Map<string, Subnet>()
  for (const subnet of subnets) {
    const best = byZone.get(subnet.zone)
    if (best === undefined || subnet.freeAddresses > best.freeAddresses) byZone.set(subnet.zone, subnet)
  }
  return byZone
}

function whyNoSubnets({ subnets, region }: Ec2Config): [string, string] {
  return subnets === 'default'
    ? [
        `${region} has no default subnet`,
        'Set CRUCIBLE_EC2_SUBNETS to your subnets, or run: aws ec2 create-default-vpc',
      ]
    : [
        `none of the subnets ${subnets.join(', ')} is in ${region}`,
        'Set CRUCIBLE_EC2_SUBNETS to subnets that are.',
      ]
}

function whyNoGroups({ securityGroups }: Ec2Config, vpc: string): [string, string] {
  return 'ids' in securityGroups
    ? [
        `none of the security groups ${securityGroups.ids.join(', ')} is in the network ${vpc} of the subnets`,
        'Set CRUCIBLE_EC2_SECURITY_GROUPS to groups of that network.',
      ]
    : [
        `the network ${vpc} has no security group named ${securityGroups.name}`,
        `Run: aws ec2 create-security-group --vpc-id ${vpc} --group-name ${GROUP_DEFAULT} --description "Machines of Crucible: nothing comes in"`,
      ]
}
