import type { ArithmeticLine, OfferExplained } from '../../core/arithmetic'
import { chanceInWords } from '../../core/job/forecast'
import { priceInWords } from '../../core/offer'
import { silentName } from '../../core/job/plan'
import { ruledOutInWords } from '../../core/job/ruled-out'
import { formatDuration, formatInstant } from '../../core/time/time'
import type {
  DecisionExplained,
  ExplainedPlacement,
  JobExplained,
  PlanExplained,
  PlanInShort,
  WhatIfAnswer,
} from '../../core/job/why'
import type { Output } from '../kit/output'
import { NOTHING, plural, usd } from '../kit/words'

/** Prints every decision for a person. */
export function showDecisions(out: Output, { id, name, decisions, ended }: JobExplained): void {
  const { paint } = out
  const count = decisions.length === 0 ? 'no decision yet' : plural(decisions.length, 'decision')
  out.line(`${paint.bold(name)}  ${id}  ${count}`)
  for (const decision of decisions) {
    out.line()
    showDecision(out, decision)
  }
  if (ended === null) return
  out.line()
  out.line(`Ended: ${ended}.`)
}

function showDecision(out: Output, decision: DecisionExplained): void {
  const { number, atMs, attempt, text, kind } = decision
  const about =
    attempt === null ? '' : kind === 'plan' ? `, for attempt ${attempt}` : `, after attempt ${attempt}`
  out.line(out.paint.bold(`${number}. ${formatInstant(atMs)}${about}`))
  out.prose(`   ${text}`)
  for (const missing of decision.missing) out.prose(`   ${out.paint.yellow(missing)}`)
  list(
    out,
    'Made from',
    decision.inputs.map(({ name, text: value }) => `${name.padEnd(10)}  ${value}`),
  )
  if (decision.kind === 'plan') showPlanned(out, decision)
  else list(out, 'What would have changed it', decision.otherwise)
  if (decision.replay === 'same')
    out.line(`   ${out.paint.dim('A replay from its record gives the same result.')}`)
}

function showPlanned(out: Output, plan: PlanExplained): void {
  const { reasons, risks, chosen, alternatives, othersTotal, arithmetic, switchPoints } = plan
  list(out, 'Chosen because', reasons)
  list(out, 'Risks', risks)
  const places = [...(chosen === null ? [] : [chosen]), ...alternatives]
  if (places.length > 0) {
    out.line('   Places, best first')
    showPlaces(out, places)
    if (othersTotal > 0) out.line(`   ${out.paint.dim(`And ${othersTotal} more.`)}`)
  }
  if (arithmetic.length > 0) {
    out.line('   Arithmetic of the first place')
    showArithmetic(out, arithmetic)
  }
  list(out, 'What would have changed it', [...switchPoints.map(({ text }) => text), ...searchHint(plan)])
  const silent = plan.silentBackends.map((one) => `${silentName(one)} did not answer: ${one.reason}`)
  list(out, 'Excluded', [...ruledOutInWords(plan.excluded), ...silent])
}

/** Explains that only the newest plans of a long job are searched. */
function searchHint({ number, replay, isSearched }: PlanExplained): string[] {
  return replay === 'same' && !isSearched ? [`--decision ${number} searches for it`] : []
}

function list(out: Output, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  out.line(`   ${title}`)
  for (const line of lines) out.prose(`     ${line}`, 2)
}

function showPlaces(out: Output, places: readonly ExplainedPlacement[]): void {
  const columns = COLUMNS.filter(({ of }) => places.some((place) => of(place) !== NOTHING))
  out.table(
    ['  ', ...columns.map(({ title }) => title)],
    places.map((place) => ['  ', ...columns.map(({ of }) => of(place))]),
    {
      right: columns.filter(({ isRight }) => isRight).map(({ title }) => title),
      optional: ['90 % RANGE', 'PLACE'],
    },
  )
}

const COLUMNS: readonly { title: string; isRight?: true; of: (place: ExplainedPlacement) => string }[] = [
  { title: 'BACKEND', of: ({ offer }) => offer.backend },
  { title: 'CAPACITY', of: ({ offer }) => offer.capacityType },
  { title: 'TYPE', of: ({ offer }) => offer.type },
  { title: 'PLACE', of: ({ offer }) => offer.place || NOTHING },
  { title: 'COST/H', isRight: true, of: ({ offer }) => priceInWords(offer).replace(/\/h$/, '') },
  { title: 'COST', isRight: true, of: ({ costMicroUsd }) => usd(costMicroUsd) },
  { title: '90 % RANGE', isRight: true, of: ({ forecast }) => costRange(forecast) },
  {
    title: 'TIME',
    isRight: true,
    of: ({ durationMs, isLate }) => `${formatDuration(durationMs)}${isLate === true ? ', late' : ''}`,
  },
  { title: 'IN TIME', isRight: true, of: ({ forecast }) => chance(forecast?.chances.deadline) },
  { title: 'IN BUDGET', isRight: true, of: ({ forecast }) => chance(forecast?.chances.budget) },
]

function costRange(forecast: ExplainedPlacement['forecast'] | undefined): string {
  return forecast === undefined
    ? NOTHING
    : `${usd(forecast.cost.lowMicroUsd)}..${usd(forecast.cost.highMicroUsd)}`
}

function timeRange(forecast: ExplainedPlacement['forecast'] | undefined): string {
  return forecast === undefined
    ? NOTHING
    : `${formatDuration(forecast.finish.lowMs)}..${formatDuration(forecast.finish.highMs)}`
}

function chance(value: number | undefined): string {
  return value === undefined ? NOTHING : chanceInWords(value)
}

/** The parts of a forecast with their sum. */
function showArithmetic(out: Output, lines: readonly ArithmeticLine[]): void {
  const sum = (of: (line: ArithmeticLine) => number): number =>
    lines.reduce((total, line) => total + of(line), 0)
  out.table(
    ['  ', 'PART', 'TIME', 'COST', 'RANGE', 'FROM'],
    [
      ...lines.map((line) => [
        '  ',
        line.words,
        signedTime(line.addedMs),
        cents(line.addedMicroUsd),
        rangeOf(line),
        line.source,
      ]),
      [
        '  ',
        'in total',
        signedTime(sum(({ addedMs }) => addedMs)),
        usd(sum(({ addedMicroUsd }) => addedMicroUsd)),
        '',
        '',
      ],
    ],
    { right: ['TIME', 'COST', 'RANGE'], wrapped: 'FROM', flexible: 'FROM', optional: ['RANGE'] },
  )
}

/** Formats an amount in cents: most parts are small, and their sum is exact to the cent. */
function cents(amount: number): string {
  return amount > 0 && amount < CENT ? '< $0.01' : usd(amount)
}

const CENT = 10_000

function signedTime(ms: number): string {
  return ms < 0 ? `-${formatDuration(-ms)}` : formatDuration(ms)
}

function rangeOf({ lowMs, highMs }: ArithmeticLine): string {
  return lowMs === null || highMs === null ? '' : `${formatDuration(lowMs)}..${formatDuration(highMs)}`
}

/** Prints one offer of a plan with its arithmetic, or the reason of its exclusion. */
export function showOffer(out: Output, explained: OfferExplained): void {
  const { offerKey, rank, rowsTotal, costMicroUsd, durationMs, excludedBecause } = explained
  const name = offerKey.replace(/\/$/, '')
  if (excludedBecause !== null || costMicroUsd === null || durationMs === null) {
    out.prose(`${out.paint.bold(name)} is excluded: ${excludedBecause ?? 'no reason is known'}`)
    return
  }
  out.line(
    `${out.paint.bold(name)}: about ${usd(costMicroUsd)} in ${formatDuration(durationMs)}, rank ${rank} of ${rowsTotal}`,
  )
  showArithmetic(out, explained.arithmetic)
  list(out, 'For it', explained.reasons)
  list(out, 'Risks', explained.risks)
}

/** Prints the plan with other inputs. */
export function showWhatIf(out: Output, answer: WhatIfAnswer): void {
  const { decision, changes, was, now, isUnchanged, replay, ruledOut, ruledIn } = answer
  out.line(`Decision ${decision} with ${changes.join(', ')}`)
  if (replay === 'different')
    out.line(
      out.paint.yellow(
        'This plan was made by the rules of another version; "was" shows what the current rules decide.',
      ),
    )
  out.line()
  if (isUnchanged) {
    out.line('Nothing changes: the same place, at the same cost, in the same time.')
    if (replay === 'same') out.line(out.paint.dim('A replay from its record gives the same result.'))
    return
  }
  out.table(
    ['', 'WAS', 'NOW'],
    FACTS.map(({ title, of }) => [title, of(was), of(now)]).filter(
      ([, a, b]) => a !== NOTHING || b !== NOTHING,
    ),
  )
  if (was.outcome === 'place' && now.outcome === 'place' && was.text === now.text)
    out.block('\nThe place stays the same.')
  list(out, 'Ruled out now', ruledOut.map(rowInWords))
  list(out, 'Possible now', ruledIn.map(rowInWords))
}

const FACTS: readonly { title: string; of: (plan: PlanInShort) => string }[] = [
  { title: 'place', of: ({ text }) => text },
  { title: 'cost', of: ({ place }) => usd(place?.costMicroUsd ?? null) },
  { title: '90 % range', of: ({ place }) => costRange(place?.forecast) },
  { title: 'time', of: ({ place }) => (place === null ? NOTHING : formatDuration(place.durationMs)) },
  { title: '90 % range', of: ({ place }) => timeRange(place?.forecast) },
  { title: 'in time', of: ({ place }) => chance(place?.forecast.chances.deadline) },
  { title: 'in budget', of: ({ place }) => chance(place?.forecast.chances.budget) },
]

function rowInWords({ row, reason }: WhatIfAnswer['ruledOut'][number]): string {
  return `${row.replaceAll('/', ' ')}: ${reason}`
}
