/** Describes capacity reservations and Capacity Blocks. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, filter, list, paging, text, type Filter as WantedFilter } from '../wire/query'
import { action, type Action, type Call } from '../wire/service'
import type { Xml } from '../wire/xml'
import { DAY_MS, HOUR_MS } from './block-rules'
import type { Ec2 } from './ec2'
import { chosen, page, select, type Readers } from './filters'
import { freeIn, isBlock, placesIn, reservationState } from './reservation-model'
import type { CapacityReservation, ReservationState } from './reservation-model'
import { blockWords, endDateType, reservationWords } from './reservation-words'
import { findReservation } from './reserved-room'

const filters = { Filter: list(filter).default([]) }

export function reservationListActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeCapacityReservations: describeReservations(ec2),
    DescribeCapacityBlocks: describeBlocks(ec2),
    DescribeCapacityBlockStatus: describeBlockStatus(ec2),
  }
}

/** Returns the instant up to which a list call knows what was created: lists lag behind purchases. */
export function knownUntilMs(ec2: Ec2, { service, action: name, region, principal }: Call): number {
  const stale = ec2.parts.faults.first('stale-list', { service, action: name, region, caller: principal.arn })
  return stale === undefined ? Infinity : ec2.nowMs - stale.for
}

/** Returns the reservations that a list call knows of. */
export function shown(
  ec2: Ec2,
  call: Call,
  untilMs = knownUntilMs(ec2, call),
): Map<string, CapacityReservation> {
  const all = [...ec2.region(call.region).reservations]
  return new Map(all.filter(([, each]) => each.createdAtMs <= untilMs && ec2.nowMs < visibleUntilMs(each)))
}

/** EC2 shows these for a while after the refusal; the other states have no documented limit. */
const VISIBLE_MS: Partial<Record<ReservationState, number>> = { failed: HOUR_MS, unsupported: 30 * DAY_MS }

function visibleUntilMs({ history }: CapacityReservation): number {
  const { state, atMs } = history.at(-1)!
  return atMs + (VISIBLE_MS[state] ?? Infinity)
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
      const found = select(chosen(blocks, ids, BY_BLOCK_ID), Filter, {
        ...dates(),
        'capacity-block-id': ({ blockId }) => blockId,
        'availability-zone': ({ zone }) => zone.name,
        'ultraserver-type': ({ ultraserver }) => ultraserver,
        state: reservationState,
        tags: ({ tags }) => [...tags].flatMap(([key, value]) => [key, value]),
      })
      const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
      return { capacityBlockSet: items.map(blockWords), nextToken }
    },
  })
}

const BY_BLOCK_ID = {
  by: ({ blockId = '' }: CapacityReservation) => blockId,
  code: 'InvalidCapacityBlockId.NotFound',
  what: 'Capacity Block ID',
}

/** Describes the status of blocks; without ids only active ones have a status. */
function describeBlockStatus(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...paging, ...filters, CapacityBlockId: list(text).default([]) }),
    run({ CapacityBlockId: ids, Filter, ...wish }, call) {
      const blocks = [...shown(ec2, call).values()].filter(isBlock)
      const wanted = chosen(blocks, ids, BY_BLOCK_ID)
      const early = wanted.find((each) => ['payment-pending', 'scheduled'].includes(reservationState(each)))
      if (ids.length > 0 && early !== undefined)
        throw new ApiError(
          'InvalidCapacityReservationState.PendingActivation',
          `Your Capacity Block '${early.blockId}' is not active yet.`,
        )
      const active = wanted.filter((each) => reservationState(each) === 'active')
      const found = select(active, Filter, { 'interconnect-status': () => INTERCONNECT })
      const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
      return { capacityBlockStatusSet: items.map((each) => statusWords(ec2, each)), nextToken }
    },
  })
}

/** State of the interconnect, which this cloud never impairs. */
const INTERCONNECT = 'ok'

function statusWords(ec2: Ec2, block: CapacityReservation): Xml {
  const total = placesIn(block)
  const free = freeIn(block, ec2.nowMs)
  const counts = {
    totalCapacity: total,
    totalAvailableCapacity: free,
    totalUnavailableCapacity: total - free,
  }
  return {
    capacityBlockId: block.blockId,
    interconnectStatus: INTERCONNECT,
    ...counts,
    capacityReservationStatusSet: [{ capacityReservationId: block.id, ...counts }],
  }
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
