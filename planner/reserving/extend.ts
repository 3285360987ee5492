import { quoteFault, ruleFault } from '../../core/figures'
import { formatUsd, type MicroUsd } from '../../core/money/money'
import type { CapacityQuote, OwnedReservation } from '../../core/reservation/reservation'
import type { PurchaseRule } from '../../core/reservation/reserving'
import type { Elsewhere, ExtensionDecision, JobInReservation } from '../../core/reservation/activities'
import { formatDuration, formatInstant, HOUR_MS, MINUTE_MS } from '../../core/time/time'

/** Time before the end after which no provider sells an extension, with time for the purchase itself. */
const EXTENSION_DEADLINE_MS = HOUR_MS + 5 * MINUTE_MS
/** Earlier, forecasts are worse; later, one failed look could be the last. */
const EXTENSION_FROM_MS = 6 * HOUR_MS

/** Whether an extension must be decided: near the end, and early enough to buy, with one payment at a time. */
export function isExtensionDue(
  { kind, phase, endsAtMs, extension }: OwnedReservation,
  { rule, nowMs }: { rule: PurchaseRule; nowMs: number },
): boolean {
  if (rule.extendMaxMicroUsd === undefined || kind !== 'prepaid' || phase !== 'active') return false
  if (endsAtMs === undefined || ![undefined, 'paid'].includes(extension?.phase)) return false
  const leftMs = endsAtMs - nowMs
  return leftMs <= EXTENSION_FROM_MS && leftMs >= EXTENSION_DEADLINE_MS
}

/**
 * Returns how much later than the last usable moment each job will be done. Jobs that fit, and jobs whose remaining time is unknown, are
 * excluded.
 */
export function overrunsOf(
  { usableUntilMs, endsAtMs = Infinity }: Pick<OwnedReservation, 'usableUntilMs' | 'endsAtMs'>,
  jobs: readonly JobInReservation[],
  nowMs: number,
): { job: JobInReservation; overMs: number }[] {
  const untilMs = usableUntilMs ?? endsAtMs
  return jobs.flatMap((job) => {
    const overMs = job.left === null ? 0 : nowMs + job.left.ms - untilMs
    return overMs > 0 ? [{ job, overMs }] : []
  })
}

export interface ExtensionFacts {
  reservation: OwnedReservation
  rule: Pick<PurchaseRule, 'extendMaxMicroUsd'>
  /** Payments for its extensions so far. */
  extendedMicroUsd: MicroUsd
  jobs: readonly JobInReservation[]
  quotes: readonly CapacityQuote[]
  /** Placement elsewhere by job. Its price includes the new start. */
  elsewhere: Readonly<Record<string, Elsewhere>>
  nowMs: number
}

/**
 * Extends for jobs that would not be done in time, if that is allowed and cheaper than moving them; if one of them has no other place,
 * whenever it is allowed. Otherwise they save before the end and continue elsewhere.
 */
export function judgeExtension(facts: ExtensionFacts): ExtensionDecision {
  const { reservation, rule, extendedMicroUsd, jobs, quotes, elsewhere, nowMs } = facts
  const { id, endsAtMs = Infinity } = reservation
  const overruns = overrunsOf(reservation, jobs, nowMs)
  if (overruns.length === 0)
    return { kind: 'fits', message: `Every job in ${id} is expected to be done before its end.` }
  const needMs = Math.max(...overruns.map(({ overMs }) => overMs))
  const late = `${overruns.map(({ job }) => job.jobId).join(', ')} would be done ${formatDuration(needMs)} after the end of ${id}`
  const [best] = quotes
    .filter((quote) => quoteFault(quote) === undefined && ruleFault(rule) === undefined)
    .filter(({ extends: of, currency }) => of === id && currency === 'USD')
    .filter((quote) => (quote.endsAtMs ?? 0) - endsAtMs >= needMs)
    .sort((a, b) => a.upfrontMicro - b.upfrontMicro || a.endsAtMs! - b.endsAtMs!)
  if (best === undefined) return move(`${late}, and no extension is for sale`)
  const { upfrontMicro: fee } = best
  const leftMicroUsd = (rule.extendMaxMicroUsd ?? 0) - extendedMicroUsd
  if (fee > leftMicroUsd)
    return move(
      `${late}; an extension costs ${formatUsd(fee)}, and ${formatUsd(Math.max(0, leftMicroUsd))} of the limit for extensions are left`,
    )
  const moves = overruns.map(({ job }) => elsewhere[job.jobId] ?? null)
  const known = moves.filter((place) => place !== null)
  const moving = known.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0)
  const isMovable = known.length === moves.length
  if (isMovable && fee > moving)
    return move(`${late}; an extension costs ${formatUsd(fee)}, and moving costs ${formatUsd(moving)}`)
  const why = isMovable ? `moving costs ${formatUsd(moving)}` : 'no other offer has room for all of them'
  return {
    kind: 'extend',
    durationMs: best.endsAtMs! - endsAtMs,
    upfrontMaxMicroUsd: fee,
    message: `${late}: it is extended to ${formatInstant(best.endsAtMs!)} for ${formatUsd(fee)}, because ${why}.`,
  }
}

function move(why: string): ExtensionDecision {
  return { kind: 'move', message: `${why}: jobs save before the end and continue elsewhere.` }
}
