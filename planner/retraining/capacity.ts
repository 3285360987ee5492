import type { CapacityDecision } from '../../core/retraining/run'
import type {
  CapacityPlan,
  CapacityStep,
  ReservationOfStep,
  ReservedStep,
  RunDates,
} from '../../core/retraining/retraining'
import type { MicroUsd } from '../../core/money/money'
import { formatUsd } from '../../core/money/money'
import { formatBackendChoice } from '../../core/offer'
import type { ExtensionPurpose, PurchaseRule } from '../../core/reservation/reserving'
import type { AwaitedJob } from '../../core/reservation/hold'
import { formatDuration, HOUR_MS } from '../../core/time/time'

export interface CapacityFacts {
  plan: CapacityPlan
  dates: Pick<RunDates, 'opensAtMs' | 'isByHand'>
  /** Number of tried steps. */
  tried: number
  /** State and message of the last reservation. */
  last?: { state: string; message: string }
  /** The rest of the run's budget. */
  leftMicroUsd?: MicroUsd
  /** The training for which places are kept. */
  awaitedBy?: Pick<AwaitedJob, 'jobId' | 'schedule' | 'run'>
  /** Limit on the cost of extensions, and their purpose. */
  extension?: { maxMicroUsd: MicroUsd; purpose: ExtensionPurpose }
  nowMs: number
}

/** A training begins within a minute of its window; this is for an outage at that time. */
const LATE_MS = HOUR_MS
/** A shorter search misses capacity that others release. */
const SEARCH_MS_MIN = HOUR_MS

type Step = { index: number; message: string } & (
  { kind: 'reserve'; reservation: ReservationOfStep } | Extract<CapacityDecision, { kind: 'open' }>
)

/** Returns the next step towards capacity. A person's refusal ends the steps, because the next one would buy what was refused. */
export function nextCapacity(facts: CapacityFacts): Step | Extract<CapacityDecision, { kind: 'give-up' }> {
  const { plan, tried, last } = facts
  const why = last === undefined ? '' : ` ${last.message}`
  const isRefused = last?.state === 'rejected'
  const left = plan.steps.map((step, index) => ({ step, index })).slice(tried)
  const next = left.find(({ step }) => !isRefused || step.kind === 'unreserved')
  if (next === undefined) {
    const none =
      tried === 0 ? 'The file names no way to get capacity.' : 'Every way to get capacity was tried.'
    return { kind: 'give-up', message: `${none}${why}` }
  }
  const { step, index } = next
  const number = index === 0 ? '' : `Fallback ${index} of ${plan.steps.length - 1}: `
  const message = `${number}${stepInWords(step)}.${index === 0 ? '' : why}`
  if (step.kind === 'unreserved') {
    const { backends, regions, deadlineMs } = step
    return {
      kind: 'open',
      index,
      message,
      placement: { kind: 'open', backends, regions, deadlineMs },
    }
  }
  return { kind: 'reserve', index, message, reservation: reservationOf(step, index, facts) }
}

function reservationOf(step: ReservedStep, index: number, facts: CapacityFacts): ReservationOfStep {
  const { backend, kind, types, count, durationMs, regions, zones } = step
  const { dates, leftMicroUsd, nowMs, awaitedBy } = facts
  const limit = (most: MicroUsd | undefined): MicroUsd | undefined =>
    most === undefined || leftMicroUsd === undefined ? most : Math.min(most, leftMicroUsd)
  const upfront = limit(step.upfrontMaxMicroUsd)
  const spend = limit(step.spendMaxMicroUsd)
  const fromMs = Math.max(dates.opensAtMs, nowMs)
  const latestStartAtMs = fromMs + step.startWithinMs
  return {
    wish: {
      backend,
      kind,
      types,
      count,
      durationMs,
      // A run started by hand may start at once.
      earliestStartAtMs: dates.opensAtMs > nowMs ? dates.opensAtMs : undefined,
      latestStartAtMs,
      regions,
      zones,
    },
    rule: {
      searchUntilAtMs: searchUntil(step, index, facts),
      // Without `ask_above`, every purchase that the rule allows is made without a person.
      unaskedMaxMicroUsd: step.unaskedMaxMicroUsd ?? upfront ?? spend ?? 0,
      upfrontMaxMicroUsd: upfront,
      machineHourMaxMicroUsd: step.machineHourMaxMicroUsd,
      spendMaxMicroUsd: spend,
      idleMaxMs: step.idleMaxMs,
      share: step.share,
      awaited: awaitedBy && { ...awaitedBy, fromMs, untilMs: latestStartAtMs + LATE_MS },
      ...(kind === 'prepaid' ? extensionRule(facts, upfront ?? 0) : {}),
    },
  }
}

/** Returns the rule for extensions. The run's budget pays for them from the amount that the purchase certainly leaves. */
function extensionRule(
  { extension, leftMicroUsd = Infinity }: CapacityFacts,
  upfrontMicroUsd: MicroUsd,
): Pick<PurchaseRule, 'extendMaxMicroUsd' | 'extendFor'> {
  if (extension === undefined) return {}
  const extendMaxMicroUsd = Math.min(extension.maxMicroUsd, leftMicroUsd - upfrontMicroUsd)
  return extendMaxMicroUsd > 0 ? { extendMaxMicroUsd, extendFor: extension.purpose } : {}
}

/**
 * Returns the end of a step's search. The first step has all the time until the fallbacks begin; they share the rest until the window, and
 * the last one searches as long as a start is possible.
 */
function searchUntil(step: ReservedStep, index: number, { plan, dates, nowMs }: CapacityFacts): number {
  const reserved = plan.steps.filter(({ kind }) => kind !== 'unreserved').length
  const position = plan.steps.slice(0, index).filter(({ kind }) => kind !== 'unreserved').length
  const opensAtMs = Math.max(dates.opensAtMs, nowMs)
  const isLast = position === reserved - 1
  const hasOthers = plan.steps.length > reserved
  const share =
    position === 0
      ? opensAtMs - plan.fallbackMs
      : opensAtMs - plan.fallbackMs + (plan.fallbackMs * position) / Math.max(1, reserved - 1)
  const endAtMs = isLast && !hasOthers ? opensAtMs + step.startWithinMs : Math.min(share, opensAtMs)
  return Math.round(Math.max(endAtMs, nowMs + SEARCH_MS_MIN))
}

function stepInWords(step: CapacityStep): string {
  if (step.kind === 'unreserved') {
    const where = step.backends.map(formatBackendChoice).join(', ')
    const deadline =
      step.deadlineMs === undefined ? '' : `, to be done within ${formatDuration(step.deadlineMs)}`
    return `no reservation, the job uses any offer on ${where}${deadline}`
  }
  const { kind, types, count, durationMs, regions, startWithinMs, upfrontMaxMicroUsd, spendMaxMicroUsd } =
    step
  const limit = upfrontMaxMicroUsd ?? spendMaxMicroUsd
  return [
    `looking for ${count} x ${types.join(' or ')} (${kind}) for ${formatDuration(durationMs)}`,
    regions === undefined ? 'in any Region' : `in ${regions.join(', ')}`,
    `that starts up to ${formatDuration(startWithinMs)} after the opening`,
    ...(limit === undefined ? [] : [`for at most ${formatUsd(limit)}`]),
  ].join(', ')
}
