import { findAccelerator } from '../../core/accelerators'
import type { PlanInput } from '../../core/activities'
import { CAPACITY_TYPES, formatBackendChoice, offerKey, type Offer } from '../../core/offer'
import type { BackendAnswer, PlanFacts } from '../../core/job/plan'
import type { MicroUsd } from '../../core/money/money'
import type { Adjustment, WhatIf } from '../../core/job/what-if'
import { covers } from '../plan/filter'

/** Everything that a recorded plan was made from. */
export interface Question {
  input: PlanInput
  facts: PlanFacts
  submittedAtMs: number
}

/** Returns the question with other inputs, or why a change does not apply to it, with the remedy. */
export function changedQuestion(
  question: Question,
  changes: readonly WhatIf[],
): { question: Question } | { problem: string; remedy: string } {
  let changed = question
  for (const change of changes) {
    const next = CHANGERS[change.key](changed, change as never)
    if ('problem' in next) return next
    changed = next
  }
  return { question: onlyNamed(changed, changes) }
}

interface Problem {
  problem: string
  remedy: string
}

type Changer<Key extends WhatIf['key']> = (
  question: Question,
  change: Extract<WhatIf, { key: Key }>,
) => Question | Problem

const CHANGERS: { [Key in WhatIf['key']]: Changer<Key> } = {
  price: (question, { of, adjustment }) =>
    ofOffers(question, { isMeant: selects(of), what: `price${of === null ? '' : `.${of}`}` }, (offer) =>
      priced(offer, Math.round(adjusted(offer.priceMicroUsdPerHour, adjustment))),
    ),
  speed: (question, { of, factor }) => {
    const name = findAccelerator(of)?.name ?? of
    const isMeant = ({ shape }: Offer): boolean => shape.accelerator === name
    return ofOffers(question, { isMeant, what: `speed.${of}` }, (offer) => {
      const { speedFactor: before = 1, ...shape } = offer.shape
      const speedFactor = before * factor
      return { ...offer, shape: speedFactor === 1 ? shape : { ...shape, speedFactor } }
    })
  },
  deadline: (question, { adjustment }) => {
    const { input, submittedAtMs } = question
    if (adjustment === null) return { ...question, input: withoutDeadline(input) }
    if (adjustment.by === 'after')
      return limited(question, { deadlineAtMs: submittedAtMs + adjustment.value })
    if (input.deadlineAtMs === undefined && adjustment.by !== 'set')
      return { problem: 'the job has no deadline to move', remedy: 'write a whole one: deadline=36h' }
    return limited(question, { deadlineAtMs: adjusted(input.deadlineAtMs ?? 0, adjustment) })
  },
  budget: (question, { adjustment }) => {
    const { budgetMicroUsd } = question.input
    if (adjustment === null) return { ...question, input: withoutBudget(question.input) }
    if (budgetMicroUsd === undefined && adjustment.by !== 'set')
      return { problem: 'the job has no budget to change', remedy: 'write a whole one: budget=50usd' }
    return limited(question, { budgetMicroUsd: Math.round(adjusted(budgetMicroUsd ?? 0, adjustment)) })
  },
  duration: (question, { adjustment }) => {
    const { durationMs } = question.input.resolved.spec
    if (durationMs === undefined && adjustment.by !== 'set')
      return { problem: 'the job states no duration', remedy: 'write a whole one: duration=10h' }
    const value = Math.round(adjusted(durationMs ?? 0, adjustment))
    return value > 0
      ? respecified(question, { durationMs: value })
      : { problem: 'no training time would be left', remedy: 'write a smaller change' }
  },
  backend: (question, { choice, isLeftOut }) => {
    const { answers } = question.facts
    if (!answers.some(({ offers }) => offers.some((offer) => covers(choice, offer))))
      return {
        problem: `the decision has no offer of ${formatBackendChoice(choice)}`,
        remedy: `its offers are those of ${answers.map(({ backend }) => backend).join(', ') || 'no backend'}`,
      }
    if (!isLeftOut) return question
    return answered(question, (offers) => offers.filter((offer) => !covers(choice, offer)))
  },
  optimize: (question, { objective }) => respecified(question, { optimize: objective }),
  interruptible: (question, { isInterruptible }) => respecified(question, { isInterruptible }),
}

/** Merges several named backends into one list. */
function onlyNamed(question: Question, changes: readonly WhatIf[]): Question {
  const backends = changes.flatMap((one) => (one.key === 'backend' && !one.isLeftOut ? [one.choice] : []))
  return backends.length === 0 ? question : respecified(question, { backends })
}

/** Offers by capacity type, backend, `backend:capacity type`, machine type, accelerator, or the first parts of their key. */
export function selects(of: string | null): (offer: Offer) => boolean {
  if (of === null) return () => true
  const accelerator = findAccelerator(of)?.name
  return (offer) => {
    const { backend, capacityType, type, shape } = offer
    const names = [backend, capacityType, type, `${backend}:${capacityType}`]
    return (
      names.includes(of) ||
      (accelerator !== undefined && shape.accelerator === accelerator) ||
      `${offerKey(offer)}/`.startsWith(`${of}/`)
    )
  }
}

function adjusted(value: number, { by, value: amount }: Pick<Adjustment, 'by' | 'value'>): number {
  if (by === 'set') return amount
  return by === 'add' ? value + amount : value * amount
}

/** A list price is that of the price before. */
function priced({ listPriceMicroUsdPerHour: _list, ...offer }: Offer, written: MicroUsd): Offer {
  const { priceMicroUsdPerHour: before, priceMaxMicroUsdPerHour: most, besideMicroUsdPerHour: rest } = offer
  const priceMicroUsdPerHour = Math.max(0, written)
  const mostNow = before === 0 ? most : most && Math.round((most / before) * priceMicroUsdPerHour)
  return {
    ...offer,
    priceMicroUsdPerHour,
    ...(mostNow !== undefined && { priceMaxMicroUsdPerHour: Math.max(priceMicroUsdPerHour, mostNow) }),
    ...(rest !== undefined && { besideMicroUsdPerHour: Math.min(rest, priceMicroUsdPerHour) }),
  }
}

function ofOffers(
  question: Question,
  { isMeant, what }: { isMeant: (offer: Offer) => boolean; what: string },
  change: (offer: Offer) => Offer,
): Question | Problem {
  const all = question.facts.answers.flatMap(({ offers }) => offers)
  if (!all.some(isMeant)) return { problem: `no offer of the decision matches ${what}`, remedy: namesOf(all) }
  return answered(question, (offers) => offers.map((offer) => (isMeant(offer) ? change(offer) : offer)))
}

const NAMES_MAX = 8

/** Lists the names that can be selected. */
function namesOf(offers: readonly Offer[]): string {
  const listed = (names: (string | undefined)[]): string => {
    const unique = [...new Set(names.filter((name) => name !== undefined))].sort()
    const more = unique.length > NAMES_MAX ? ` and ${unique.length - NAMES_MAX} more` : ''
    return `${unique.slice(0, NAMES_MAX).join(', ')}${more}`
  }
  const types = CAPACITY_TYPES.filter((type) => offers.some(({ capacityType }) => capacityType === type))
  const parts: [string, string][] = [
    ['capacity types', types.join(', ')],
    ['backends', listed(offers.map(({ backend }) => backend))],
    ['accelerators', listed(offers.map(({ shape }) => shape.accelerator))],
    ['machine types', listed(offers.map(({ type }) => type))],
  ]
  const words = parts.filter(([, names]) => names !== '').map(([what, names]) => `${what}: ${names}`)
  return words.length === 0 ? 'it has no offers' : `it has ${words.join('; ')}`
}

function answered(question: Question, change: (offers: Offer[]) => Offer[]): Question {
  const answers = question.facts.answers.map((answer): BackendAnswer => ({
    ...answer,
    offers: change(answer.offers),
  }))
  return { ...question, facts: { ...question.facts, answers } }
}

function respecified(question: Question, spec: Partial<PlanInput['resolved']['spec']>): Question {
  const { resolved } = question.input
  const input = { ...question.input, resolved: { ...resolved, spec: { ...resolved.spec, ...spec } } }
  return { ...question, input }
}

function limited(question: Question, limits: Pick<PlanInput, 'deadlineAtMs' | 'budgetMicroUsd'>): Question {
  return { ...question, input: { ...question.input, ...limits } }
}

function withoutDeadline({ deadlineAtMs: _deadline, ...input }: PlanInput): PlanInput {
  return input
}

function withoutBudget({ budgetMicroUsd: _budget, ...input }: PlanInput): PlanInput {
  return input
}
