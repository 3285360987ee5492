import type { Backend, LookContext } from '../../backends/backend'
import { BackendError } from '../../backends/errors'
import { formatUsd } from '../../core/money/money'
import { isHeld, type OwnedReservation } from '../../core/reservation/reservation'
import { formatInstant } from '../../core/time/time'
import type { GarbageCandidate } from './garbage'

const DAY_HOURS = 24

/**
 * Returns capacity that this deployment bought. If its reservation is over or lost, hourly capacity is released like a machine without an
 * owner. Prepaid capacity is only listed: it cannot be returned, and jobs can use it.
 */
export async function reservationsOf(
  { name, reserving }: Backend,
  deployment: string,
  ctx: LookContext,
): Promise<GarbageCandidate[]> {
  if (reserving === undefined) return []
  const all = await reserving.reservations(ctx)
  return all
    .filter((one) => one.deployment === deployment && one.intent !== undefined && isHeld(one.phase))
    .map((one) => ({
      facts: {
        backend: name,
        kind: 'reservation',
        id: one.id,
        owner: one.intent!,
        place: one.zone,
        description: inWords(one),
        sinceMs: one.createdAtMs ?? 0,
        costMicroUsdPerDay: costPerDay(one),
      },
      claim: { reservationId: one.intent!, paid: one.kind === 'prepaid' ? endInWords(one) : undefined },
      end: async () => {
        const terms = await reserving.releaseTerms(one, ctx)
        if (terms.chargeMicroUsd > 0)
          throw new BackendError({
            class: 'invalid',
            message: `Releasing it still costs ${formatUsd(terms.chargeMicroUsd)}${terms.chargedUntilMs === undefined ? '' : `, until ${formatInstant(terms.chargedUntilMs)}`}: only a person can release it, at the provider.`,
          })
        await reserving.release(one, terms, ctx)
      },
    }))
}

function inWords({ total, free, type, kind, endsAtMs }: OwnedReservation): string {
  const end = endsAtMs === undefined ? '' : `, until ${formatInstant(endsAtMs)}`
  return `${kind} capacity: ${total} × ${type}, ${free} free${end}`
}

function endInWords({ endsAtMs }: OwnedReservation): string {
  return endsAtMs === undefined ? 'it is paid for' : `it is paid for until ${formatInstant(endsAtMs)}`
}

/** Returns the daily cost of its free places. */
function costPerDay({ kind, free, idleMicroUsdPerHour }: OwnedReservation): number | undefined {
  if (kind === 'prepaid') return 0
  return idleMicroUsdPerHour === undefined ? undefined : free * idleMicroUsdPerHour * DAY_HOURS
}
