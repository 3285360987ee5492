/** Instant fleets: one call, many pools, with the failures reported per pool. */
import { z } from 'zod'
import { dryRun, filter, flag, list, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { usualMessage } from '../wire/usual'
import { action, type Action, type Call } from '../wire/service'
import { poolOf, roomIn, type Room } from './capacity'
import type { Ec2 } from './ec2'
import { page, select } from './filters'
import {
  fleetInput,
  planFleet,
  ranked,
  type FleetInput,
  type FleetPool,
  type RefusedOverride,
  type Target,
} from './fleet-plan'
import { errorWords, filledWords, fleetWords, type Filled, type Refused } from './fleet-words'
import { launch } from './launch'
import { spotTagProblem } from './launch-plan'
import { tagsFor } from './launch-fields'
import type { Fleet } from './model'
import { spotRoleProblem } from './spot-role'

export function fleetActions(ec2: Ec2): Record<string, Action> {
  return {
    CreateFleet: action({
      input: fleetInput,
      isMutating: true,
      check: (wish, call) => void planFleet(ec2, wish, call),
      run(wish, call) {
        const { ClientToken: token, ...parameters } = wish
        const scope = `CreateFleet/${call.region}`
        const fleet = ec2.tokens.once(scope, { token, parameters }, () => makeFleet(ec2, wish, call))
        return fleet.silence === undefined ? fleet.answer : { fleetId: fleet.id }
      },
    }),
    DescribeFleets: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        FleetId: list(text).default([]),
        Filter: list(filter).default([]),
      }),
      run({ FleetId: ids, Filter, ...wish }, { region }) {
        const fleets = [...ec2.region(region).fleets.values()]
        const unknown = ids.find((id) => !fleets.some((each) => each.id === id))
        if (unknown !== undefined)
          throw new ApiError('InvalidFleetId.NotFound', `The fleet ID '${unknown}' does not exist`)
        // Instant fleets are listed only when the request names them.
        const named = fleets.filter(({ id }) => ids.includes(id))
        const { items, nextToken } = page(
          select(named, Filter, { type: () => 'instant', 'fleet-state': ({ state }) => state }),
          wish,
          { least: 1, most: 1000 },
        )
        return { fleetSet: items.map(fleetWords), nextToken }
      },
    }),
    DeleteFleets: action({
      input: z.strictObject({ ...dryRun, FleetId: list(text), TerminateInstances: flag }),
      isMutating: true,
      run({ FleetId: ids, TerminateInstances: ends }, { region }) {
        const { fleets } = ec2.region(region)
        const found = ids.filter((id) => fleets.has(id)).map((id) => fleets.get(id)!)
        if (!ends && found.length > 0)
          throw new ApiError(
            'InvalidParameterValue',
            'Deleting an instant fleet ends its instances; NoTerminateInstances is not possible',
          )
        const successfulFleetDeletionSet = found.map((fleet) => {
          const previousFleetState = fleet.state
          fleet.state = 'deleted-terminating'
          for (const instance of fleet.instances) ec2.parts.lifecycle.terminate(instance)
          return { currentFleetState: fleet.state, previousFleetState, fleetId: fleet.id }
        })
        const unsuccessfulFleetDeletionSet = ids
          .filter((id) => !fleets.has(id))
          .map((id) => ({
            error: { code: 'fleetIdDoesNotExist', message: `The fleet ID '${id}' does not exist` },
            fleetId: id,
          }))
        return { successfulFleetDeletionSet, unsuccessfulFleetDeletionSet }
      },
    }),
  }
}

function makeFleet(ec2: Ec2, wish: FleetInput, call: Call): Fleet {
  const { targets, pools, refused: denied } = planFleet(ec2, wish, call)
  const id = `fleet-${ec2.parts.ids.uuid()}`
  const [target] = targets
  const silence = ec2.parts.faults.first('fleet-silent', {
    service: 'ec2',
    action: 'CreateFleet',
    region: call.region,
    ...(target === undefined ? {} : { capacity: target.capacity }),
  })
  const reservationId = ec2.parts.ids.resource('r')
  const results = targets.map((target) => ({
    target,
    ...fill(ec2, { target, pools, denied, id, reservationId, call }),
  }))
  const fleet: Fleet = {
    id,
    createdAtMs: ec2.nowMs,
    clientToken: wish.ClientToken ?? '',
    tags: tagsFor('fleet', wish),
    state: 'active',
    ...(silence === undefined ? {} : { silence: { isShown: silence.isShown } }),
    request: wish,
    instances: results.flatMap(({ filled }) => filled.flatMap(({ instances }) => instances)),
    answer: {
      fleetId: id,
      errorSet: results.flatMap(({ target, refused }) => refused.map((each) => errorWords(target, each))),
      fleetInstanceSet: results.flatMap(({ target, filled }) =>
        filled.map((each) => filledWords(target, each)),
      ),
    },
  }
  ec2.region(call.region).fleets.set(id, fleet)
  return fleet
}

interface FillOrder {
  target: Target
  pools: readonly FleetPool[]
  /** Overrides that are not launched at all. */
  denied: readonly RefusedOverride[]
  id: string
  reservationId: string
  call: Call
}

/** Fills one target from the pools, best first, as far as the world allows. */
function fill(ec2: Ec2, order: FillOrder): { filled: Filled[]; refused: Refused[] } {
  const { target, pools, denied, id, reservationId, call } = order
  const problem = spotRoleProblem(ec2, call, target.capacity)
  if (problem !== undefined)
    return {
      filled: [],
      refused: withUnfulfillable([...pools, ...denied].map((pool) => ({ pool, problem }))),
    }
  const launchProblems = denied.map(({ problem: why, ...pool }) => ({ pool, problem: why }))
  const { places, refused, wanted } = choose(ec2, order)
  const count = places.reduce((sum, { room }) => sum + room.count, 0)
  if (wanted < target.count && places.length > 0)
    refused.push({ pool: places.at(-1)!.pool, problem: partial() })
  // If the minimum cannot be reached, nothing is launched.
  if (count < target.least || count === 0) {
    const said = [...launchProblems, ...refused]
    if (said.length === 0) return { filled: [], refused: [{ pool: pools[0]!, problem: unfulfillable() }] }
    return { filled: [], refused: launchProblems.length > 0 ? withUnfulfillable(said) : said }
  }
  const filled = places.map(({ pool, room }) => ({
    pool,
    instances: launch(ec2, pool.plan, {
      subnet: pool.subnet,
      count: room.count,
      places: room.places,
      reservationId,
      clientToken: '',
      fleetId: id,
    }),
  }))
  return { filled, refused: [...launchProblems, ...refused] }
}

interface Place {
  pool: FleetPool
  room: Room
}

function choose(
  ec2: Ec2,
  { target, pools, call }: FillOrder,
): { places: Place[]; refused: Refused[]; wanted: number } {
  const limit = ec2.parts.faults.first('partial-fleet', {
    service: 'ec2',
    action: 'CreateFleet',
    region: call.region,
    capacity: target.capacity,
  })
  const wanted = Math.min(target.count, limit?.most ?? Infinity)
  const places: Place[] = []
  const refused: Refused[] = []
  let left = wanted
  for (const pool of ranked(ec2, pools, target)) {
    const [first] = places
    const isOutside =
      first !== undefined &&
      ((target.isSingleType && first.pool.plan.type !== pool.plan.type) ||
        (target.isSingleZone && first.pool.subnet.zone.name !== pool.subnet.zone.name))
    if (left === 0 || isOutside) continue
    const room = fleetRoom(ec2, pool, left)
    if (room.count > 0) places.push({ pool, room })
    if (room.count < left && room.problem !== undefined) refused.push({ pool, problem: room.problem })
    left -= room.count
  }
  return { places, refused, wanted }
}

/** Returns room like `roomIn`, with a fleet's error codes. */
function fleetRoom(ec2: Ec2, { plan, subnet }: FleetPool, wanted: number): Room {
  const fault = ec2.parts.faults.first('fleet-error', { ...poolOf(plan, subnet), service: 'ec2' })
  if (fault !== undefined) {
    const { code, message = usualMessage(code) } = fault
    return { count: 0, places: [], problem: new ApiError(code, message) }
  }
  const tagProblem = spotTagProblem(plan, plan.capacity)
  if (tagProblem !== undefined) return { count: 0, places: [], problem: tagProblem }
  const room = roomIn(ec2, plan, { subnet, wanted })
  if (room.problem?.code !== 'Unsupported') return room
  const problem = new ApiError(
    'InvalidFleetConfiguration',
    `Your requested instance type (${plan.type.name}) is not supported in your requested Availability Zone (${subnet.zone.name}).`,
  )
  return { ...room, problem }
}

function partial(): ApiError {
  return new ApiError(
    'InsufficientInstanceCapacity',
    'There is no capacity available that matches your request.',
    500,
  )
}

function unfulfillable(): ApiError {
  return new ApiError(
    'UnfulfillableCapacity',
    'Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.',
  )
}

/** Adds the fleet's error: if a launch itself was refused, EC2 also reports that the fleet got no capacity. */
function withUnfulfillable(refused: Refused[]): Refused[] {
  return [...refused, { pool: refused.at(-1)!.pool, problem: unfulfillable() }]
}
