/** Spot prices and spot requests. */
import { z } from 'zod'
import { dryRun, filter, instant, list, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Zone } from '../world/world'
import type { Ec2 } from './ec2'
import { byId, page, select } from './filters'
import type { SpotRequest } from './model'
import { tagWords } from './tags'

const filters = { Filter: list(filter).default([]) }
const DAY_MS = 86_400_000
/** Age limit of the price history. */
const HISTORY_MS_MAX = 90 * DAY_MS
const PRODUCT = 'Linux/UNIX'

export function spotActions(ec2: Ec2): Record<string, Action> {
  return { ...priceActions(ec2), ...requestActions(ec2) }
}

const historyInput = z.strictObject({
  ...dryRun,
  ...paging,
  ...filters,
  InstanceType: list(text).default([]),
  ProductDescription: list(text).default([]),
  AvailabilityZone: text.optional(),
  StartTime: instant.optional(),
  EndTime: instant.optional(),
})
type HistoryWish = z.output<typeof historyInput>

function priceActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeSpotPriceHistory: action({
      input: historyInput,
      run(wish, { region }) {
        const { items, nextToken } = page(history(ec2, region, wish), wish, { least: 1, most: 1000 })
        const spotPriceHistorySet = items.map(({ place, type, atMs, usd }) => ({
          instanceType: type,
          productDescription: PRODUCT,
          spotPrice: usd,
          timestamp: new Date(atMs),
          availabilityZone: place.name,
          availabilityZoneId: place.id,
        }))
        // The service ends its pages with an empty token.
        return { spotPriceHistorySet, nextToken: nextToken ?? '' }
      },
    }),
  }
}

interface PriceRow {
  place: Zone
  type: string
  atMs: number
  usd: string
}

/** Returns the prices in force at the start and every change until the end, newest first. */
function history(ec2: Ec2, region: string, wish: HistoryWish): PriceRow[] {
  const { market } = ec2.parts
  const { Filter } = wish
  const { nowMs } = ec2
  const untilMs = Math.min(wish.EndTime ?? nowMs, nowMs)
  const fromMs = Math.max(Math.min(wish.StartTime ?? untilMs, untilMs), nowMs - HISTORY_MS_MAX)
  const early = Filter.filter(({ Name }) => !LATE_FILTERS.includes(Name))
  const pools = select(pricedPools(ec2, region, wish), early, {
    'instance-type': ({ type }) => type,
    'availability-zone': ({ place }) => place.name,
    'availability-zone-id': ({ place }) => place.id,
    'product-description': () => PRODUCT,
  })
  const prices = pools.flatMap(({ place, type }) =>
    market
      .priceHistory({ region, zone: place.name, type, capacity: 'spot' }, fromMs, untilMs)
      .map(({ atMs, usdPerHour }) => ({ place, type, atMs, usd: usdPerHour.toFixed(6) })),
  )
  const late = Filter.filter(({ Name }) => LATE_FILTERS.includes(Name))
  const found = select(prices, late, {
    'spot-price': ({ usd }) => usd,
    timestamp: ({ atMs }) => new Date(atMs).toISOString(),
  })
  return found.sort((a, b) => b.atMs - a.atMs)
}

function pricedPools(ec2: Ec2, region: string, wish: HistoryWish): { place: Zone; type: string }[] {
  const { world, market } = ec2.parts
  const { InstanceType: types, ProductDescription: products, AvailabilityZone: zone } = wish
  const { zones } = ec2.region(region).plan
  if (zone !== undefined && !zones.some(({ name }) => name === zone))
    throw new ApiError('InvalidParameterValue', `Invalid availability zone: [${zone}]`)
  const isLinux = products.length === 0 || products.some((product) => product.startsWith(PRODUCT))
  return zones
    .filter(({ name }) => (zone ?? name) === name && isLinux)
    .flatMap((place) => [...world.types.keys()].map((type) => ({ place, type })))
    .filter(
      ({ place, type }) => (types.length === 0 || types.includes(type)) && market.isOffered(type, place.name),
    )
}

/** Filters that need the prices, not the pools. */
const LATE_FILTERS = ['spot-price', 'timestamp']

function requestActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeSpotInstanceRequests: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        ...filters,
        SpotInstanceRequestId: list(text).default([]),
      }),
      run({ SpotInstanceRequestId: ids, Filter, ...wish }, { region }) {
        const { spotRequests } = ec2.region(region)
        const wanted = ids.length === 0 ? [...spotRequests.values()] : requested(ec2, region, ids)
        const found = select(wanted, Filter, {
          'spot-instance-request-id': ({ id }) => id,
          state: ({ state }) => state,
          'status-code': ({ status }) => status.code,
          'instance-id': ({ instance }) => instance.id,
          'launched-availability-zone': ({ instance }) => instance.subnet.zone.name,
          type: () => 'one-time',
        })
        const { items, nextToken } = page(found, wish, { most: 1000 })
        return { spotInstanceRequestSet: items.map(requestWords), nextToken }
      },
    }),
    CancelSpotInstanceRequests: action({
      input: z.strictObject({ ...dryRun, SpotInstanceRequestId: list(text) }),
      isMutating: true,
      run({ SpotInstanceRequestId: ids }, { region }) {
        const requests = requested(ec2, region, ids)
        for (const request of requests) {
          if (request.state !== 'active') continue
          // The machine keeps running.
          request.state = 'cancelled'
          request.status = {
            code: 'request-canceled-and-instance-running',
            message: 'Your Spot request is canceled, but your instance is still running.',
            atMs: ec2.nowMs,
          }
        }
        return {
          spotInstanceRequestSet: requests.map(({ id, state }) => ({ spotInstanceRequestId: id, state })),
        }
      },
    }),
  }
}

function requested(ec2: Ec2, region: string, ids: readonly string[]): SpotRequest[] {
  const { spotRequests } = ec2.region(region)
  return byId(ids, (id) => spotRequests.get(id), {
    code: 'InvalidSpotInstanceRequestID.NotFound',
    what: 'spot instance request ID',
  })
}

function requestWords({ id, createdAtMs, state, status, maxPrice, instance, tags }: SpotRequest) {
  return {
    spotInstanceRequestId: id,
    spotPrice: maxPrice,
    type: 'one-time',
    state,
    status: { code: status.code, updateTime: new Date(status.atMs), message: status.message },
    instanceId: instance.id,
    createTime: new Date(createdAtMs),
    productDescription: PRODUCT,
    launchedAvailabilityZone: instance.subnet.zone.name,
    instanceInterruptionBehavior: 'terminate',
    launchSpecification: {
      imageId: instance.image.id,
      instanceType: instance.type.name,
      subnetId: instance.subnet.id,
      groupSet: instance.groupIds.map((groupId) => ({ groupId })),
    },
    tagSet: tagWords(tags),
  }
}
