import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { microUsd, type MicroUsd } from '../../../core/money/money'
import type { PriceSource } from '../../../core/offer'
import type { DiskRates, Ec2Api, Image, MachineType } from '../sdk/api'
import { cached, type Cached } from '../../calls'
import { catalogPrices } from './catalog'
import type { Ec2Config } from '../config'
import { invalid } from '../errors'
import { FREE_PLAN_TYPES } from '../check/free-plan'
import { isNeuron } from './usable'

export interface Price {
  microUsdPerHour: MicroUsd
  source: PriceSource
  /** A remark about a price that is not the current one of this Region. */
  note?: string
}

/** Machines for sale in the Region, and their prices. */
export interface Market {
  /** The plan of the account; nothing if it cannot be read. */
  plan(signal: AbortSignal): Promise<'free' | 'paid' | undefined>
  /** Returns the configured types; for an account on the free plan also those that can run a first job. */
  types(signal: AbortSignal): Promise<MachineType[]>
  /** The zones that have each type at all. */
  zones(signal: AbortSignal): Promise<ReadonlyMap<string, ReadonlySet<string>>>
  onDemand(signal: AbortSignal): Promise<(type: string) => Price | undefined>
  /** Prices of disks, with a remark if they are not the current ones of this Region. */
  disk(signal: AbortSignal): Promise<{ rates: DiskRates; note?: string }>
  /** Returns spot prices; nothing if they cannot be read. */
  spot(signal: AbortSignal): Promise<((type: string, zone: string) => Price | undefined) | undefined>
  /**
   * Returns the image for machines of a kind: the pinned one if it still exists, otherwise the one of the setting; `undefined` if the setting
   * has none for it.
   */
  image(kind: ImageKind, pinned: string | undefined, signal: AbortSignal): Promise<Image | undefined>
}

/** Machines that need different images: `neuron`, or an architecture. */
export type ImageKind = string

export function imageKindOf(type: MachineType): ImageKind {
  return isNeuron(type) ? NEURON : architectureOf(type)
}

const NEURON = 'neuron'

function architectureOf({ architectures }: MachineType): string {
  return architectures.includes('x86_64') ? 'x86_64' : (architectures[0] ?? 'x86_64')
}

/** New types appear a few times a year. */
const TYPES_FRESH_MS = 6 * HOUR_MS
/** A person upgrades a plan once, and then wants to use it. */
const PLAN_FRESH_MS = 10 * MINUTE_MS
/** List prices change a few times a year, and never during a job. */
const PRICES_FRESH_MS = 6 * HOUR_MS
/** Spot prices move slowly, a few times a day. */
const SPOT_FRESH_MS = 5 * MINUTE_MS
/** A new image appears every week or two. */
const IMAGE_FRESH_MS = HOUR_MS
/**
 * Beyond this a plan does without live prices, and says so. The list of a Region has a dozen pages. A Region that does not answer within fifteen
 * seconds is left out of the plan.
 */
const PRICE_PATIENCE_MS = 10_000

interface Parts {
  config: Ec2Config
  api: Ec2Api
  clock: () => number
}

export function createMarket({ config, api, clock }: Parts): Market {
  const plan = cached({ freshForMs: PLAN_FRESH_MS, clock, read: (signal) => api.account.plan(signal) })
  const readPlan = async (signal: AbortSignal): Promise<'free' | 'paid' | undefined> =>
    (await plan.soon(PRICE_PATIENCE_MS, signal))?.value
  const patterns = async (signal: AbortSignal): Promise<string[]> =>
    (await readPlan(signal)) === 'free' ? [...config.types, ...FREE_PLAN_TYPES] : config.types
  const types = cached({
    freshForMs: TYPES_FRESH_MS,
    clock,
    read: async (signal) => {
      const found = await api.market.types(await patterns(signal), signal)
      if (found.length === 0) throw invalid(...whyNoTypes(config))
      return found
    },
  })
  const zones = cached({
    freshForMs: TYPES_FRESH_MS,
    clock,
    read: async (signal) => zonesByType(await api.market.typeZones(await patterns(signal), signal)),
  })
  const listPrices = cached({
    freshForMs: PRICES_FRESH_MS,
    clock,
    read: (signal) => api.market.onDemandPrices(config.region, signal),
  })
  const diskRates = cached({
    freshForMs: PRICES_FRESH_MS,
    clock,
    read: (signal) => api.market.diskRates(config.region, signal),
  })
  const spotPrices = cached({
    freshForMs: SPOT_FRESH_MS,
    clock,
    read: async (signal) => {
      const { value } = await types.get(signal)
      const spot = value.filter(({ usageClasses }) => usageClasses.includes('spot')).map(({ name }) => name)
      return api.market.spotPrices(spot, signal)
    },
  })
  return {
    plan: readPlan,
    types: async (signal) => (await types.get(signal)).value,
    zones: async (signal) => (await zones.get(signal)).value,
    onDemand: async (signal) => listed(await listPrices.soon(PRICE_PATIENCE_MS, signal), config.region),
    disk: async (signal) => {
      const read = await diskRates.soon(PRICE_PATIENCE_MS, signal)
      if (read?.value !== undefined) return { rates: read.value }
      const { diskRates: rates, words } = catalogPrices(config.region)
      return { rates, note: `the price of disks has not been read from the price list: ${words}` }
    },
    spot: async (signal) => {
      const read = await spotPrices.soon(PRICE_PATIENCE_MS, signal)
      if (read === undefined) return undefined
      const byPool = new Map(read.value.map((price) => [`${price.type} ${price.zone}`, price.usdPerHour]))
      return (type, zone) => live(byPool.get(`${type} ${zone}`), read.readAtMs)
    },
    image: imagesOf({ config, api, clock }),
  }
}

function imagesOf({ config, api, clock }: Parts): Market['image'] {
  const images = new Map<string, Cached<Image | undefined>>()
  const imageNamed = async (name: string, signal: AbortSignal): Promise<Image | undefined> => {
    const known =
      images.get(name) ??
      cached({ freshForMs: IMAGE_FRESH_MS, clock, read: (within) => readImage(api, name, within) })
    images.set(name, known)
    const { value } = await known.get(signal)
    // A missing image is not cached, because it may be created or shared at any moment.
    if (value === undefined) images.delete(name)
    return value
  }
  return async (kind, pinned, signal) => {
    const kept = pinned === undefined ? undefined : await imageNamed(pinned, signal)
    if (kept !== undefined) return kept
    const architecture = kind === NEURON ? 'x86_64' : kind
    const setting = kind === NEURON ? 'CRUCIBLE_EC2_NEURON_IMAGE' : 'CRUCIBLE_EC2_IMAGE'
    const name = (kind === NEURON ? config.neuronImage : config.image).replaceAll('{arch}', architecture)
    const image = await imageNamed(name, signal)
    if (image === undefined)
      throw invalid(
        `the image ${name} is not in this Region, or not for this account`,
        `Set ${setting} to an image that exists in CRUCIBLE_EC2_REGION.`,
      )
    return image.architecture === architecture ? image : undefined
  }
}

function whyNoTypes({ types, region }: Ec2Config): [string, string] {
  return [
    `${region} has none of the machine types ${types.join(', ')}`,
    `Set CRUCIBLE_EC2_TYPES to types that it has (aws ec2 describe-instance-type-offerings --region ${region}), or CRUCIBLE_EC2_REGION to one that has these.`,
  ]
}

function zonesByType(offerings: { type: string; zone: string }[]): Map<string, Set<string>> {
  const zones = new Map<string, Set<string>>()
  for (const { type, zone } of offerings) zones.set(type, (zones.get(type) ?? new Set()).add(zone))
  return zones
}

function live(usdPerHour: string | undefined, readAtMs: number): Price | undefined {
  if (usdPerHour === undefined) return undefined
  return {
    microUsdPerHour: microUsd(Number(usdPerHour)),
    source: { kind: 'live', observedAtMs: readAtMs },
  }
}

/** Returns the list price; if the list cannot be read, the price in the catalog of this version. */
function listed(
  read: { value: Map<string, string>; readAtMs: number } | undefined,
  region: string,
): (type: string) => Price | undefined {
  if (read !== undefined && read.value.size > 0) return (type) => live(read.value.get(type), read.readAtMs)
  const catalog = catalogPrices(region)
  return (type) => {
    const usdPerHour = catalog.usdPerHour(type)
    return usdPerHour === undefined
      ? undefined
      : {
          microUsdPerHour: microUsd(usdPerHour),
          source: { kind: 'static', observedAtMs: catalog.observedAtMs, standIn: catalog.standIn },
          note: `the price list has not been read: ${catalog.words}`,
        }
  }
}

async function readImage(api: Ec2Api, name: string, signal: AbortSignal): Promise<Image | undefined> {
  const id = name.startsWith('ami-') ? name : await api.account.parameter(name, signal)
  return api.market.image(id, signal)
}
