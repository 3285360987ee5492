import { MINUTE_MS, SECOND_MS } from '../../../core/time'
import type { Problem } from '../../backend'
import type { Ec2Api, Reservation } from '../sdk/api'
import { cached } from '../../calls'
import type { Ec2Config } from '../config'
import type { Host } from '../host'

/** What is reserved for this account, and may be used. */
export interface Reservations {
  /** Those that there are, or will be, for machines of ours; nothing where it cannot be had. */
  usable(signal: AbortSignal): Promise<{ value: Reservation[]; readAtMs: number } | undefined>
  /** When the provider begins to end the machines of each block, by its id; nothing of those that cannot be had. */
  cutOffs(signal: AbortSignal): Promise<ReadonlyMap<string, number>>
  /** The same reservation as it is now, and not a moment ago; `undefined` where there is none of that id. Throws. */
  anew(id: string, signal: AbortSignal): Promise<Reservation | undefined>
}

/** For plans: a place counted a second ago is as good as one counted now. */
const FRESH_MS = SECOND_MS
/** For machines: more of a block is bought an hour before its end at the latest. */
const CUT_OFFS_FRESH_MS = 10 * SECOND_MS
/** What a plan, or a look at machines, can wait for it. */
const PATIENCE_MS = 6_000

/** EC2 begins to end the machines of a Capacity Block so long before its end ("Capacity Blocks for ML", EC2 user guide). */
const CUT_OFF_MS = 30 * MINUTE_MS
const ULTRA_SERVER_CUT_OFF_MS = 60 * MINUTE_MS

/** Our image, and the tenancy that costs nothing extra. */
const [PLATFORM, TENANCY] = ['Linux/UNIX', 'default']
/** States of what is there, or is still to come. */
const LIVE = ['active', 'scheduled', 'payment-pending', 'pending', 'assessing', 'delayed']

export function createReservations({
  config,
  api,
  clock,
}: {
  config: Ec2Config
  api: Ec2Api
  clock: () => number
}): Reservations {
  const read = (signal: AbortSignal): Promise<Reservation[]> => api.market.reservations(signal)
  const now = cached({ freshForMs: FRESH_MS, clock, read })
  const lately = cached({ freshForMs: CUT_OFFS_FRESH_MS, clock, read })
  return {
    usable: async (signal) => {
      if (config.reservations === 'none') return undefined
      const known = await now.soon(PATIENCE_MS, signal)
      return known && { ...known, value: known.value.filter((one) => isUsable(one, config)) }
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

function isUsable(reservation: Reservation, { reservations }: Ec2Config): boolean {
  const { id, platform, tenancy, state, isInterruptible } = reservation
  return (
    (reservations === 'all' || reservations.includes(id)) &&
    platform === PLATFORM &&
    tenancy === TENANCY &&
    // Its places are taken back with a notice of two minutes: that is spot by another name.
    !isInterruptible &&
    isLive({ state })
  )
}

export function isLive({ state }: Pick<Reservation, 'state'>): boolean {
  return LIVE.includes(state)
}

/**
 * When the provider begins to end the machines of a block, which is known beforehand: its warning is best effort. Machines of a
 * reservation on demand run on.
 */
export function cutOffOf({ isBlock, isUltraServer, endsAtMs }: Reservation): number | undefined {
  if (!isBlock || endsAtMs === undefined) return undefined
  return endsAtMs - (isUltraServer ? ULTRA_SERVER_CUT_OFF_MS : CUT_OFF_MS)
}

/** Says which of those that are named is none. */
export async function checkReservations(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const { reservations: named, region, regions } = host.config
  // Each reservation is in one Region: that it is not in another one says nothing.
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
