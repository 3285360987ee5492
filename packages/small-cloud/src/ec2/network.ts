/** Describes regions, zones and subnets. */
import { z } from 'zod'
import { dryRun, filter, flag, list, paging, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { chosen, page, select } from './filters'
import { KINDS, visible } from './network-parts'
import { groupWords, subnetWords, vpcWords } from './network-words'
import { wayActions } from './ways-out'

const filters = { Filter: list(filter).default([]) }
const PAGE = { most: 1000 }

export function networkActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeRegions: describeRegions(ec2),
    DescribeAvailabilityZones: describeZones(ec2),
    DescribeSubnets: describeSubnets(ec2),
    DescribeVpcs: describeVpcs(ec2),
    DescribeSecurityGroups: describeSecurityGroups(ec2),
    ...wayActions(ec2),
  }
}

const optInStatusOf = ({ isEnabled }: { isEnabled: boolean }): string =>
  isEnabled ? 'opt-in-not-required' : 'not-opted-in'

function describeRegions(ec2: Ec2): Action {
  const endpointOf = (name: string): string => `ec2.${name}.amazonaws.com`
  return action({
    input: z.strictObject({
      ...dryRun,
      ...filters,
      RegionName: list(text).default([]),
      AllRegions: flag.optional(),
    }),
    run({ Filter, RegionName, AllRegions = false }) {
      const known = [...ec2.regions].map(([name, { plan }]) => ({ name, isEnabled: plan.isEnabled }))
      const wanted = chosen(known, RegionName, {
        by: ({ name }) => name,
        code: 'InvalidParameterValue',
        what: 'region',
      })
      const shown = wanted.filter(({ isEnabled }) => isEnabled || AllRegions)
      const found = select(shown, Filter, {
        'region-name': ({ name }) => name,
        endpoint: ({ name }) => endpointOf(name),
        'opt-in-status': optInStatusOf,
      })
      const regionInfo = found.map((each) => ({
        regionName: each.name,
        regionEndpoint: endpointOf(each.name),
        optInStatus: optInStatusOf(each),
      }))
      return { regionInfo }
    },
  })
}

function describeZones(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...filters,
      ZoneName: list(text).default([]),
      ZoneId: list(text).default([]),
      AllAvailabilityZones: flag.optional(),
    }),
    run({ Filter, ZoneName, ZoneId }, { region }) {
      const { zones } = ec2.region(region).plan
      const code = 'InvalidParameterValue'
      const named = chosen(zones, ZoneName, { by: ({ name }) => name, code, what: 'availability zone' })
      const wanted = chosen(named, ZoneId, { by: ({ id }) => id, code, what: 'zone id' })
      const found = select(wanted, Filter, {
        'zone-name': ({ name }) => name,
        'zone-id': ({ id }) => id,
        'region-name': () => region,
        state: () => 'available',
        'zone-type': () => 'availability-zone',
        'opt-in-status': () => 'opt-in-not-required',
        'group-name': () => `${region}-zg-1`,
      })
      const availabilityZoneInfo = found.map(({ name, id }) => ({
        zoneName: name,
        zoneState: 'available',
        optInStatus: 'opt-in-not-required',
        regionName: region,
        zoneId: id,
        groupName: `${region}-zg-1`,
        networkBorderGroup: region,
        zoneType: 'availability-zone',
        messageSet: [],
      }))
      return { availabilityZoneInfo }
    },
  })
}

function describeSubnets(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, SubnetId: list(text).default([]) }),
    run({ Filter, SubnetId, ...wish }, { region }) {
      const subnets = visible(ec2, ec2.region(region).subnets)
      const wanted = chosen(subnets, SubnetId, { by: ({ id }) => id, ...KINDS.subnet })
      const found = select(wanted, Filter, {
        'subnet-id': ({ id }) => id,
        'vpc-id': ({ vpcId }) => vpcId,
        'availability-zone': ({ zone }) => zone.name,
        'availability-zone-id': ({ zone }) => zone.id,
        'default-for-az': ({ isDefault }) => String(isDefault),
        'map-public-ip-on-launch': ({ hasPublicAddresses }) => String(hasPublicAddresses),
        state: () => 'available',
        'cidr-block': ({ cidr }) => cidr,
      })
      const { items, nextToken } = page(found, wish, PAGE)
      return { subnetSet: items.map((each) => subnetWords(ec2, each)), nextToken }
    },
  })
}

function describeVpcs(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, VpcId: list(text).default([]) }),
    run({ Filter, VpcId, ...wish }, { region }) {
      const vpcs = visible(ec2, ec2.region(region).vpcs)
      const wanted = chosen(vpcs, VpcId, { by: ({ id }) => id, ...KINDS.vpc })
      const found = select(wanted, Filter, {
        'vpc-id': ({ id }) => id,
        'is-default': ({ isDefault }) => String(isDefault),
        isDefault: ({ isDefault }) => String(isDefault),
        state: () => 'available',
        cidr: ({ cidr }) => cidr,
      })
      const { items, nextToken } = page(found, wish, PAGE)
      return { vpcSet: items.map((each) => vpcWords(ec2, each)), nextToken }
    },
  })
}

function describeSecurityGroups(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...filters,
      ...paging,
      GroupId: list(text).default([]),
      GroupName: list(text).default([]),
    }),
    run({ Filter, GroupId, GroupName, ...wish }, { region }) {
      const groups = visible(ec2, ec2.region(region).groups)
      const named = chosen(groups, GroupName, { by: ({ name }) => name, ...KINDS.group })
      const wanted = chosen(named, GroupId, { by: ({ id }) => id, ...KINDS.group })
      const found = select(wanted, Filter, {
        'group-id': ({ id }) => id,
        'group-name': ({ name }) => name,
        'vpc-id': ({ vpcId }) => vpcId,
      })
      const { items, nextToken } = page(found, wish, PAGE)
      return { securityGroupInfo: items.map((each) => groupWords(ec2, each)), nextToken }
    },
  })
}
