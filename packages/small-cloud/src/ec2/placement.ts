/** Network places of reservations, and scores of spot requests. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { dryRun, filter, flag, integer, list, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { page, select } from './filters'
import { reservationState, type CapacityReservation } from './reservation-model'
import { findReservation } from './reserved-room'

/** Layers of the network above a machine; Blackwell has one more. */
const layersOf = (type: string): number => (/^p6/.test(type) ? 4 : 3)
const TOPOLOGY_PAGE = 10
const IDS_MAX = 10
/** Fewest types for a good score; with fewer, EC2's scores are low. */
const TYPES_FOR_GOOD_SCORE = 3
const SCORES_MAX = 10

export function placementActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeCapacityReservationTopology: topology(ec2),
    GetSpotPlacementScores: scores(ec2),
    GetCapacityManagerSupportabilityScores: capacityScores(ec2),
  }
}

function topology(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...paging,
      Filter: list(filter).default([]),
      CapacityReservationId: list(text).default([]),
    }),
    run({ CapacityReservationId: ids, Filter, ...wish }, { region: name }) {
      const region = ec2.region(name)
      if (ids.length > IDS_MAX)
        throw new ApiError('InvalidParameterValue', `At most ${IDS_MAX} reservations can be named`)
      if (ids.length > 0 && wish.MaxResults !== undefined)
        throw new ApiError('InvalidParameterCombination', 'MaxResults does not go with named reservations')
      const wanted =
        ids.length === 0 ? [...region.reservations.values()] : ids.map((id) => findReservation(region, id))
      // The service shows these states only; `pending` does not occur here.
      const shown = wanted.filter((each) => reservationState(each) === 'active')
      const found = select(shown, Filter, {
        'availability-zone': ({ zone }) => zone.name,
        'instance-type': ({ type }) => type.name,
      })
      const { items, nextToken } = page(
        found,
        { MaxResults: TOPOLOGY_PAGE, ...wish },
        { least: 1, most: 100 },
      )
      return { capacityReservationSet: items.map(placeWords), nextToken }
    },
  })
}

function placeWords(reservation: CapacityReservation) {
  const { id, blockId, zone, type } = reservation
  return {
    capacityReservationId: id,
    capacityBlockId: blockId,
    state: reservationState(reservation),
    instanceType: type.name,
    networkNodeSet: type.hasEfa ? nodesOf(reservation) : [],
    availabilityZoneId: zone.id,
    availabilityZone: zone.name,
  }
}

/** Returns the nodes. The same type in the same zone shares all layers but the lowest, as in one cluster. */
function nodesOf({ zone, type, id }: CapacityReservation): string[] {
  const names = Array.from({ length: layersOf(type.name) }, (_, layer) =>
    layer === 0 ? zone.name : layer === layersOf(type.name) - 1 ? id : `${zone.name}/${type.name}/${layer}`,
  )
  return names.map((name) => `nn-${createHash('sha256').update(name).digest('hex').slice(0, 17)}`)
}

function scores(ec2: Ec2): Action {
  const { world, market } = ec2.parts
  return action({
    input: z.strictObject({
      ...dryRun,
      ...paging,
      InstanceType: list(text).default([]),
      TargetCapacity: integer.pipe(z.int().min(1)),
      SingleAvailabilityZone: flag.default(false),
      RegionName: list(text).default([]),
    }),
    run({
      InstanceType: types,
      TargetCapacity: count,
      SingleAvailabilityZone: isByZone,
      RegionName: names,
      ...wish
    }) {
      const regions = names.length === 0 ? [...ec2.regions.keys()] : names
      const unknown = types.find((type) => !world.types.has(type))
      if (types.length === 0 || unknown !== undefined)
        throw new ApiError('InvalidParameterValue', `Invalid value '${unknown ?? ''}' for InstanceType.`)
      const most = types.length < TYPES_FOR_GOOD_SCORE ? 3 : SCORES_MAX
      const scoreIn = (region: string, zones: readonly { name: string }[]): number => {
        const stock = zones.reduce(
          (sum, { name: zone }) =>
            sum +
            types.reduce((all, type) => all + market.stockOf({ region, zone, type, capacity: 'spot' }), 0),
          0,
        )
        return Math.min(most, stock >= count * 10 ? 9 : stock >= count ? 6 : 1)
      }
      const found = regions
        .flatMap((region) => {
          const { zones } = ec2.region(region).plan
          return isByZone
            ? zones.map((zone) => ({ region, availabilityZoneId: zone.id, score: scoreIn(region, [zone]) }))
            : [{ region, score: scoreIn(region, zones) }]
        })
        .sort((a, b) => b.score - a.score)
        .slice(0, SCORES_MAX)
      const { items, nextToken } = page(found, wish, { least: 10, most: 1000 })
      return { spotPlacementScoreSet: items, nextToken }
    },
  })
}

const SCORED_ZONES_MAX = 10
const SCORED_TYPES_MAX = 50

function capacityScores(ec2: Ec2): Action {
  const { capacityScores: known } = ec2.parts.world
  return action({
    input: z.strictObject({
      ...dryRun,
      MarketType: z.enum(['on-demand', 'spot']),
      CapacityAmount: integer.pipe(z.int().min(1)),
      CapacityUnit: z.enum(['vcpus', 'instances']),
      CapacityAvailabilityZoneId: list(text).default([]),
      InstanceType: list(text).default([]),
    }),
    run({ CapacityAvailabilityZoneId: zoneIds, InstanceType: types }) {
      if (known === undefined)
        throw new ApiError(
          'UnsupportedOperation',
          'Your support plan does not include supportability checks.',
        )
      if (zoneIds.length > SCORED_ZONES_MAX || types.length > SCORED_TYPES_MAX)
        throw new ApiError('InvalidParameterValue', 'Too many Availability Zones or instance types')
      const scored = types.flatMap((instanceType) =>
        zoneIds.map((availabilityZoneId) => ({
          instanceType,
          availabilityZoneId,
          score: known[instanceType] ?? 'unsupported',
        })),
      )
      return { capacityManagerSupportabilityScoreSet: scored }
    },
  })
}
