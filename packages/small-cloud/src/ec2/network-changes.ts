/** Creates, changes and deletes networks and subnets. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, flag, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { groupOf } from './first-network'
import { stateOf, type Instance, type Region, type Subnet, type Vpc } from './model'
import { done, inUse, KINDS, making, newPart, one, takeAway } from './network-parts'
import { subnetWords, vpcWords } from './network-words'

/** Default quota of an account per Region. */
const VPCS_MAX = 5
/** EC2 reserves the first four addresses of a subnet and its last one. */
const ADDRESSES_KEPT = 5

export function networkChanges(ec2: Ec2): Record<string, Action> {
  return {
    CreateVpc: createVpc(ec2),
    DeleteVpc: action({
      input: z.strictObject({ ...dryRun, VpcId: text }),
      isMutating: true,
      run({ VpcId }, { region: name }) {
        const region = ec2.region(name)
        const vpc = one(ec2, region.vpcs, { id: VpcId, ...KINDS.vpc })
        if (hasParts(region, vpc)) throw inUse('vpc', vpc.id)
        takeAway(region.vpcs, vpc)
        region.groups = region.groups.filter(({ vpcId }) => vpcId !== vpc.id)
        region.routeTables = region.routeTables.filter(({ vpcId }) => vpcId !== vpc.id)
        return done
      },
    }),
    CreateSubnet: createSubnet(ec2),
    ModifySubnetAttribute: action({
      input: z.strictObject({ SubnetId: text, MapPublicIpOnLaunch: z.strictObject({ Value: flag }) }),
      isMutating: true,
      run({ SubnetId, MapPublicIpOnLaunch }, { region }) {
        const subnet = one(ec2, ec2.region(region).subnets, { id: SubnetId, ...KINDS.subnet })
        subnet.hasPublicAddresses = MapPublicIpOnLaunch.Value
        return done
      },
    }),
    DeleteSubnet: action({
      input: z.strictObject({ ...dryRun, SubnetId: text }),
      isMutating: true,
      run({ SubnetId }, { region: name }) {
        const region = ec2.region(name)
        const subnet = one(ec2, region.subnets, { id: SubnetId, ...KINDS.subnet })
        if ([...region.instances.values()].some((each) => each.subnet === subnet && isThere(each)))
          throw inUse('subnet', subnet.id)
        for (const table of region.routeTables)
          table.associations = table.associations.filter(({ subnetId }) => subnetId !== subnet.id)
        takeAway(region.subnets, subnet)
        return done
      },
    }),
  }
}

/** A machine keeps its network interface until it is terminated, even while it is stopped. */
const isThere = (instance: Instance): boolean => stateOf(instance) !== 'terminated'

/** The default group and the main table are deleted with their network; all other parts must be deleted first. */
function hasParts(region: Region, { id }: Vpc): boolean {
  const isIn = ({ vpcId }: { vpcId?: string }): boolean => vpcId === id
  return (
    region.subnets.some(isIn) ||
    region.gateways.some(isIn) ||
    region.endpoints.some(isIn) ||
    region.routeTables.some((table) => isIn(table) && !table.isMain) ||
    region.groups.some((group) => isIn(group) && !group.isDefault)
  )
}

function createVpc(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...making, CidrBlock: text, InstanceTenancy: z.literal('default').optional() }),
    isMutating: true,
    run({ CidrBlock: cidr, TagSpecification: wanted }, { region: name }) {
      const region = ec2.region(name)
      const { bits } = rangeOf(cidr)
      if (bits < 16 || bits > 28)
        throw new ApiError('InvalidVpc.Range', `The CIDR '${cidr}' is invalid. It must be /16 to /28.`)
      if (region.vpcs.length >= VPCS_MAX)
        throw new ApiError('VpcLimitExceeded', 'The maximum number of VPCs has been reached.')
      const part = newPart(ec2, 'vpc', { kind: 'vpc', wanted })
      const vpc: Vpc = { ...part, cidr, isDefault: false, hasDnsSupport: true, hasDnsHostnames: false }
      region.vpcs.push(vpc)
      const with_ = (prefix: string) => ({
        ...newPart(ec2, prefix, { kind: '', wanted: [] }),
        visibleAtMs: vpc.visibleAtMs,
        vpcId: vpc.id,
      })
      region.groups.push(groupOf({ ...with_('sg'), name: 'default' }))
      region.routeTables.push({ ...with_('rtb'), isMain: true, routes: [], associations: [] })
      return { vpc: vpcWords(ec2, vpc) }
    },
  })
}

function createSubnet(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...making, VpcId: text, CidrBlock: text, AvailabilityZone: text.optional() }),
    isMutating: true,
    run({ VpcId, CidrBlock: cidr, AvailabilityZone, TagSpecification: wanted }, { region: name }) {
      const region = ec2.region(name)
      const vpc = one(ec2, region.vpcs, { id: VpcId, ...KINDS.vpc })
      const zone = region.plan.zones.find((each) => each.name === (AvailabilityZone ?? each.name))
      if (zone === undefined)
        throw new ApiError(
          'InvalidParameterValue',
          `Value (${AvailabilityZone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: ${region.plan.zones.map((each) => each.name).join(', ')}.`,
        )
      const range = rangeOf(cidr)
      const [whole, others] = [rangeOf(vpc.cidr), region.subnets.filter(({ vpcId }) => vpcId === vpc.id)]
      if (range.from < whole.from || range.to > whole.to)
        throw new ApiError('InvalidSubnet.Range', `The CIDR '${cidr}' is invalid.`)
      if (others.some((other) => rangeOf(other.cidr).from < range.to && range.from < rangeOf(other.cidr).to))
        throw new ApiError('InvalidSubnet.Conflict', `The CIDR '${cidr}' conflicts with another subnet`)
      const subnet: Subnet = {
        ...newPart(ec2, 'subnet', { kind: 'subnet', wanted }),
        vpcId: vpc.id,
        zone,
        cidr,
        network: cidr.split('.').slice(0, 3).join('.'),
        isDefault: false,
        hasPublicAddresses: false,
        addresses: range.to - range.from - ADDRESSES_KEPT,
        used: 0,
      }
      region.subnets.push(subnet)
      return { subnet: subnetWords(ec2, subnet) }
    },
  })
}

/** Returns a range of IPv4 addresses: the first address, and the first one after the range. */
function rangeOf(cidr: string): { from: number; to: number; bits: number } {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr)
  const [a = 256, b = 256, c = 256, d = 256, bits = 33] = match?.slice(1).map(Number) ?? []
  if ([a, b, c, d].some((part) => part > 255) || bits > 32)
    throw new ApiError(
      'InvalidParameterValue',
      `Value (${cidr}) for parameter cidrBlock is invalid. This is not a valid CIDR block.`,
    )
  const from = ((a * 256 + b) * 256 + c) * 256 + d
  return { from, to: from + 2 ** (32 - bits), bits }
}
