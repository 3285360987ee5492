import type { MicroUsd } from '../../core/money'
import type { Availability, Offer, Pins } from '../../core/offer'
import type { ResourceRequest } from '../../core/resources'
import type { CallContext } from '../backend'
import type { Image, MachineType, Subnet } from './api'
import type { Host } from './host'
import type { Price } from './market'
import { BILLED_AT_LEAST_MS } from './prices'
import { diskFor, holding, isDrivable, quotaOf, shapeOf } from './shapes'
import { templateName, type TemplateFacts } from './template'

export const BACKEND = 'ec2'
export const CAPACITY_TYPES = ['on-demand', 'spot'] as const
type Bought = (typeof CAPACITY_TYPES)[number]

/** Under which a job keeps the image of its machines of an architecture: images that their names stand for change every week. */
const imagePin = (architecture: string): string => `image/${architecture}`

/** Every type that could hold the request, in every zone that has it and us, in both ways of buying. */
export async function offers(
  host: Host,
  { request, pins = {} }: { request: ResourceRequest; pins?: Pins | undefined },
  ctx: CallContext,
): Promise<Offer[]> {
  const { signal } = ctx
  const [types, zones, subnets] = await Promise.all([
    host.market.types(signal),
    host.market.zones(signal),
    host.places.byZone(signal),
  ])
  const held = holding(types.filter(isDrivable), request)
  const images = await imagesFor(host, { types: held, pins }, signal)
  const [onDemand, spot, quotas] = await Promise.all([
    host.market.onDemand(signal),
    host.config.hasSpot ? host.market.spot(signal) : undefined,
    quotasFor(host, held, signal),
  ])
  const found: Offer[] = []
  for (const type of held) {
    const image = images.get(architectureOf(type))
    if (image === undefined) continue
    const diskGiB = diskFor(request, [host.config.diskGiB, image.diskGiB])
    for (const zone of [...(zones.get(type.name) ?? [])].sort()) {
      const subnet = subnets.get(zone)
      if (subnet === undefined) continue
      const data = await dataFor(host, { image, subnet, diskGiB }, signal)
      for (const capacityType of bought(host, type)) {
        const price =
          capacityType === 'spot' ? spotPrice(type.name, zone, { spot, onDemand }) : onDemand(type.name)
        // Without a price of our own to end at, spot is kept up to what the type costs on demand.
        const most = capacityType === 'spot' ? onDemand(type.name) : price
        if (price === undefined || most === undefined) continue
        const dearest = Math.max(price.microUsdPerHour, most.microUsdPerHour)
        const facts = { type, capacityType, subnet, price, diskGiB, data, quotas, pins }
        found.push(offerOf(host, capacityType === 'spot' ? { ...facts, dearest } : facts))
      }
    }
  }
  return found
}

function bought({ config }: Host, { usageClasses }: MachineType): Bought[] {
  return CAPACITY_TYPES.filter((one) => usageClasses.includes(one) && (one === 'on-demand' || config.hasSpot))
}

/** A spot price that cannot be had is at most the list's: nobody is ever charged more. */
function spotPrice(type: string, zone: string, { spot, onDemand }: Prices): Price | undefined {
  if (spot !== undefined) return spot(type, zone)
  const listed = onDemand(type)
  const note = 'the spot price cannot be had: this is the most that it may be, the price on demand'
  return listed && { ...listed, source: { ...listed.source, kind: 'static' }, note }
}

interface Prices {
  spot: ((type: string, zone: string) => Price | undefined) | undefined
  onDemand: (type: string) => Price | undefined
}

interface Facts {
  type: MachineType
  capacityType: Bought
  subnet: Subnet
  price: Price
  /** What it can come to cost, by the hour, where that is not its price. */
  dearest?: MicroUsd
  diskGiB: number
  data: Record<string, string>
  quotas: ReadonlyMap<string, number>
  pins: Pins
}

function offerOf(host: Host, facts: Facts): Offer {
  const { type, capacityType, subnet, price, dearest, diskGiB, data } = facts
  const pool = { backend: BACKEND, capacityType, type: type.name, place: subnet.zone }
  const { availability, note } = availabilityOf(host, facts)
  const pin = imagePin(architectureOf(type))
  const notes = [note, price.note, imageNote(facts.pins[pin], data)].filter((one) => one !== undefined)
  return {
    ...pool,
    shape: shapeOf(type, diskGiB),
    priceMicroUsdPerHour: price.microUsdPerHour,
    ...(dearest === undefined ? {} : { priceMaxMicroUsdPerHour: dearest }),
    billedAtLeastMs: BILLED_AT_LEAST_MS,
    priceSource: price.source,
    availability,
    ...(notes.length > 0 && { note: notes.join('; ') }),
    data,
    pins: { [pin]: data['image']! },
  }
}

function imageNote(pinned: string | undefined, { image }: Record<string, string>): string | undefined {
  if (pinned === undefined || pinned === image) return undefined
  return `the image that the job had before, ${pinned}, is gone: ${image} takes its place`
}

function availabilityOf(
  host: Host,
  { type, capacityType, subnet, quotas }: Pick<Facts, 'type' | 'capacityType' | 'subnet' | 'quotas'>,
): { availability: Availability; note?: string } {
  const quota = quotaOf(type.name)
  const limit = quota && quotas.get(quota[capacityType])
  if (limit !== undefined && limit < type.cpus) {
    const note = `the account may have ${limit} vCPUs of ${quota!.words} ${capacityType} machines, this takes ${type.cpus} (quota ${quota![capacityType]})`
    return { availability: 'no-quota', note }
  }
  const missed = host.memory.whyMissed({
    backend: BACKEND,
    capacityType,
    type: type.name,
    place: subnet.zone,
  })
  if (missed !== undefined) return { availability: 'unavailable', note: `a moment ago: ${missed}` }
  if (subnet.freeAddresses === 0)
    return { availability: 'unavailable', note: `the subnet ${subnet.id} has no free address` }
  return { availability: 'unknown' }
}

/** The limits of all families at hand that can be read; one that cannot stands in nobody's way. */
async function quotasFor(
  host: Host,
  types: MachineType[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const codes = new Set<string>()
  for (const type of types) {
    const quota = quotaOf(type.name)
    if (quota !== undefined) for (const how of bought(host, type)) codes.add(quota[how])
  }
  const values = await Promise.all(
    [...codes].map(async (code) => [code, await host.quota(code, signal)] as const),
  )
  return new Map(values.filter((entry): entry is [string, number] => entry[1] !== undefined))
}

function architectureOf({ architectures }: MachineType): string {
  return architectures.includes('x86_64') ? 'x86_64' : (architectures[0] ?? 'x86_64')
}

async function imagesFor(
  host: Host,
  { types, pins }: { types: MachineType[]; pins: Pins },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Image | undefined>> {
  const architectures = [...new Set(types.map(architectureOf))]
  const images = await Promise.allSettled(
    architectures.map(
      async (architecture) =>
        [architecture, await host.market.image(architecture, pins[imagePin(architecture)], signal)] as const,
    ),
  )
  const found = images.flatMap((image) => (image.status === 'fulfilled' ? [image.value] : []))
  const [failed] = images.filter((image) => image.status === 'rejected')
  // A Region without an image for one architecture still has machines of the other.
  if (found.length === 0 && failed !== undefined) throw failed.reason
  return new Map(found)
}

/** What a launch of the offer needs beside it; the same order then asks for the same machine, however often it is sent. */
async function dataFor(
  host: Host,
  { image, subnet, diskGiB }: { image: Image; subnet: Subnet; diskGiB: number },
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const groups = await host.places.groups(subnet.vpc, signal)
  const facts: TemplateFacts = {
    image: image.id,
    rootDevice: image.rootDevice,
    diskGiB: String(diskGiB),
    profile: host.config.profile,
    groups: groups
      .map(({ id }) => id)
      .sort()
      .join(','),
  }
  return { ...facts, subnet: subnet.id, template: templateName(facts, host.common) }
}
