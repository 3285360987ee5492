import { catalogPrices } from '../market/catalog'
import { shapeOf } from '../market/shapes'
import type { MachineType } from '../sdk/api'
import type { RegionApi } from '../sdk/api-capacity'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'
import { filtersOf, fitting, type TypePattern } from './patterns'

export interface TypeQuery {
  patterns: readonly TypePattern[]
  architecture?: string | undefined
  minVcpus?: number | undefined
  minMemoryGiB?: number | undefined
  isAcceleratedOnly?: boolean
}

/** A machine type in one Region. */
export interface RegionalType {
  type: MachineType
  region: string
  /** Sorted; empty if they were not asked for. */
  zones: string[]
}

const MIB_PER_GIB = 1_024

/** The types that fit, in every Region. */
export async function searchTypes(
  inquiry: Inquiry,
  wish: TypeQuery,
  { hasZones }: { hasZones: boolean },
): Promise<RegionAnswers<RegionalType[]>> {
  const filters = filtersOf(wish.patterns)
  return inquiry.each(async ({ market }, region) => {
    const [types, offered] = await Promise.all([
      market.types(filters, inquiry.signal),
      hasZones ? market.typeZones(filters, inquiry.signal) : [],
    ])
    return fitting(types, wish.patterns)
      .filter((type) => isWanted(type, wish))
      .map((type) => ({ type, region, zones: zonesOf(type.name, offered) }))
      .sort((a, b) => compareTypes(a.type.name, b.type.name))
  })
}

function zonesOf(name: string, offered: readonly { type: string; zone: string }[]): string[] {
  return offered
    .filter(({ type }) => type === name)
    .map(({ zone }) => zone)
    .sort()
}

function isWanted(type: MachineType, wish: TypeQuery): boolean {
  const { architecture, minVcpus = 0, minMemoryGiB = 0, isAcceleratedOnly = false } = wish
  return (
    (architecture === undefined || type.architectures.includes(architecture)) &&
    type.cpus >= minVcpus &&
    type.memoryMiB >= minMemoryGiB * MIB_PER_GIB &&
    (!isAcceleratedOnly || isAccelerated(type))
  )
}

/** Whether the type has GPUs or other chips for models: Trainium, Inferentia, Gaudi. FPGAs and video chips do not count. */
export function isAccelerated({
  name,
  gpus,
  hasOtherChips,
}: Pick<MachineType, 'name' | 'gpus' | 'hasOtherChips'>): boolean {
  return gpus.length > 0 || (hasOtherChips && /^(?:trn|inf|dl)\d/.test(name))
}

/** Returns the accelerators of a type: number, name, and memory of each. */
export function acceleratorsOf(
  type: MachineType,
): { count: number; name: string; memoryMiB: number } | undefined {
  const [gpu] = type.gpus
  if (gpu === undefined) return undefined
  const { gpus, accelerator = gpu.name } = shapeOf(type, 0)
  return { count: gpus, name: accelerator, memoryMiB: gpu.memoryMiB }
}

const SIZES = ['nano', 'micro', 'small', 'medium', 'large', 'xlarge']

/** Orders types by family, then by size: `xlarge` before `2xlarge` before `10xlarge`. */
export function compareTypes(a: string, b: string): number {
  const [familyA = '', sizeA = ''] = a.split('.')
  const [familyB = '', sizeB = ''] = b.split('.')
  return familyA.localeCompare(familyB) || rankOf(sizeA) - rankOf(sizeB) || a.localeCompare(b)
}

function rankOf(size: string): number {
  const [, times = '', name = size] = /^(\d*)([a-z]+)/.exec(size) ?? []
  const at = SIZES.indexOf(name)
  // Bare metal comes last.
  return at === -1 ? 1_000 : at + (times === '' ? 0 : Number(times))
}

export interface RegionPrices {
  /** Dollars per hour by type. */
  usd: ReadonlyMap<string, number>
  notes: string[]
}

/** Number of types above which the whole list of the Region takes fewer requests. */
const SINGLE_PRICES_MAX = 12

/** Names in a note; more would hide it. */
const NAMED_MAX = 5

/** Returns the on-demand prices per hour in one Region; without the list or the permission, those of this version, never of another Region. */
export async function onDemandPrices(
  api: RegionApi,
  { region, types }: { region: string; types: readonly string[] },
  signal: AbortSignal,
): Promise<RegionPrices> {
  const wanted = [...new Set(types)]
  const listed = await listedPrices(api, { region, types: wanted }, signal).catch((error: unknown) => {
    if (signal.aborted) throw error
    return new Map<string, string>()
  })
  const catalog = catalogPrices(region)
  const usd = new Map<string, number>()
  let isFromCatalog = false
  for (const type of wanted) {
    const live = listed.get(type)
    const inCatalog = catalog.standIn === undefined ? catalog.usdPerHour(type) : undefined
    const price = live === undefined ? inCatalog : Number(live)
    if (price === undefined) continue
    usd.set(type, price)
    isFromCatalog ||= live === undefined
  }
  const unknown = wanted.filter((type) => !usd.has(type))
  const more = unknown.length > NAMED_MAX ? ` and ${unknown.length - NAMED_MAX} more` : ''
  return {
    usd,
    notes: [
      ...(isFromCatalog
        ? [
            `Prices of ${region} are partly missing from the price list, or it cannot be read; ${catalog.words}.`,
          ]
        : []),
      ...(unknown.length > 0
        ? [`The price in ${region} is not known: ${unknown.slice(0, NAMED_MAX).join(', ')}${more}.`]
        : []),
    ],
  }
}

async function listedPrices(
  { market }: RegionApi,
  { region, types }: { region: string; types: readonly string[] },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  if (types.length > SINGLE_PRICES_MAX) return market.onDemandPrices(region, signal)
  const pairs = await Promise.all(
    types.map(async (type) => [type, await market.onDemandPrice({ region, type }, signal)] as const),
  )
  return new Map(pairs.flatMap(([type, price]) => (price === undefined ? [] : [[type, price] as const])))
}

/** Returns the prices of types in several Regions, each looked up in its own. */
export async function pricesOfTypes(
  inquiry: Inquiry,
  found: readonly Pick<RegionalType, 'type' | 'region'>[],
): Promise<{ of: (one: Pick<RegionalType, 'type' | 'region'>) => number | undefined; notes: string[] }> {
  const regions = [...new Set(found.map(({ region }) => region))]
  const known = await Promise.all(
    regions.map(async (region) => {
      const types = found.filter((one) => one.region === region).map(({ type }) => type.name)
      return [region, await onDemandPrices(inquiry.at(region), { region, types }, inquiry.signal)] as const
    }),
  )
  const byRegion = new Map(known)
  return {
    of: ({ type, region }) => byRegion.get(region)?.usd.get(type.name),
    notes: known.flatMap(([, { notes }]) => notes),
  }
}
