import { acceleratorByMemory, findAccelerator } from '../../core/accelerators'
import { isGlobMatch } from '../../core/glob'
import { MICRO_USD_PER_USD } from '../../core/money/money'
import type { Availability, Offer } from '../../core/offer'
import type { MachineShape, ResourceRequest } from '../../core/resources'
import type { CallContext } from '../backend'
import { fitting } from '../fitting'
import type { LambdaType, TypesInStock } from './api'
import type { Host } from './host'
import { BACKEND, BILLED_IN_STEPS_OF_MS } from './machines'

const CENTS_PER_USD = 100
const BYTES_PER_GIB = 2 ** 30
const STILL_BILLED = 'the whole machine, until it is terminated: powering it off does not end billing'

/** Returns every type that could hold the request, in every Region that has or had it in stock. */
export async function offers(
  host: Host,
  request: ResourceRequest,
  { signal }: CallContext,
): Promise<Offer[]> {
  const observedAtMs = host.deps.clock()
  const [types, cache] = await Promise.all([host.api.types(signal), cacheRegion(host, signal)])
  const known = Object.values(types).filter(({ instance_type: { name } }) => isOffered(host, name))
  return fitting(known, (one) => shapeOf(one.instance_type), request).flatMap((one) =>
    regionsOf(host, one).map(({ region, isInStock }): Offer => {
      const type = one.instance_type
      return {
        backend: BACKEND,
        capacityType: 'on-demand',
        type: type.name,
        place: region,
        shape: shapeOf(type),
        isolation: 'dedicated',
        priceMicroUsdPerHour: (type.price_cents_per_hour * MICRO_USD_PER_USD) / CENTS_PER_USD,
        priceSource: { kind: 'live', observedAtMs },
        billedInStepsOfMs: BILLED_IN_STEPS_OF_MS,
        stillBilled: STILL_BILLED,
        ...availabilityOf(host, { type: type.name, region, isInStock }),
        data: region !== '' && region === cache ? { cache: host.config.cache! } : undefined,
      }
    }),
  )
}

/** Whether the settings allow a type: one pattern matches it, and none with `!` does. */
export function isOffered({ config: { types } }: Pick<Host, 'config'>, name: string): boolean {
  const fits = (pattern: string): boolean => isGlobMatch(pattern, name)
  const excluded = types.filter((pattern) => pattern.startsWith('!')).map((pattern) => pattern.slice(1))
  const named = types.filter((pattern) => !pattern.startsWith('!'))
  return (named.length === 0 || named.some(fits)) && !excluded.some(fits)
}

/** Returns the Regions of a type. A type that was never in stock is listed once, without a place. */
function regionsOf(
  { config, seen }: Host,
  { instance_type: { name }, regions_with_capacity_available: inStock }: TypesInStock[string],
): { region: string; isInStock: boolean }[] {
  const names = inStock.map((region) => region.name)
  const regions = seen.regionsOf(name, names).filter((one) => config.regions?.includes(one) ?? true)
  if (regions.length === 0) return [{ region: '', isInStock: false }]
  return regions.map((region) => ({ region, isInStock: names.includes(region) }))
}

function availabilityOf(
  { seen }: Host,
  { type, region, isInStock }: { type: string; region: string; isInStock: boolean },
): { availability: Availability; note?: string } {
  if (!isInStock) {
    const note = region === '' ? 'out of stock in every Region' : 'out of stock'
    return { availability: 'unavailable', note }
  }
  const quota = seen.quotaUse()
  if (quota === 'none')
    return {
      availability: 'no-quota',
      note: 'the quota of the account is 0 machines: request an increase from Lambda',
    }
  if (quota === 'in-use')
    return {
      availability: 'unavailable',
      note: 'the machine quota of the account is used up until a machine ends or Lambda raises the quota',
    }
  if (seen.isMissed(type, region))
    return { availability: 'unavailable', note: 'listed, but a launch was refused a moment ago' }
  return { availability: 'available' }
}

/** `H100 (80 GB PCIe)`: name, memory and connection of each GPU. */
const GPU = /^(?:NVIDIA |Tesla |Quadro )?(.+?) \((\d+) GB\b *(\w*)/

/** @internal A test reads published descriptions of GPUs. */
export function shapeOf({ gpu_description: description, specs }: LambdaType): MachineShape {
  const { vcpus, memory_gib: memoryGiB, storage_gib: diskGiB, gpus } = specs
  const shape = { cpus: vcpus, memoryGiB, diskGiB, gpus }
  if (gpus === 0) return shape
  const [, name = description, gigabytes, connection] = GPU.exec(description) ?? []
  const memoryGb = gigabytes === undefined ? undefined : Number(gigabytes)
  const accelerator = acceleratorByMemory(name, memoryGb)
  return {
    ...shape,
    // Few types are sold with two connections.
    accelerator: findAccelerator(`${accelerator}-${connection}`)?.name ?? accelerator,
    gpuMemoryGiB: memoryGb && Math.round((memoryGb * 1e11) / BYTES_PER_GIB) / 100,
  }
}

/** The Region of the file system for caches; undefined without one. A machine without its cache works, too. */
async function cacheRegion({ config, api }: Host, signal: AbortSignal): Promise<string | undefined> {
  if (config.cache === undefined) return undefined
  const fileSystems = await api.fileSystems(signal)
  return fileSystems.find(({ name }) => name === config.cache)?.region.name
}
