import { MICRO_USD_PER_USD } from '../../../core/money/money'
import type { Availability, Offer, Pins } from '../../../core/offer'
import type { ResourceRequest } from '../../../core/resources'
import type { CallContext } from '../../backend'
import type { DiskSpeed, Image, MachineType, Reservation, Subnet } from '../sdk/api'
import { diskSpeedOf, hasLocalDiskFor, leastGiBFor, speedData, unusableSpeedNote } from './disk-speed'
import { besidePrice } from './disks-and-addresses'
import type { Host } from '../host'
import { imageKindOf, type ImageKind, type Price } from './market'
import { freeIn } from './reservations'
import { reservedFacts } from './reserved-offers'
import { planNote } from '../check/free-plan'
import { BILLED_AT_LEAST_MS } from './prices'
import { diskFor, holding, isWanted, quotaOf, shapeOf } from './shapes'
import { writeOwnTags } from '../own-tags'
import { templateName, type TemplateFacts } from '../launch/template'
import { whyUnusable } from './usable'

export const BACKEND = 'ec2'
export const CAPACITY_TYPES = ['on-demand', 'spot'] as const
type Bought = (typeof CAPACITY_TYPES)[number]

/** Pin that keeps a job's machine image for machines of a kind: image parameters change every week. */
const imagePin = (kind: ImageKind): string => `image/${kind}`

/** Returns every type that could hold the request, in every zone with that type and a subnet, for every capacity type. */
export async function offers(
  host: Host,
  { request, pins = {} }: { request: ResourceRequest; pins?: Pins | undefined },
  ctx: CallContext,
): Promise<Offer[]> {
  const { signal } = ctx
  // Prices take longest, so they are read from the beginning.
  const [types, zones, subnets, onDemand, diskPrices] = await Promise.all([
    host.market.types(signal),
    host.market.zones(signal),
    host.places.byZone(signal),
    host.market.onDemand(signal),
    host.market.disk(signal),
  ])
  const usable = types.filter((type) => whyUnusable(type, host.config) === undefined)
  const held = holding(usable, request)
  const images = await imagesFor(host, { types: held, pins }, signal)
  const [plan, spot, quotas, reserved, open] = await Promise.all([
    host.market.plan(signal),
    host.config.hasSpot ? host.market.spot(signal) : undefined,
    quotasFor(host, held, signal),
    host.reservations.usable(signal),
    host.reservations.open(signal),
  ])
  const found: Offer[] = []
  for (const type of held) {
    const image = images.get(imageKindOf(type))
    if (image === undefined) continue
    const diskGiB = diskFor(request, [host.config.diskGiB, image.diskGiB, leastGiBFor(request)])
    const listed = onDemand(type.name)?.microUsdPerHour
    const speed = diskSpeedOf(type, request, {
      diskGiB,
      usdPerHour: listed === undefined ? undefined : listed / MICRO_USD_PER_USD,
      usdPerMibpsMonth: diskPrices.rates.usdPerMibpsMonth,
    })
    const disk = { sizeGiB: diskGiB, speed }
    const speedNote = unusableSpeedNote(type, request)
    for (const zone of [...(zones.get(type.name) ?? [])].sort()) {
      const subnet = subnets.get(zone)
      if (subnet === undefined) continue
      const besideMicroUsdPerHour = besidePrice({ disk, subnet }, diskPrices.rates)
      for (const capacityType of bought(host, type)) {
        const data = await dataFor(host, { image, subnet, disk, capacityType }, signal)
        const price =
          capacityType === 'spot' ? spotPrice(type.name, zone, { spot, onDemand }) : onDemand(type.name)
        // Without its own price limit, a spot machine is kept up to the on-demand price of the type.
        const most = capacityType === 'spot' ? onDemand(type.name) : price
        if (price === undefined || most === undefined) continue
        const { availability, note } = availabilityOf(host, { type, capacityType, subnet, quotas, plan })
        const priceMicroUsdPerHour = price.microUsdPerHour + besideMicroUsdPerHour
        const dearest = Math.max(priceMicroUsdPerHour, most.microUsdPerHour + besideMicroUsdPerHour)
        const prices = { priceSource: price.source, priceMicroUsdPerHour, besideMicroUsdPerHour }
        const facts = { availability, ...prices }
        const limit = capacityType === 'spot' ? { priceMaxMicroUsdPerHour: dearest } : {}
        const notes = [note, price.note ?? diskPrices.note, speedNote]
        const left = open.find((one) => one.type === type.name && one.zone === zone)
        const leavesOpen = capacityType === 'on-demand' &&
          left && { reservationId: left.id, free: freeIn(left) }
        found.push(
          offerOf({
            ...facts,
            ...limit,
            ...(leavesOpen && { leavesOpen }),
            type,
            capacityType,
            zone,
            disk,
            notes,
            data,
            pins,
          }),
        )
      }
    }
    for (const reservation of reserved?.value.filter((one) => one.type === type.name) ?? []) {
      const facts = reservedFacts(host, reservation, {
        type,
        price: onDemand(type.name),
        besideMicroUsdPerHour: besidePrice({ disk, subnet: subnets.get(reservation.zone) }, diskPrices.rates),
        readAtMs: reserved!.readAtMs,
      })
      if (facts === undefined) continue
      const place = await placeFor(host, { reservation, image, disk, subnets }, signal)
      const data = { ...place.data, ...facts.data }
      const diskNote = facts.priceSource.kind === 'live' ? diskPrices.note : undefined
      const notes = [...facts.notes, diskNote, ...place.notes, speedNote]
      const availability = place.notes.length > 0 ? 'unavailable' : facts.availability
      const common = { type, capacityType: 'reserved' as const, zone: reservation.zone, disk, pins }
      found.push(offerOf({ ...facts, ...common, availability, notes, data }))
    }
  }
  const signedInUntilMs = await host.deps.signInEndMs?.()
  return [
    ...found.map((offer) => (signedInUntilMs === undefined ? offer : { ...offer, signedInUntilMs })),
    ...unusableOffers(host, { types, zones, onDemand, request }),
  ]
}

const PRICE_UNKNOWN = 'its price on demand is not known'

/** Types that a job requests by their accelerator or name and that are never bought here, each once, with the reason. */
function unusableOffers(
  host: Host,
  {
    types,
    zones,
    onDemand,
    request,
  }: Pick<Prices, 'onDemand'> & {
    types: MachineType[]
    zones: ReadonlyMap<string, ReadonlySet<string>>
    request: ResourceRequest
  },
): Offer[] {
  const { accelerators = [], instanceTypes } = request
  if (accelerators.length === 0 && instanceTypes === undefined) return []
  return types.flatMap((type): Offer[] => {
    const price = onDemand(type.name)
    const note = whyUnusable(type, host.config) ?? (price === undefined ? PRICE_UNKNOWN : undefined)
    if (note === undefined || !isWanted(type, request)) return []
    if (instanceTypes?.includes(type.name) === false) return []
    const [place = ''] = [...(zones.get(type.name) ?? [])].sort()
    return [
      {
        backend: BACKEND,
        capacityType: 'on-demand',
        type: type.name,
        place,
        shape: shapeOf(type, host.config.diskGiB),
        availability: 'unusable',
        note,
        // A price that is not known must never look cheap.
        priceMicroUsdPerHour: price?.microUsdPerHour ?? Number.MAX_SAFE_INTEGER,
        priceSource: price?.source ?? { kind: 'static', observedAtMs: host.deps.clock() },
      },
    ]
  })
}

/** The subnet for a reservation's machine in its zone; a note without one. */
async function placeFor(
  host: Host,
  {
    reservation: { zone },
    image,
    disk,
    subnets,
  }: { reservation: Reservation; image: Image; disk: MachineDisk; subnets: ReadonlyMap<string, Subnet> },
  signal: AbortSignal,
): Promise<{ data: Record<string, string>; notes: string[] }> {
  const subnet = subnets.get(zone)
  if (subnet === undefined) {
    const note = `none of the subnets is in ${zone}, where the reservation is: add one to CRUCIBLE_EC2_SUBNETS`
    return { data: { image: image.id }, notes: [note] }
  }
  return {
    data: await dataFor(host, { image, subnet, disk, capacityType: 'reserved' }, signal),
    notes: [],
  }
}

function bought({ config }: Host, { usageClasses }: MachineType): Bought[] {
  return CAPACITY_TYPES.filter((one) => usageClasses.includes(one) && (one === 'on-demand' || config.hasSpot))
}

/** Returns the spot price. If it cannot be read, the list price is the upper bound, because EC2 never charges more. */
function spotPrice(type: string, zone: string, { spot, onDemand }: Prices): Price | undefined {
  if (spot !== undefined) return spot(type, zone)
  const listed = onDemand(type)
  if (listed === undefined) return undefined
  const limit = 'the spot price is unknown: this is its upper limit, the on-demand price'
  const note = [limit, listed.note].filter((one) => one !== undefined).join('; ')
  return { ...listed, source: { ...listed.source, kind: 'static' }, note }
}

interface MachineDisk {
  sizeGiB: number
  speed: DiskSpeed
}

interface Prices {
  spot: ((type: string, zone: string) => Price | undefined) | undefined
  onDemand: (type: string) => Price | undefined
}

interface Facts extends Omit<Offer, 'backend' | 'type' | 'place' | 'shape' | 'note' | 'data' | 'pins'> {
  type: MachineType
  zone: string
  disk: MachineDisk
  notes: (string | undefined)[]
  data: Record<string, string>
  pins: Pins
}

function offerOf({ type, zone, disk, notes, data, pins, ...facts }: Facts): Offer {
  const pin = imagePin(imageKindOf(type))
  const told = [...notes, imageNote(pins[pin], data)].filter((one) => one !== undefined)
  return {
    backend: BACKEND,
    type: type.name,
    place: zone,
    shape: {
      ...shapeOf(type, disk.sizeGiB),
      // AWS does not publish the speed of local disks.
      diskMibPerSecond: hasLocalDiskFor(type, disk.sizeGiB) ? undefined : disk.speed.mibPerSecond,
    },
    billedAtLeastMs: BILLED_AT_LEAST_MS,
    ...facts,
    note: told.length > 0 ? told.join('; ') : undefined,
    data,
    pins: { [pin]: data['image']! },
  }
}

function imageNote(pinned: string | undefined, { image }: Record<string, string>): string | undefined {
  if (pinned === undefined || pinned === image) return undefined
  return `the job's previous image, ${pinned}, no longer exists; ${image} replaces it`
}

function availabilityOf(
  host: Host,
  {
    type,
    capacityType,
    subnet,
    quotas,
    plan,
  }: {
    type: MachineType
    capacityType: Bought
    subnet: Subnet
    quotas: ReadonlyMap<string, number>
    plan: 'free' | 'paid' | undefined
  },
): { availability: Availability; note?: string } {
  const denied = planNote(plan, type)
  if (denied !== undefined) return { availability: 'no-quota', note: denied }
  const quota = quotaOf(type.name)
  const limit = quota && quotas.get(quota[capacityType])
  if (limit !== undefined && limit < type.cpus) {
    // Without any quota, all sizes have one reason, which a plan shows once.
    const takes = limit === 0 ? '' : `, this takes ${type.cpus}`
    const note = `the account may have ${limit} vCPUs of ${quota!.words} ${capacityType} machines${takes} (quota ${quota![capacityType]})`
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

/** The quotas of all families in the list that can be read; an unreadable one excludes nothing. */
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

async function imagesFor(
  host: Host,
  { types, pins }: { types: MachineType[]; pins: Pins },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Image | undefined>> {
  const kinds = [...new Set(types.map(imageKindOf))]
  const images = await Promise.allSettled(
    kinds.map(async (kind) => [kind, await host.market.image(kind, pins[imagePin(kind)], signal)] as const),
  )
  const found = images.flatMap((image) => (image.status === 'fulfilled' ? [image.value] : []))
  const [failed] = images.filter((image) => image.status === 'rejected')
  // A Region without an image for one kind may still sell machines of another.
  if (found.length === 0 && failed !== undefined) throw failed.reason
  return new Map(found)
}

/** Additional data for a launch of the offer, so that the same order always requests the same machine. */
async function dataFor(
  host: Host,
  {
    image,
    subnet,
    disk,
    capacityType,
  }: { image: Image; subnet: Subnet; disk: MachineDisk; capacityType: Offer['capacityType'] },
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const groups = await host.places.groups(subnet.vpc, signal)
  const facts: TemplateFacts = {
    image: image.id,
    rootDevice: image.rootDevice,
    diskGiB: String(disk.sizeGiB),
    profile: host.config.profile,
    groups: groups
      .map(({ id }) => id)
      .sort()
      .join(','),
    reservations: capacityType === 'on-demand' ? 'none' : undefined,
    market: capacityType === 'spot' ? 'spot' : undefined,
    ownTags: writeOwnTags(host.config.tags),
  }
  return {
    ...(facts as Record<string, string>),
    ...speedData(disk.speed),
    subnet: subnet.id,
    template: templateName(facts, host.common),
  }
}
