import { MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { isHeld, type ReservationPhase } from '../../../core/reservation/reservation'
import type { Problem } from '../../backend'
import type { Ec2Api, Reservation } from '../sdk/api'
import { cached } from '../../calls'
import type { Ec2Config } from '../config'
import type { Host } from '../host'
import { TAGS } from '../tags'

/** Reservations of this account that may be used. */
export interface Reservations {
  /** Current and future reservations for our machines; nothing if they cannot be read. */
  usable(signal: AbortSignal): Promise<{ value: Reservation[]; readAtMs: number } | undefined>
  /** Reservations with free places that EC2 fills with on-demand machines on its own; none if they cannot be read, or are never used. */
  open(signal: AbortSignal): Promise<Reservation[]>
  /** Returns when the provider begins to end the machines of each block, by its id; unreadable ones are omitted. */
  cutOffs(signal: AbortSignal): Promise<ReadonlyMap<string, number>>
  /** The current state of a reservation, read anew; `undefined` without one of that id. Throws. */
  anew(id: string, signal: AbortSignal): Promise<Reservation | undefined>
}

/** Validity for plans: a free place counted a second ago is as good as one counted now. */
const FRESH_MS = SECOND_MS
/** Validity for machines: a block is extended at the latest an hour before its end. */
const CUT_OFFS_FRESH_MS = 10 * SECOND_MS
/** How long a plan, or an observation of machines, waits for reservations. */
const PATIENCE_MS = 6_000

/** Time before the end of a Capacity Block at which EC2 begins to end its machines ("Capacity Blocks for ML", EC2 user guide). */
const CUT_OFF_MS = 30 * MINUTE_MS
const ULTRA_SERVER_CUT_OFF_MS = 60 * MINUTE_MS

/** Our image, and the tenancy without an extra charge. */
const PLATFORM = 'Linux/UNIX'
export const TENANCY = 'default'
/** Meaning of each state of EC2 (SDK, `CapacityReservationState` and `CapacityBlockResourceState`). */
const PHASES: Readonly<Record<string, ReservationPhase>> = {
  'payment-pending': 'unpaid',
  'payment-failed': 'failed',
  pending: 'assessing',
  assessing: 'assessing',
  scheduled: 'scheduled',
  delayed: 'delayed',
  active: 'active',
  cancelling: 'ending',
  cancelled: 'ended',
  expired: 'ended',
  unavailable: 'ended',
  failed: 'failed',
  unsupported: 'failed',
}

interface Usage {
  config: Ec2Config
  /** Whose purchases are used. */
  deployment: string | undefined
}

export function createReservations({
  config,
  deployment,
  api,
  clock,
}: Usage & { api: Ec2Api; clock: () => number }): Reservations {
  const read = (signal: AbortSignal): Promise<Reservation[]> => api.market.reservations(signal)
  const now = cached({ freshForMs: FRESH_MS, clock, read })
  const lately = cached({ freshForMs: CUT_OFFS_FRESH_MS, clock, read })
  return {
    usable: async (signal) => {
      if (config.reservations === 'none') return undefined
      const known = await now.soon(PATIENCE_MS, signal)
      return known && { ...known, value: known.value.filter((one) => isUsable(one, { config, deployment })) }
    },
    open: async (signal) => {
      if (config.reservations === 'none') return []
      const known = (await now.soon(PATIENCE_MS, signal))?.value ?? []
      return known.filter((one) => isOpen(one) && freeIn(one) > 0 && whyUnfit(one) === undefined)
    },
    cutOffs: async (signal) => {
      const known = (await lately.soon(PATIENCE_MS, signal))?.value ?? []
      return new Map(
        known.flatMap((one) => {
          const atMs = cutOffOf(one)
          return atMs === undefined ? [] : [[one.id, atMs] as const]
        }),
      )
    },
    anew: async (id, signal) => (await api.market.reservations(signal)).find((one) => one.id === id),
  }
}

/** Number of machines that a launch can get now: "available" and "free" in every table and document. */
export function freeIn({ state, free }: Pick<Reservation, 'state' | 'free'>): number {
  return state === 'active' ? free : 0
}

/** Whether EC2 gives the places of a reservation to any matching machine that names none. */
export function isOpen({ matching }: Pick<Reservation, 'matching'>): boolean {
  return matching === 'open'
}

/** A list of ids is about reservations of others: what this deployment has bought is always used. */
function isUsable(reservation: Reservation, usage: Usage): boolean {
  const { reservations } = usage.config
  return (
    (typeof reservations === 'string' ||
      reservations.includes(reservation.id) ||
      isOwn(reservation, usage)) &&
    isLive(reservation) &&
    whyUnfit(reservation) === undefined
  )
}

/** Whether only jobs that name the reservation may use it: somebody reserved it for something else, outside of this deployment. */
export function isForNaming(reservation: Pick<Reservation, 'tags'>, usage: Usage): boolean {
  return usage.config.reservations === 'named' && !isOwn(reservation, usage)
}

function isOwn({ tags }: Pick<Reservation, 'tags'>, { deployment }: Usage): boolean {
  return deployment !== undefined && tags?.[TAGS.deployment] === deployment
}

/** Returns why jobs never run in a reservation, regardless of its room. */
export function whyUnfit({
  platform,
  tenancy,
  isInterruptible,
}: Pick<Reservation, 'platform' | 'tenancy' | 'isInterruptible'>): string | undefined {
  if (platform !== PLATFORM) return `it is for ${platform}, and jobs run on ${PLATFORM}`
  if (tenancy !== TENANCY) return `its tenancy is ${tenancy}, which costs extra`
  // Effectively spot.
  if (isInterruptible) return 'its owner interrupts machines with a notice of two minutes'
  return undefined
}

/** A state that this version does not know holds something that cannot be used. */
export function phaseOf({ state }: Pick<Reservation, 'state'>): ReservationPhase {
  return PHASES[state] ?? 'delayed'
}

/** Exists or is scheduled. */
export function isLive(reservation: Pick<Reservation, 'state'>): boolean {
  return isHeld(phaseOf(reservation))
}

/**
 * Returns when the provider begins to end the machines of a block. The time is known beforehand, because its warning is best effort.
 * Machines of an on-demand reservation keep running.
 */
export function cutOffOf({
  isBlock,
  isUltraServer,
  endsAtMs,
}: Pick<Reservation, 'isBlock' | 'isUltraServer' | 'endsAtMs'>): number | undefined {
  if (!isBlock || endsAtMs === undefined) return undefined
  return endsAtMs - (isUltraServer ? ULTRA_SERVER_CUT_OFF_MS : CUT_OFF_MS)
}

/** Lists the named ids that are not reservations. */
export async function checkReservations(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const { reservations: named, region, regions } = host.config
  // Each reservation is in one Region, so its absence from another one proves nothing.
  if (typeof named === 'string' || regions.length > 1) return []
  const all = await host.api.market.reservations(signal)
  const missing = named.filter((id) => !all.some((one) => one.id === id && isLive(one)))
  if (missing.length === 0) return []
  return [
    {
      severity: 'warning',
      message: `${region} has no capacity reservation ${missing.join(', ')} for this account, or no longer`,
      remedy: 'Set CRUCIBLE_EC2_RESERVATIONS to existing reservations, or to all.',
    },
  ]
}
