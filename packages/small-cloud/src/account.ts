/** Resources of an account other than machines, for tests that check for leftovers. */
import type { Ec2 } from './ec2/ec2'

export interface AccountSummary {
  roles: {
    name: string
    arn: string
    managed: string[]
    policies: string[]
    trusts: string[]
    tags: Record<string, string>
  }[]
  profiles: { name: string; role?: string }[]
  /** Ids and names by kind, for each Region. */
  regions: Record<string, Record<string, string[]>>
}

export function summaryOfAccount(ec2: Ec2): AccountSummary {
  const { roles, profiles } = ec2.parts.identities
  return {
    roles: [...roles.values()].map(({ name, arn, plan, tags }) => ({
      name,
      arn,
      managed: plan.managed,
      policies: Object.keys(plan.policies),
      trusts: plan.trusts,
      tags: Object.fromEntries(tags),
    })),
    profiles: [...profiles.values()].map(({ name, role }) => ({
      name,
      ...(role === undefined ? {} : { role: role.name }),
    })),
    regions: Object.fromEntries(
      [...ec2.regions].map(([name, region]) => {
        const { vpcs, subnets, gateways, routeTables, endpoints, groups, templates, volumes } = region
        const lists = { vpcs, subnets, gateways, routeTables, endpoints, groups }
        const kinds = { ...lists, templates: [...templates.values()], volumes: [...volumes.values()] }
        const ids = Object.entries(kinds).map(([kind, parts]) => [kind, parts.map(({ id }) => id)])
        return [name, Object.fromEntries(ids) as Record<string, string[]>]
      }),
    ),
  }
}
