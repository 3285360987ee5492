import type { DecideInput } from '../../core/activities'
import { affordableMs } from '../../core/money/budget'
import type { Failure } from '../../core/failure'
import type { JobReason } from '../../core/job/job'
import type { AttemptEnd, Avoidance, Decision, Ledger, Policy, Verdict } from '../../core/job/ledger'
import { formatUsd } from '../../core/money/money'
import { isReservedKey } from '../../core/offer'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import {
  AVOID_CAPACITY_MS,
  AVOID_ENDED_MS,
  AVOID_LEFT_MS,
  AVOID_QUOTA_MS,
  AVOID_UNREACHABLE_MS,
  avoidAll,
  SHAKY_MS,
} from '../plan/avoidance'

/** Unreachable machines in a row after which the network is at fault, and not the machine. */
const UNREACHABLE_MAX = 1
/** A remaining budget must last this long at the highest price to justify another machine, which needs minutes until it works. */
const WORTH_ANOTHER_MS = 10 * MINUTE_MS
/** Least share of its budget that a machine stopped by it has used: prices vary by less. */
const USED_LEAST_PART = 1 / 20
/** First pause before a retry after trouble; doubled each time in a row. */
const BACKOFF_FIRST_MS = 2 * SECOND_MS
const BACKOFF_MAX_MS = 5 * MINUTE_MS

type Facts = Pick<
  DecideInput,
  'end' | 'drainReason' | 'offerKeys' | 'machine' | 'ledger' | 'policy' | 'hasSaved' | 'budget'
>

/**
 * Decides what happens after an attempt. It is the whole recovery policy, as a pure function of the attempt's end, the owner's requests,
 * the job's history and its limits. docs/reference/failures.md has a line per class.
 */
export function decide(facts: Facts): Verdict {
  const ledger = { ...facts.ledger, attempts: facts.ledger.attempts + 1 }
  const { end } = facts
  if (end.kind !== 'failed' || end.isLaunched) ledger.misses = 0
  if (!isCounted(end)) ledger.unclassified = 0
  const isReached = end.kind !== 'failed' || (end.isLaunched && end.failure.class !== 'unreachable')
  if (isReached && ledger.unreachable !== undefined) ledger.unreachable = 0
  switch (end.kind) {
    case 'succeeded':
      return { ledger, decision: finish('succeeded', 'completed', 'The job is done.') }
    case 'stopped':
      return { ledger, decision: afterStop(end.by, facts, ledger) }
    case 'failed':
      return { ledger, decision: afterFailure(end, facts, ledger) }
  }
}

/**
 * A few of these in a row stop the job: unclassified failures, damaged documents, and failures that wasted a paid machine (such as a registry that
 * does not answer).
 */
function isCounted(end: AttemptEnd): boolean {
  if (end.kind !== 'failed') return false
  const { class: failureClass } = end.failure
  return (
    ['unclassified', 'damaged'].includes(failureClass) ||
    (end.failure.class === 'transient' && end.isLaunched)
  )
}

/** Ends a job that had to save and stop, unless its last attempt succeeded. */
function finishFor(reason: 'cancelled' | 'deadline' | 'budget'): Extract<Decision, { kind: 'finish' }> {
  switch (reason) {
    case 'cancelled':
      return finish('cancelled', 'cancelled', 'Cancelled by its owner.')
    case 'deadline':
      return finish(
        'failed',
        'deadline-reached',
        'The deadline passed before the job finished. Continue it as a new job from this one.',
      )
    case 'budget':
      return finish('failed', 'budget-reached', 'The budget was used up before the job finished.')
  }
}

function afterStop(
  by: Extract<AttemptEnd, { kind: 'stopped' }>['by'],
  facts: Facts,
  ledger: Ledger,
): Decision {
  const { drainReason } = facts
  if (drainReason !== null && drainReason !== 'migrated') return finishFor(drainReason)
  const left = avoidAll(concerned(facts), 'preference', AVOID_LEFT_MS)
  switch (by) {
    case 'cancelled':
    case 'deadline':
      return finishFor(by)
    case 'budget':
      return afterBudget(facts, ledger)
    case 'migrated':
      return again('migrating', 'Moving, as its owner requested.', { avoid: left })
    case 'superseded':
      return again(
        'attempt-ended-by-hand',
        'The attempt was terminated by hand, or somebody had taken its workflow id; the job resumes from its checkpoint.',
        {},
      )
    case 'expired':
      if (!concerned(facts).some(isReservedKey)) return afterRunLimit(facts, ledger)
      return again(
        'reservation-ended',
        'The reservation of its machine ended; the job resumes from its checkpoint.',
        {
          avoid: avoidAll(concerned(facts), 'capacity', AVOID_ENDED_MS),
        },
      )
    case 'lease':
      return again(
        'lease-lapsed',
        'The machine saved and stopped because its lease expired; the job resumes.',
        {},
      )
  }
}

/**
 * Decides after the provider's run limit, which counts against no offer. After a checkpoint it is a planned change of machines; without one
 * it counts as an interruption, because a job without progress must end some day.
 */
function afterRunLimit({ policy, hasSaved = false }: Facts, ledger: Ledger): Decision {
  const message = "Its machine reached the provider's limit on how long a machine runs."
  if (hasSaved) return again('run-limit-reached', `${message} The job saved and resumes at once.`, {})
  ledger.interruptions += 1
  if (ledger.interruptions > policy.interruptionsMax) return exhausted(message, policy)
  return again('run-limit-reached', `${message} The job resumes from its checkpoint.`, {})
}

/** The machine stops at the highest price it may have had: the unused rest is available for another. */
function afterBudget({ budget, policy, ledger: before }: Facts, ledger: Ledger): Decision {
  if (budget === undefined) return finishFor('budget')
  const { leftMicroUsd, priceMaxMicroUsdPerHour, costMicroUsd } = budget
  if (affordableMs(leftMicroUsd, priceMaxMicroUsdPerHour) < WORTH_ANOTHER_MS) return finishFor('budget')
  if (costMicroUsd !== undefined && costMicroUsd < (leftMicroUsd + costMicroUsd) * USED_LEAST_PART) {
    const message = `The machine stopped at ${formatUsd(costMicroUsd)} of its ${formatUsd(leftMicroUsd + costMicroUsd)} budget, which suggests clock skew. Run \`crucible doctor\`.`
    ledger.unclassified = before.unclassified + 1
    if (ledger.unclassified > policy.unclassifiedMax) return finish('failed', 'budget-reached', message)
    return again('budget-reached', message, { afterMs: backoff(ledger.unclassified) })
  }
  return again(
    'budget-reached',
    `The machine stopped before it could exceed the budget. ${formatUsd(leftMicroUsd)} are left, so the job continues.`,
    {},
  )
}

function afterFailure(
  { failure, isLaunched }: Extract<AttemptEnd, { kind: 'failed' }>,
  facts: Facts,
  ledger: Ledger,
): Decision {
  const { drainReason } = facts
  if (drainReason !== null && drainReason !== 'migrated') return finishFor(drainReason)
  if (!isLaunched) ledger.misses += 1
  const avoid = (why: Avoidance['why'], forMs: number): Avoidance[] =>
    avoidAll(isLaunched ? concerned(facts) : facts.offerKeys, why, forMs)
  switch (failure.class) {
    case 'throttled':
    case 'transient':
      if (isCounted(facts.end)) return afterVain(failure, facts.policy, ledger)
      return again('launch-refused', explain(failure), {
        afterMs: pauseAfter(failure, ledger.misses),
      })
    case 'capacity':
      return again('launch-refused', explain(failure), {
        avoid: avoid('capacity', failure.retryAfterMs ?? AVOID_CAPACITY_MS),
      })
    case 'quota':
      return again('launch-refused', explain(failure), { avoid: avoid('quota', AVOID_QUOTA_MS) })
    case 'unreachable': {
      ledger.unreachable = (ledger.unreachable ?? 0) + 1
      if (ledger.unreachable > UNREACHABLE_MAX) return finish('failed', 'unreachable', explain(failure))
      const place = facts.machine === undefined ? [] : [facts.machine.placeKey]
      return again('unreachable', explain(failure), {
        avoid: avoidAll(place, 'preference', AVOID_UNREACHABLE_MS),
      })
    }
    case 'interrupted':
      ledger.interruptions += 1
      if (ledger.interruptions > facts.policy.interruptionsMax)
        return exhausted(explain(failure), facts.policy)
      return again('interrupted', explain(failure), {
        avoid: avoidAll(concerned(facts), 'interruption', SHAKY_MS),
      })
    case 'workload':
      ledger.failures += 1
      if (ledger.failures > facts.policy.failuresMax)
        return finish('failed', 'workload-failed', explain(failure))
      return again('workload-failed', explain(failure), { afterMs: backoff(ledger.failures) })
    case 'damaged':
    case 'unclassified':
      ledger.unclassified += 1
      if (ledger.unclassified > facts.policy.unclassifiedMax)
        return finish('failed', failure.class, explain(failure))
      return again('machine-lost', explain(failure), { afterMs: backoff(ledger.unclassified) })
    case 'expired':
      return again('launch-refused', explain(failure), { avoid: avoid('capacity', AVOID_ENDED_MS) })
    case 'auth':
    case 'invalid':
      return finish('failed', failure.class, explain(failure))
  }
}

/** A machine was paid for, but something it needed was temporarily unavailable. */
function afterVain(failure: Failure, { unclassifiedMax }: Policy, ledger: Ledger): Decision {
  ledger.unclassified += 1
  if (ledger.unclassified > unclassifiedMax) return finish('failed', 'unreachable', explain(failure))
  return again('unreachable', explain(failure), { afterMs: pauseAfter(failure, ledger.unclassified) })
}

/** The offer of the machine; without a machine, the first one ordered. */
function concerned({ machine, offerKeys }: Facts): string[] {
  return machine === undefined ? offerKeys.slice(0, 1) : [machine.offerKey]
}

function exhausted(last: string, policy: Policy): Decision {
  const message = `Lost its machine more than ${policy.interruptionsMax} times (retries.interruptions). Last: ${last}`
  return finish('failed', 'interrupted', message)
}

function explain({ message, hint, code, class: failureClass }: Failure): string {
  const isToldAlready = code === undefined || code === failureClass || message.includes(code)
  const raw = isToldAlready ? '' : ` (${code})`
  if (hint === undefined) return message + raw
  // Providers often leave the period out.
  const end = raw === '' && /[\p{L}\p{N}'"]$/u.test(message) ? '.' : ''
  return `${message}${raw}${end} ${hint}`
}

function backoff(times: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.max(0, times - 1))
}

/** The wait that the other side requested, or longer after repeated failures. */
function pauseAfter({ retryAfterMs = 0 }: Failure, times: number): number {
  return Math.max(retryAfterMs, backoff(times))
}

function finish(
  state: 'succeeded' | 'failed' | 'cancelled',
  reason: JobReason,
  message: string,
): Extract<Decision, { kind: 'finish' }> {
  return { kind: 'finish', state, reason, message }
}

function again(
  reason: JobReason,
  message: string,
  rest: { afterMs?: number; avoid?: Avoidance[] },
): Decision {
  return { kind: 'again', reason, message, afterMs: rest.afterMs ?? 0, avoid: rest.avoid ?? [] }
}
