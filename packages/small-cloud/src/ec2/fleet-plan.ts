/** Plans a fleet: the requested pools in the order in which they are tried. */
import { z } from 'zod'
import { decimal, dryRun, flag, integer, list, tagSpecification, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import type { Call } from '../wire/service'
import type { CapacityType } from '../world/schema'
import { depthOf, poolOf } from './capacity'
import type { Ec2 } from './ec2'
import { blockDevice, merged, templateSpecification } from './launch-fields'
import { checkTagList, planLaunch, priceOf, subnetsFor, typeOf, type LaunchPlan } from './launch-plan'
import { launchDenial } from './launch-rights'
import type { LaunchFields, Subnet } from './model'
import { findVersion } from './templates'

const override = z.strictObject({
  InstanceType: text.optional(),
  MaxPrice: text.optional(),
  SubnetId: text.optional(),
  AvailabilityZone: text.optional(),
  Priority: decimal.optional(),
  ImageId: text.optional(),
  BlockDeviceMapping: list(blockDevice).optional(),
})
const grouping = {
  SingleInstanceType: flag.optional(),
  SingleAvailabilityZone: flag.optional(),
  MinTargetCapacity: integer.optional(),
}

export const fleetInput = z.strictObject({
  ...dryRun,
  ClientToken: text.optional(),
  Type: z.enum(['instant', 'request', 'maintain']).default('maintain'),
  LaunchTemplateConfigs: list(
    z.strictObject({
      LaunchTemplateSpecification: templateSpecification,
      Overrides: list(override).default([]),
    }),
  ),
  TargetCapacitySpecification: z.strictObject({
    TotalTargetCapacity: integer,
    OnDemandTargetCapacity: integer.optional(),
    SpotTargetCapacity: integer.optional(),
    DefaultTargetCapacityType: z.enum(['spot', 'on-demand']).optional(),
    TargetCapacityUnitType: z.literal('units').optional(),
  }),
  SpotOptions: z
    .strictObject({
      AllocationStrategy: z
        .enum([
          'lowest-price',
          'diversified',
          'capacity-optimized',
          'capacity-optimized-prioritized',
          'price-capacity-optimized',
        ])
        .default('lowest-price'),
      InstanceInterruptionBehavior: z.enum(['terminate', 'stop', 'hibernate']).default('terminate'),
      ...grouping,
    })
    .optional(),
  OnDemandOptions: z
    .strictObject({
      AllocationStrategy: z.enum(['lowest-price', 'prioritized']).default('lowest-price'),
      ...grouping,
    })
    .optional(),
  TagSpecification: list(tagSpecification).optional(),
})
export type FleetInput = z.output<typeof fleetInput>
type Override = z.output<typeof override>

/** One entry of `Overrides` with the template that it overrides. */
export interface FleetOverride {
  override: Override
  /** The type of the override, or of its template. */
  typeName: string
  template: { id: string; name: string; version: number }
}

/** One type in one subnet, with the override that named it. */
export interface FleetPool extends FleetOverride {
  plan: LaunchPlan
  subnet: Subnet
}

/** An override whose launch EC2 refuses before it checks capacity. */
export interface RefusedOverride extends FleetOverride {
  problem: ApiError
}

/** A fleet that EC2 accepts; its launches may still be refused. */
export interface FleetPlan {
  targets: Target[]
  pools: FleetPool[]
  refused: RefusedOverride[]
}

/** The number and kind of machines. */
export interface Target {
  capacity: CapacityType
  count: number
  least: number
  isSingleType: boolean
  isSingleZone: boolean
  strategy: string
}

/** Maximum number of overrides per fleet. */
const POOLS_MAX = 300
/** Spot requests get their tags only from the launch template. */
const TAGGABLE = ['fleet', 'instance', 'volume', 'network-interface']

/**
 * Checks a fleet before anything is launched. Throws the errors of `CreateFleet` itself. Errors of a launch (a profile, a group, an image,
 * a subnet, a permission) are reported per override, like in EC2: the call answers 200.
 */
export function planFleet(ec2: Ec2, wish: FleetInput, call: Call): FleetPlan {
  if (wish.Type !== 'instant')
    throw new ApiError(
      'InvalidParameterValue',
      `This small cloud makes fleets of the type instant, not ${wish.Type}`,
    )
  if (wish.SpotOptions !== undefined && wish.SpotOptions.InstanceInterruptionBehavior !== 'terminate')
    throw new ApiError('UnsupportedOperation', 'This small cloud ends spot machines that are interrupted')
  for (const { ResourceType, Tag } of wish.TagSpecification ?? []) {
    if (!TAGGABLE.includes(ResourceType))
      throw new ApiError(
        'InvalidParameterValue',
        `'${ResourceType}' is not a valid taggable resource type for this operation.`,
      )
    checkTagList(Tag)
  }
  const planned = wish.LaunchTemplateConfigs.flatMap((config) => poolsOf(ec2, call, { config, wish }))
  if (planned.length === 0)
    throw new ApiError('MissingParameter', 'The request must contain the parameter LaunchTemplateConfigs')
  if (planned.length > POOLS_MAX)
    throw new ApiError('InvalidParameterValue', `A fleet may have at most ${POOLS_MAX} overrides`)
  return {
    targets: targetsOf(wish),
    pools: planned.filter((each): each is FleetPool => 'plan' in each),
    refused: planned.filter((each): each is RefusedOverride => 'problem' in each),
  }
}

function targetsOf({
  TargetCapacitySpecification: wanted,
  SpotOptions: spot,
  OnDemandOptions: onDemand,
}: FleetInput): Target[] {
  const {
    TotalTargetCapacity: total,
    OnDemandTargetCapacity: own = 0,
    SpotTargetCapacity: cheap = 0,
  } = wanted
  if (total < 1) throw new ApiError('InvalidParameterValue', 'TotalTargetCapacity must be at least 1')
  if (own + cheap > total)
    throw new ApiError(
      'InvalidParameterCombination',
      'The spot and on-demand target capacities are more than the total',
    )
  const rest = total - own - cheap
  if (rest > 0 && wanted.DefaultTargetCapacityType === undefined)
    throw new ApiError(
      'InvalidParameterCombination',
      'DefaultTargetCapacityType is missing for a part of the total capacity',
    )
  const count = (capacity: CapacityType): number =>
    (capacity === 'spot' ? cheap : own) + (wanted.DefaultTargetCapacityType === capacity ? rest : 0)
  return (['on-demand', 'spot'] as const)
    .map((capacity) => {
      const options = capacity === 'spot' ? spot : onDemand
      return {
        capacity,
        count: count(capacity),
        least: options?.MinTargetCapacity ?? 0,
        isSingleType: options?.SingleInstanceType ?? false,
        isSingleZone: options?.SingleAvailabilityZone ?? false,
        strategy: options?.AllocationStrategy ?? 'lowest-price',
      }
    })
    .filter((target) => target.count > 0)
}

interface PoolWords {
  config: FleetInput['LaunchTemplateConfigs'][number]
  wish: FleetInput
}

function poolsOf(ec2: Ec2, call: Call, { config, wish }: PoolWords): (FleetPool | RefusedOverride)[] {
  const version = findVersion(ec2, call, config.LaunchTemplateSpecification)
  const template = { id: version.templateId, name: version.templateName, version: version.number }
  const overrides: Override[] = config.Overrides.length === 0 ? [{}] : config.Overrides
  const tags = (wish.TagSpecification ?? []).filter(({ ResourceType }) => ResourceType !== 'fleet')
  return overrides.flatMap((override): (FleetPool | RefusedOverride)[] => {
    const own: LaunchFields & { SubnetId?: string | undefined } = {
      InstanceType: override.InstanceType,
      ImageId: override.ImageId,
      SubnetId: override.SubnetId,
      BlockDeviceMapping: override.BlockDeviceMapping,
      ...(override.AvailabilityZone === undefined
        ? {}
        : { Placement: { AvailabilityZone: override.AvailabilityZone } }),
      TagSpecification: tags,
    }
    const fields = { ...merged(version.data, own), SubnetId: override.SubnetId }
    if (fields.InstanceMarketOptions !== undefined)
      throw new ApiError(
        'InvalidParameterCombination',
        'The launch template of a fleet may not have market options',
      )
    const words: FleetOverride = { override, template, typeName: typeOf(ec2, fields).name }
    const maxUsdPerHour = override.MaxPrice === undefined ? undefined : priceOf(override.MaxPrice)
    try {
      return launchesOf(ec2, call, fields).map(({ plan, subnet }) => ({
        ...words,
        subnet,
        plan: { ...plan, template, ...(maxUsdPerHour === undefined ? {} : { maxUsdPerHour }) },
      }))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return [{ ...words, problem: error }]
    }
  })
}

/** Returns the launch of one override in each of its possible subnets. */
function launchesOf(
  ec2: Ec2,
  call: Call,
  fields: LaunchFields & { SubnetId?: string | undefined },
): { plan: LaunchPlan; subnet: Subnet }[] {
  const plan = planLaunch(ec2, call, fields)
  const denial = launchDenial(ec2, call, plan)
  if (denial !== undefined) throw denial
  const { subnets, isZonal } = subnetsFor(plan.region, fields)
  // An instant fleet takes one subnet for each override; without a subnet it may choose.
  return (isZonal ? subnets.slice(0, 1) : subnets).map((subnet) => ({ plan, subnet }))
}

/** Returns the pools in the order in which the target's strategy tries them. */
export function ranked(ec2: Ec2, pools: readonly FleetPool[], target: Target): FleetPool[] {
  const { market } = ec2.parts
  const facts = pools.map((each, place) => {
    const plan = { ...each.plan, capacity: target.capacity }
    const pool = poolOf(plan, each.subnet)
    return {
      each: { ...each, plan },
      usd: market.priceOf(pool),
      isDeep: depthOf(ec2, pool) >= target.count,
      depth: depthOf(ec2, pool),
      priority: each.override.Priority ?? Infinity,
      place,
    }
  })
  type Facts = (typeof facts)[number]
  const byPrice = (a: Facts, b: Facts): number => a.usd - b.usd
  const byDepth = (a: Facts, b: Facts): number => b.depth - a.depth
  const byPriority = (a: Facts, b: Facts): number =>
    a.priority === b.priority ? a.place - b.place : a.priority - b.priority
  const byRoom = (a: Facts, b: Facts): number => Number(b.isDeep) - Number(a.isDeep)
  const orders: Record<string, ((a: Facts, b: Facts) => number)[]> = {
    'lowest-price': [byPrice],
    prioritized: [byPriority],
    diversified: [byPrice],
    'capacity-optimized': [byDepth, byPrice],
    'capacity-optimized-prioritized': [byRoom, byPriority],
    'price-capacity-optimized': [byRoom, byPrice],
  }
  const order = orders[target.strategy]!
  return facts
    .sort(
      (a, b) =>
        order.reduce((found, compare) => (found === 0 ? compare(a, b) : found), 0) || a.place - b.place,
    )
    .map(({ each }) => each)
}
