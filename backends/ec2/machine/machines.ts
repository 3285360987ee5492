import type { MachineHandle } from '../../../core/handle'
import type { Observation } from '../../../core/observation'
import type { Order } from '../../../core/job/plan'
import type { Machine, Pool } from '../sdk/api'
import { failureOfState } from '../errors'
import { BILLED_AT_LEAST_MS } from '../market/prices'
import { ownerOf, priceOn, TAGS, tagsOf } from '../tags'

/** Form of machine ids; others are not sent to the provider. */
const ID = /^i-[0-9a-f]{8,17}$/

export function isMachineId(id: string): boolean {
  return ID.test(id)
}

/** A machine as its tags and the provider describe it: the same for every caller at any time. */
export function handleOf(machine: Machine): MachineHandle {
  const { id, capacityType, type, zone, launchedAtMs, reservation, tags } = machine
  const beside = tags[TAGS.beside]
  return {
    backend: 'ec2',
    kind: 'machine',
    id,
    data: beside === undefined ? undefined : { beside },
    attemptId: ownerOf(tags).attemptId,
    realised: {
      capacityType,
      type,
      place: zone,
      priceMicroUsdPerHour: priceOn(tags, { type, place: zone }),
      reservationId: capacityType === 'reserved' && reservation !== undefined ? reservation : undefined,
      billedAtLeastMs: BILLED_AT_LEAST_MS,
    },
    launchedAtMs,
  }
}

/**
 * Returns the handle of a machine that the provider's lists do not show yet, as its fleet describes it. If the fleet names no pool, the
 * most expensive offer is assumed.
 */
export function handleOfFleet(
  order: Order,
  { id, launchedAtMs, pool }: { id: string; launchedAtMs: number; pool?: Partial<Pool> },
): MachineHandle {
  const told = order.offers.find(({ type, data }) => type === pool?.type && data?.subnet === pool.subnet)
  const offer = told ?? order.offers[0]
  return {
    backend: 'ec2',
    kind: 'machine',
    id,
    data: { beside: tagsOf(order)[TAGS.beside]! },
    attemptId: order.attemptId,
    realised: {
      capacityType: order.capacityType,
      type: offer?.type ?? '',
      place: offer?.place ?? '',
      priceMicroUsdPerHour: told?.priceMicroUsdPerHour ?? order.priceMaxMicroUsdPerHour,
      billedAtLeastMs: BILLED_AT_LEAST_MS,
    },
    launchedAtMs,
  }
}

/** Taken back by the provider, by the code of its state reason. */
const TAKEN_BACK = ['Server.SpotInstanceTermination', 'Server.SpotInstanceShutdown', 'Server.ScheduledStop']
/** Reasons of an end by us, by hand, or by the machine's own shutdown. */
const ENDED = [
  'Client.UserInitiatedShutdown',
  'Client.UserInitiatedHibernate',
  'Client.InstanceInitiatedShutdown',
]

/**
 * Returns the observation of a machine. A stopped machine counts as gone, like a terminated one, because nothing runs on it. Its disk is
 * still billed, and it could be started again until it is terminated, so `find` and `list` include it.
 */
export function observationOf(machine: Machine): Observation {
  const { state, reason, transition } = machine
  const detail = reason?.message ?? reason?.code
  const words = detail === undefined || detail === '' ? {} : { detail }
  if (state === 'pending' || state === 'running') return { state, ...words }
  // The cause and the end of billing are known before the machine is gone, and decide what follows.
  const endedAtMs = instantIn(transition)
  return {
    state: state === 'terminated' || state === 'stopped' ? 'gone' : 'stopping',
    ...words,
    ...causeOf(machine),
    endedAtMs,
  }
}

function causeOf({ reason, capacityType }: Machine): Pick<Observation, 'cause' | 'failure'> {
  if (reason === undefined) return { cause: 'unknown' }
  if (TAKEN_BACK.includes(reason.code)) return { cause: 'interrupted' }
  if (ENDED.includes(reason.code)) return { cause: 'ended' }
  const failure = failureOfState(reason.code, reason.message)
  // The reason code after the end of a Capacity Block is undocumented, but the provider ends those machines.
  if (failure === undefined && capacityType === 'reserved' && reason.code.startsWith('Server.'))
    return { cause: 'interrupted' }
  return failure === undefined ? { cause: 'unknown' } : { cause: 'failed-to-start', failure }
}

/** `User initiated (2026-11-21 10:00:00 GMT)`: the only place where the provider states the time. */
function instantIn(transition: string | undefined): number | undefined {
  const match = /\((\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) (?:GMT|UTC)\)/.exec(transition ?? '')
  return match === null ? undefined : Date.parse(`${match[1]}T${match[2]}Z`)
}
