import { offerKey, rowKey, type Offer } from '../../core/offer'
import type { Placement, Plan } from '../../core/job/plan'
import { formatWhatIf, type WhatIf } from '../../core/job/what-if'
import type { SwitchPoint } from '../../core/job/why'
import { nameOf, seriesFor, type Series } from './input-series'
import { makePlan } from '../plan/plan'
import { requestFor } from '../plan/request'
import { changedQuestion, type Question } from './what-if'

/** Returns, for each input that may change the first place of a plan, the smallest change that does, found by planning again. */
export function switchPointsOf(question: Question, plan: Plan): SwitchPoint[] {
  const small = reduced(question, plan)
  const rows = bestOfRows(plan)
  return seriesFor(question, rows).flatMap(
    (one) => switchOf(one, { small, question, present: rows[0] && rowKey(rows[0].offer) }) ?? [],
  )
}

/** The best placement of each row, in order. */
export function bestOfRows<P extends Pick<Placement, 'offer'>>({
  placements,
}: {
  placements: readonly P[]
}): P[] {
  const rows = new Map<string, P>()
  for (const one of placements) if (!rows.has(rowKey(one.offer))) rows.set(rowKey(one.offer), one)
  return [...rows.values()]
}

/** Returns the row of the first place, if a place exists. */
function firstOf(question: Question, change: WhatIf): string | undefined {
  const changed = changedQuestion(question, [change])
  if ('problem' in changed) return undefined
  const { input, facts } = changed.question
  const [best] = makePlan(requestFor(input, facts)).placements
  return best && rowKey(best.offer)
}

function switchOf(
  { at, probes, wanted, text }: Series,
  { small, question, present }: { small: Question; question: Question; present: string | undefined },
): SwitchPoint | undefined {
  const isSwitched = (first: string | undefined): first is string =>
    first !== undefined && (wanted === undefined ? first !== present : first === wanted)
  let below = 0
  let above: number | undefined
  for (const probe of probes) {
    if (isSwitched(firstOf(small, at(probe)))) {
      above = probe
      break
    }
    below = probe
  }
  if (above === undefined) return undefined
  while (above - below > 1) {
    const middle = Math.floor((above + below) / 2)
    if (isSwitched(firstOf(small, at(middle)))) above = middle
    else below = middle
  }
  // The check includes all offers, because another one may come in between.
  const first = firstOf(question, at(above))
  if (!isSwitched(first) || isSwitched(firstOf(question, at(below)))) return undefined
  return {
    whatIf: formatWhatIf(at(above)),
    staysAt: formatWhatIf(at(below)),
    first,
    text: text(above, nameOf(first)),
  }
}

/** Number of rows that are searched; the result is checked with all. */
const ROWS_SEARCHED = 12

/** The best offer of the first rows, and the cheapest one of each excluded row. */
function reduced(question: Question, plan: Plan): Question {
  const offers = new Map<string, Offer>()
  for (const answer of question.facts.answers) for (const one of answer.offers) offers.set(offerKey(one), one)
  const rows = bestOfRows(plan).slice(0, ROWS_SEARCHED)
  const cheapest = new Map<string, Offer>()
  for (const { offerKey: key } of plan.rejections) {
    const offer = offers.get(key)
    if (offer === undefined) continue
    const known = cheapest.get(rowKey(offer))
    if (known === undefined || offer.priceMicroUsdPerHour < known.priceMicroUsdPerHour)
      cheapest.set(rowKey(offer), offer)
  }
  const excluded = [...cheapest.values()]
    .sort((a, b) => a.priceMicroUsdPerHour - b.priceMicroUsdPerHour)
    .slice(0, ROWS_SEARCHED)
  const kept = new Set([...rows.map(({ offer }) => offer), ...excluded].map(offerKey))
  const answers = question.facts.answers.map((answer) => ({
    ...answer,
    offers: answer.offers.filter((offer) => kept.has(offerKey(offer))),
  }))
  return { ...question, facts: { ...question.facts, answers } }
}
