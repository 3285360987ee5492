import type { MicroUsd } from '../../../../core/money/money'
import type {
  OwnedReservation,
  ReservationKind,
  ReservationPhase,
} from '../../../../core/reservation/reservation'

/** How a payment goes: `pending` until the test decides. */
export type Payment = { kind: 'confirmed' | 'failed'; afterMs: number } | { kind: 'pending' }

/** An instant by which something is decided, and how; Infinity while nothing is. */
interface Settlement {
  atMs: number
  isPaid: boolean
}

interface Extension {
  endsAtMs: number
  boughtAtMs: number
  payment: Settlement
}

/** A reservation as the provider has it. Tests change it by the methods of the market. */
export interface Holding {
  id: string
  kind: ReservationKind
  type: string
  region: string
  zone: string
  total: number
  /** Places in use. */
  used: number
  createdAtMs: number
  startsAtMs: number
  endsAtMs?: number
  perHourMicro: MicroUsd
  payment: Settlement
  tags: { deployment?: string; intent?: string; send?: number; upfrontMicroUsd?: MicroUsd }
  /** Lists show it from then on. */
  shownFromMs: number
  /** Not accepted by the provider before; refused at that instant if `isRefused`. */
  assessedAtMs?: number
  isRefused?: true
  /** Its capacity comes then, after its start. */
  arrivesAtMs?: number
  /** Charged until then at least, even if it is released. */
  committedUntilMs?: number
  released?: { atMs: number; chargedUntilMs: number }
  cancelledAtMs?: number
  extensions: (Extension & { shownFromMs: number })[]
  isShared?: true
  isTargeted: boolean
  unfit?: string
}

export function settlement(payment: Payment, nowMs: number): Settlement {
  if (payment.kind === 'pending') return { atMs: Infinity, isPaid: false }
  return { atMs: nowMs + payment.afterMs, isPaid: payment.kind === 'confirmed' }
}

export function endOf({ endsAtMs, extensions }: Holding, nowMs: number): number | undefined {
  const paid = extensions.filter(({ payment }) => payment.isPaid && payment.atMs <= nowMs)
  return endsAtMs === undefined ? undefined : Math.max(endsAtMs, ...paid.map((one) => one.endsAtMs))
}

export function phaseOf(one: Holding, nowMs: number): ReservationPhase {
  const {
    payment,
    released,
    assessedAtMs = -Infinity,
    arrivesAtMs = -Infinity,
    cancelledAtMs = Infinity,
  } = one
  if (nowMs >= cancelledAtMs) return 'ended'
  if (nowMs < payment.atMs) return 'unpaid'
  if (!payment.isPaid) return 'failed'
  if (nowMs < assessedAtMs) return 'assessing'
  if (one.isRefused) return 'failed'
  if (released !== undefined && nowMs >= released.atMs)
    return nowMs < released.chargedUntilMs ? 'ending' : 'ended'
  if (nowMs >= (endOf(one, nowMs) ?? Infinity)) return 'ended'
  if (nowMs < one.startsAtMs) return 'scheduled'
  return nowMs < arrivesAtMs ? 'delayed' : 'active'
}

/** The provider's own word, which is not that of the phase where they could be confused. */
function stateOf(one: Holding, phase: ReservationPhase): string {
  if (phase === 'unpaid') return 'payment-pending'
  if (phase === 'failed') return one.isRefused ? 'unsupported' : 'payment-failed'
  if (phase !== 'ended') return phase
  return one.cancelledAtMs !== undefined || one.released !== undefined ? 'cancelled' : 'expired'
}

export function shown(
  one: Holding,
  { nowMs, cutOffMs }: { nowMs: number; cutOffMs: number },
): OwnedReservation {
  const { id, kind, type, region, zone, total, startsAtMs, createdAtMs, isTargeted, unfit, tags } = one
  const phase = phaseOf(one, nowMs)
  const endsAtMs = endOf(one, nowMs)
  const extension = one.extensions.filter(({ shownFromMs }) => shownFromMs <= nowMs).at(-1)
  const { deployment, intent, upfrontMicroUsd } = tags
  return {
    id,
    kind,
    phase,
    state: stateOf(one, phase),
    type,
    region,
    zone,
    total,
    free: phase === 'active' ? total - one.used : 0,
    startsAtMs,
    createdAtMs,
    isTargeted,
    isShared: one.isShared ?? false,
    endsAtMs,
    unfit,
    deployment,
    intent,
    upfrontMicroUsd,
    usableUntilMs: kind === 'prepaid' && endsAtMs !== undefined ? endsAtMs - cutOffMs : undefined,
    idleMicroUsdPerHour: one.perHourMicro,
    extension:
      extension !== undefined
        ? {
            phase: paymentPhase(extension.payment, nowMs),
            endsAtMs: extension.endsAtMs,
            boughtAtMs: extension.boughtAtMs,
          }
        : undefined,
  }
}

function paymentPhase({ atMs, isPaid }: Settlement, nowMs: number): 'unpaid' | 'paid' | 'failed' {
  if (nowMs < atMs) return 'unpaid'
  return isPaid ? 'paid' : 'failed'
}
