/** A world with all defaults of its file filled in. */
import { Random, type Range } from '../random'
import { DURATIONS, type DurationName, type Durations } from './durations'
import type { LoadedWorld } from './load'
import type { SubnetPlan, WorldPlan } from './schema'
import { machineTypes, type MachineType } from './types'

export interface World extends Omit<WorldPlan, 'durations' | 'regions' | 'types' | 'seed'> {
  seed: string
  durations: Durations
  regions: ReadonlyMap<string, RegionPlan>
  types: ReadonlyMap<string, MachineType>
  directory: string
  random: Random
}

export interface RegionPlan {
  name: string
  zones: Zone[]
  hasDefaultVpc: boolean
  subnets: SubnetPlan[]
  groups: string[]
  /** The account has enabled it. */
  isEnabled: boolean
  /** Quotas in vCPUs, by code: only those that differ from the quotas of all Regions. */
  quotas: Readonly<Record<string, number>>
}

export interface Zone {
  name: string
  /** `use1-az1` */
  id: string
}

const DEFAULT_REGIONS: NonNullable<WorldPlan['regions']> = {
  'us-east-1': {
    zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'],
    hasDefaultVpc: true,
    groups: ['crucible-machine'],
    isEnabled: true,
    quotas: {},
  },
}
/** Free addresses of a fresh /20. */
const SUBNET_ADDRESSES = 4091

export function makeWorld({ plan, directory }: LoadedWorld): World {
  const regions = new Map(regionsOf(plan).map((region) => [region.name, region]))
  const given = plan.durations as Partial<Record<DurationName, Range>>
  const durations = Object.fromEntries(
    (Object.keys(DURATIONS) as DurationName[]).map((name) => [name, given[name] ?? DURATIONS[name]]),
  ) as Durations
  const seed = String(plan.seed)
  return { ...plan, seed, directory, durations, regions, types: machineTypes(plan), random: new Random(seed) }
}

export function regionsOf(plan: WorldPlan): RegionPlan[] {
  return Object.entries(plan.regions ?? DEFAULT_REGIONS).map(([name, region]) => regionPlan(name, region))
}

function regionPlan(
  name: string,
  { zones, hasDefaultVpc, subnets, groups, isEnabled, quotas }: NonNullable<WorldPlan['regions']>[string],
): RegionPlan {
  const named = zones.map((zone, i) => ({ name: zone, id: `${shortName(name)}-az${i + 1}` }))
  const usual = zones.map((zone) => ({
    zone,
    egress: 'public' as const,
    addresses: SUBNET_ADDRESSES,
    isDefault: true,
  }))
  return {
    name,
    zones: named,
    hasDefaultVpc,
    groups,
    isEnabled,
    quotas,
    subnets: subnets ?? (hasDefaultVpc ? usual : []),
  }
}

/** `us-east-1` is `use1` in the ids of its zones. */
function shortName(region: string): string {
  const [country = '', ...rest] = region.split('-')
  const number = rest.pop() ?? ''
  return `${country}${rest.map((word) => word.replace('north', 'n').replace('south', 's').replace('east', 'e').replace('west', 'w').replace('central', 'c')).join('')}${number}`
}

/** Draws a duration of one kind. */
export function drawMs(world: World, name: DurationName): number {
  return world.random.within(world.durations[name], `duration/${name}`)
}
