/** Describes capacity reservations and Capacity Blocks. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, filter, list, paging, text, type Filter as WantedFilter } from '../wire/query'
import { action, type Action, type Call } from '../wire/service'
import type { Ec2 } from './ec2'
import { chosen, page, select, type Readers } from './filters'
import { isBlock, reservationState, type CapacityReservation } from './reservation-model'
import { blockWords, endDateType, reservationWords } from './reservation-words'
import { findReservation } from './reserved-room'

const filters = { Filter: list(filter).default([]) }

export function reservationListActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeCapacityReservations: describeReservations(ec2),
    DescribeCapacityBlocks: describeBlocks(ec2),
  }
}

/** Returns the instant up to which a list call knows what was created: lists lag behind purchases. */
export function knownUntilMs(ec2: Ec2, { service, action: name, region, principal }: Call): number {
  const stale = ec2.parts.faults.first('stale-list', { service, action: name, region, caller: principal.arn })
  return stale === undefined ? Infinity : ec2.nowMs - stale.for
}

/** Returns the reservations that a list call knows of. */
function shown(ec2: Ec2, call: Call): Map<string, CapacityReservation> {
  const untilMs = knownUntilMs(ec2, call)
  const all = [...ec2.region(call.region).reservations]
  return new Map(all.filter(([, { createdAtMs }]) => createdAtMs <= untilMs))
}

function refuseTags(wanted: readonly WantedFilter[]): void {
  const found = wanted.find(({ Name }) => Name.startsWith('tag:') || Name === 'tag-key')
  if (found !== undefined)
    throw new ApiError('InvalidParameterValue', `The filter '${found.Name}' is invalid`)
}

function describeReservations(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...paging,
      ...filters,
      CapacityReservationId: list(text).default([]),
    }),
    run({ CapacityReservationId: ids, Filter, ...wish }, call) {
      const reservations = shown(ec2, call)
      const wanted =
        ids.length === 0 ? [...reservations.values()] : ids.map((id) => findReservation({ reservations }, id))
      if (!ec2.parts.world.blockMarket.filtersByTag) refuseTags(Filter)
      const { items, nextToken } = page(select(wanted, Filter, readers()), wish, { least: 1, most: 1000 })
      return { capacityReservationSet: items.map((each) => reservationWords(ec2, each)), nextToken }
    },
  })
}

function describeBlocks(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...paging, ...filters, CapacityBlockId: list(text).default([]) }),
    run({ CapacityBlockId: ids, Filter, ...wish }, call) {
      const blocks = [...shown(ec2, call).values()].filter(isBlock)
      const words = { code: 'InvalidCapacityBlockId.NotFound', what: 'Capacity Block ID' }
      const found = select(chosen(blocks, ids, { by: ({ blockId = '' }) => blockId, ...words }), Filter, {
        ...dates(),
        'capacity-block-id': ({ blockId }) => blockId,
        'availability-zone': ({ zone }) => zone.name,
        state: reservationState,
      })
      const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
      return { capacityBlockSet: items.map(blockWords), nextToken }
    },
  })
}

function readers(): Readers<CapacityReservation> {
  return {
    ...dates(),
    'instance-type': ({ type }) => type.name,
    'owner-id': ({ ownerId }) => ownerId,
    'instance-platform': ({ platform }) => platform,
    'availability-zone': ({ zone }) => zone.name,
    tenancy: () => 'default',
    state: reservationState,
    'end-date-type': endDateType,
    'instance-match-criteria': ({ matching: criteria }) => criteria,
  }
}

function dates(): Readers<CapacityReservation> {
  const iso = (atMs: number | undefined): string | undefined =>
    atMs === undefined ? undefined : new Date(atMs).toISOString()
  return {
    'start-date': ({ startsAtMs }) => iso(startsAtMs),
    'end-date': ({ endsAtMs }) => iso(endsAtMs),
    'create-date': ({ createdAtMs }) => iso(createdAtMs),
  }
}
