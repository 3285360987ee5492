import type { PlanOutcome } from '../../core/activities'
import type { ArithmeticLine } from '../../core/arithmetic'
import { canonicalJson } from '../../core/market'
import { offerKey, rowKey } from '../../core/offer'
import { excerptOf, type BackendAnswer, type Placement, type Plan } from '../../core/job/plan'
import type { RecordedVerdict, RecordEntryOf } from '../../core/job/record'
import { formatDuration } from '../../core/time/time'
import { formatWhatIf, type WhatIf } from '../../core/job/what-if'
import type {
  ExplainedPlacement,
  PlanExplained,
  PlanInShort,
  ReplayVerdict,
  RowChange,
  VerdictExplained,
  WhatIfAnswer,
} from '../../core/job/why'
import { isShaky } from '../plan/avoidance'
import { decide } from '../policy/decide'
import { arithmeticOf } from '../forecast/arithmetic'
import { planFor } from '../policy/outcome'
import { replayPlan, replayVerdict } from './replay'
import { requestFor } from '../plan/request'
import { bestOfRows, switchPointsOf } from './switch-points'
import { changedQuestion, type Question } from './what-if'
import { planInputs, verdictInputs } from './why-inputs'

/** Largest number of alternatives; more are too many to compare. */
const ALTERNATIVES_MAX = 5

/** A recorded plan, and what its record does not hold itself. */
export interface RecordedQuestion {
  number: number
  entry: RecordEntryOf<'planned'> | RecordEntryOf<'waiting'>
  /** The offers that it was made from; missing if a document is gone. */
  answers?: BackendAnswer[] | undefined
  submittedAtMs: number
  /** Whether to search for switch points. */
  isSearched: boolean
}

type Recorded = Omit<RecordedQuestion, 'isSearched'>

/** Explains a plan from its record, as far as that goes. Pure. */
export function explainPlan(recorded: RecordedQuestion): PlanExplained {
  const { number, entry, answers } = recorded
  const { inputs, facts, plan: excerpt, outcome, rules } = entry.data
  const question = questionOf(recorded)
  const replayed = question && replayPlan(entry.data, question.facts.answers)
  // If the rules have changed, only the recorded figures are certain.
  const plan = replayed?.isSame === true ? replayed.plan : undefined
  const missing = missingOf(recorded, replayed?.isSame)
  const placements: readonly Placement[] = plan?.placements ?? excerpt?.placements ?? []
  const rows = bestOfRows({ placements })
  const [best] = rows
  return {
    kind: 'plan',
    number,
    seq: entry.seq,
    atMs: entry.atMs,
    attempt: entry.attempt ?? null,
    outcome: outcome.kind,
    text: outcomeInWords(outcome),
    inputs: planInputs(inputs ?? {}, { facts, answers }),
    replay: replayed === undefined ? 'impossible' : replayed.isSame ? 'same' : 'different',
    rules: rules ?? null,
    missing: missing.length === 0 ? [] : [...missing, 'The figures are those on record.'],
    // Without the plan, the order's words mix reasons and risks.
    reasons: best?.reasons ?? (outcome.kind === 'place' ? outcome.words.reasons : []),
    risks: best?.risks ?? [],
    chosen: best === undefined || outcome.kind !== 'place' ? null : inShort(best),
    alternatives: rows.slice(1, 1 + ALTERNATIVES_MAX).map(inShort),
    othersTotal: Math.max(0, rows.length - 1 - ALTERNATIVES_MAX),
    arithmetic: question && plan ? arithmeticOfFirst(question, plan) : [],
    switchPoints: question && plan && recorded.isSearched ? switchPointsOf(question, plan) : [],
    isSearched: plan !== undefined && recorded.isSearched,
    excluded: excerpt?.rejections ?? [],
    silentBackends: facts?.silentBackends ?? excerpt?.silentBackends ?? [],
  }
}

function questionOf({ entry, answers, submittedAtMs }: Recorded): Question | undefined {
  const { inputs, facts } = entry.data
  if (facts === undefined || answers === undefined || inputs?.resolved === undefined) return undefined
  return { input: inputs, facts: { ...facts, answers }, submittedAtMs }
}

function inShort({ reasons: _reasons, risks: _risks, ...placement }: Placement): ExplainedPlacement {
  return placement
}

/** The arithmetic of a plan's first place; empty without one. @internal Tests check that the arithmetic of every recorded plan adds up. */
export function arithmeticOfFirst(
  { input, facts }: Pick<Question, 'input' | 'facts'>,
  { placements: [best] }: Plan,
): ArithmeticLine[] {
  const capabilities = facts.answers.find(({ backend }) => backend === best?.offer.backend)?.capabilities
  if (best === undefined || capabilities === undefined) return []
  const request = requestFor(input, facts)
  return arithmeticOf(best.offer, capabilities, { request, isShaky: isShaky(best.offer, request.avoid) })
}

function outcomeInWords(outcome: PlanOutcome): string {
  switch (outcome.kind) {
    case 'place': {
      const { order, words } = outcome
      const others = order.offers.length - 1
      const more = others === 0 ? '' : `, or ${others} offer${others === 1 ? '' : 's'} like it`
      return `Attempt ${order.attempt} was ordered: ${words.summary}${more}.`
    }
    case 'wait':
      return `The job waited. ${outcome.reason}`
    case 'never':
      return outcome.failure.message
  }
}

function missingOf({ entry, answers }: Recorded, isSame: boolean | undefined): string[] {
  const { facts, plan, inputs, outcome } = entry.data
  if (facts === undefined && plan === undefined && outcome.kind === 'wait' && outcome.position !== undefined)
    return []
  if (facts === undefined || inputs?.resolved === undefined)
    return ['The record lacks the offers and the time of the plan, so it cannot be replayed.']
  if (answers === undefined) {
    const names = facts.market.map(({ backend, sha256 }) => `market/${backend}/${sha256.slice(0, 12)}`)
    return [
      `The offers of this plan are no longer in the store (${names.join(', ')}), so it cannot be replayed.`,
    ]
  }
  if (isSame === false)
    return ["Another version's rules made this plan; this version would plan differently."]
  return []
}

/** Explains what followed from the end of an attempt. Pure. */
export function explainVerdict(number: number, entry: RecordEntryOf<'decided'>): VerdictExplained {
  const { facts, verdict, rules } = entry.data
  const { decision } = verdict
  const isOnRecord = facts?.ledger !== undefined && facts.policy !== undefined
  const replay: ReplayVerdict = !isOnRecord
    ? 'impossible'
    : replayVerdict(entry.data).isSame
      ? 'same'
      : 'different'
  const pause =
    decision.kind === 'again' && decision.afterMs > 0 ? `, after ${formatDuration(decision.afterMs)}` : ''
  const what = decision.kind === 'again' ? `The job continues${pause}` : `The job ends as ${decision.state}`
  return {
    kind: 'after-attempt',
    number,
    seq: entry.seq,
    atMs: entry.atMs,
    attempt: entry.attempt ?? null,
    outcome: decision.kind,
    text: `${what} (${decision.reason}). ${decision.message}`,
    inputs: verdictInputs(facts ?? {}),
    replay,
    rules: rules ?? null,
    missing: MISSING_OF_VERDICT[replay],
    otherwise: replay === 'same' ? otherwise(entry.data) : [],
  }
}

const MISSING_OF_VERDICT: Readonly<Record<ReplayVerdict, string[]>> = {
  same: [],
  different: ["Another version's rules decided this; this version would decide differently."],
  impossible: ['The inputs of this decision are not on record, so it cannot be replayed.'],
}

/** The allowances that a job file sets. */
const ALLOWANCES = [
  { of: 'interruptionsMax', counter: 'interruptions', key: 'retries.interruptions' },
  { of: 'failuresMax', counter: 'failures', key: 'retries.failures' },
] as const

/** The allowance with which the job would have ended instead of continued, or the other way round. */
function otherwise({ facts, verdict }: RecordedVerdict): string[] {
  const { decision, ledger } = verdict
  return ALLOWANCES.flatMap(({ of, counter, key }) => {
    const used = ledger[counter]
    const most = decision.kind === 'again' ? used - 1 : used
    if (most < 0) return []
    const again = decide({ ...facts, policy: { ...facts.policy, [of]: most } })
    if (again.decision.kind === decision.kind) return []
    const words = decision.kind === 'again' ? 'ended here' : 'continued'
    return [`With ${key}: ${most} the job would have ${words}.`]
  })
}

/** Decides a recorded plan again from changed inputs, or says why it cannot. Pure. */
export function answerWhatIf(
  recorded: Recorded,
  changes: readonly WhatIf[],
): WhatIfAnswer | { problem: string; remedy: string } {
  const question = questionOf(recorded)
  const missing = missingOf(recorded, undefined)
  if (question === undefined)
    return {
      problem: missing[0] ?? 'The job waited for older jobs and made no plan.',
      remedy: 'Choose another decision with --decision.',
    }
  const changed = changedQuestion(question, changes)
  if ('problem' in changed) return changed
  const was = planFor(question.input, question.facts)
  const now = planFor(changed.question.input, changed.question.facts)
  const essence = ({ plan, outcome }: typeof was): string => canonicalJson([excerptOf(plan), outcome])
  return {
    decision: recorded.number,
    changes: changes.map(formatWhatIf),
    was: planInShort(was),
    now: planInShort(now),
    isUnchanged: essence(was) === essence(now),
    replay: replayPlan(recorded.entry.data, question.facts.answers)?.isSame === true ? 'same' : 'different',
    ruledOut: rowsOnlyIn(was.plan, now.plan),
    ruledIn: rowsOnlyIn(now.plan, was.plan),
  }
}

function planInShort({ plan, outcome }: { plan: Plan; outcome: PlanOutcome }): PlanInShort {
  const [best] = plan.placements
  const place = best === undefined ? null : inShort(best)
  const text = outcome.kind === 'place' ? outcome.words.summary : outcomeInWords(outcome)
  return { outcome: outcome.kind, text, place }
}

/** The rows of one plan that another one does not have, with its reason. */
function rowsOnlyIn(one: Plan, other: Plan): RowChange[] {
  const there = new Set(other.placements.map(({ offer }) => rowKey(offer)))
  const reasons = new Map(other.rejections.map(({ offerKey: key, reason }) => [key, reason]))
  return bestOfRows(one).flatMap(({ offer }) => {
    const row = rowKey(offer)
    return there.has(row) ? [] : [{ row, reason: reasons.get(offerKey(offer)) ?? 'left out' }]
  })
}
