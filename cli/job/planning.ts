import { EXIT_CODES } from '../../client/errors'
import { absentInWords } from '../../client/job/expect'
import * as clientPlan from '../../client/job/plan'
import type { PlanAnswer } from '../../client/job/plan'
import type { Submission } from '../../client/job/submit'
import { chanceInWords, confidenceOf } from '../../core/job/forecast'
import { MICRO_USD_PER_USD, type MicroUsd } from '../../core/money/money'
import { openReservationInWords, priceInWords, rowKey, type PriceSource } from '../../core/offer'
import { silentName, type PlacementInShort, type PlanReport } from '../../core/job/plan'
import { formatShape } from '../../core/resources'
import { ruledOutInWords, ruledOutSingly } from '../../core/job/ruled-out'
import { DAY_MS, formatDuration, formatInstant } from '../../core/time/time'
import type { Cli } from '../cli'
import type { Output } from '../kit/output'
import { age, NOTHING, usd } from '../kit/words'

/** The ranking for a job; the exit code also reports a plan without any place. */
export async function findPlan(cli: Cli, submission: Submission, explain?: string): Promise<PlanAnswer> {
  const found = await clientPlan.findPlan(cli.context(), submission, explain)
  if (found.whyHere !== undefined) cli.out.note(`${found.whyHere} ${PLANNED_HERE}`)
  for (const warning of absentInWords(found.plan, submission.spec)) cli.out.warn(cli.asCalled(warning))
  if (found.plan.placements.length === 0) cli.exitCode = EXIT_CODES.capacity
  return found
}

/** Everything that a plan shows next to its table, in sentences, for programs: where it was made, what is missing, and what is assumed. */
export function notesOf({ plan, whyHere }: PlanAnswer, submission: Submission, nowMs: number): string[] {
  return [
    ...(whyHere === undefined ? [] : [`${whyHere} ${PLANNED_HERE}`]),
    ...absentInWords(plan, submission.spec),
    ...(plan.placements.length === 0 && plan.named !== undefined ? [namedInWords(plan.named)] : []),
    ...(plan.placements.length === 0 ? [] : remarksOf(plan, nowMs)),
  ]
}

const remarksOf = (plan: PlanReport, nowMs: number): string[] => [
  ...assumptionsOf(plan),
  ...oldPricesOf(plan, nowMs),
  ...openReservationsOf(plan),
]

const PLANNED_HERE = 'Planned here, with the settings of this terminal.'

/** Columns of the further lines of a reason, after those before its first one. */
const REASON_INDENT = 2

/** Limit on rows; more are too many to compare. */
const ROWS_MAX = 10

/**
 * The ranking as a table, with the reasons for the first place and for the excluded ones, and what one change would gain. Places that sell the same type in the same way
 * share the row of the best one.
 */
export function showPlan(
  out: Output,
  plan: PlanReport,
  { nowMs, isAll = false }: { nowMs: number; isAll?: boolean },
): void {
  const { placements, others, rejections, silentBackends, relaxations } = plan
  const [best] = placements
  if (best === undefined) {
    const isNowhere = rejections.length === 0 && silentBackends.length === 0
    out.line(isNowhere ? 'No backend has an offer that fits this job.' : 'No offer fits this job now.')
    if (plan.named !== undefined) out.prose(namedInWords(plan.named))
  } else {
    const rows = rowsOf([...placements, ...others])
    const shown = isAll ? rows : rows.slice(0, ROWS_MAX)
    const limits = LIMITS.filter(({ of }) =>
      placements.some(({ forecast }) => forecast.chances[of] !== undefined),
    )
    const titles = limits.map(({ title }) => title)
    const costOf = plan.isDurationAssumed ? roundUsd : usd
    const hasGpu = shown.some((row) => row.best.offer.shape.gpus > 0)
    out.table(
      [...HEAD, ...titles],
      shown.map((row, index) => [
        ...rowOf(row, { rank: index + 1, nowMs, costOf }),
        ...limits.map(({ of }) => chanceOf(row.best, of)),
      ]),
      {
        right: ['#', 'COST/H', 'COST', '90 % RANGE', 'TIME', ...titles],
        flexible: 'MACHINE',
        optional: [
          'CONFIDENCE',
          'INTERRUPTIONS',
          'AVAILABLE',
          'PRICE SOURCE',
          'PLACE',
          // 80 columns keep the GPU, with which a machine begins; without GPUs they have room for all figures of cost and time.
          ...(hasGpu ? [] : ['MACHINE']),
          'COST/H',
          '90 % RANGE',
          '#',
          'TIME',
          'BACKEND',
          'CAPACITY',
        ],
      },
    )
    const left = rows.length - shown.length
    if (left > 0) out.line(out.paint.dim(`And ${left} more; --all shows them, --json every place.`))
    out.line()
    for (const [title, sentences] of [
      ['First because', best.reasons],
      ['Risks', best.risks],
    ] as const) {
      if (sentences.length > 0) out.line(title)
      for (const sentence of sentences) out.prose(`  ${sentence}`, REASON_INDENT)
    }
    for (const line of remarksOf(plan, nowMs)) out.prose(line)
  }
  if (relaxations.length > 0) out.line()
  for (const { sentence } of relaxations) out.prose(`${sentence}.`)
  const remarks = [
    ...(isAll ? ruledOutSingly : ruledOutInWords)(rejections),
    ...silentBackends.map((one) => `${silentName(one)} did not answer: ${one.reason}`),
  ]
  if (remarks.length > 0) out.line()
  for (const remark of remarks) out.prose(out.paint.dim(`Excluded: ${remark}`))
}

function namedInWords({ state, message = '' }: NonNullable<PlanReport['named']>): string {
  return {
    open: `The reservation that the job names has no places yet. ${message}`.trimEnd(),
    over: `The reservation that the job names is over. ${message}`.trimEnd(),
    unknown:
      'The reservation that the job names is unknown, here and at the backends: `crucible reservations list` shows those that exist.',
  }[state]
}

const HEAD = [
  '#',
  'BACKEND',
  'CAPACITY',
  'TYPE',
  'PLACE',
  'MACHINE',
  'COST/H',
  'PRICE SOURCE',
  'AVAILABLE',
  'INTERRUPTIONS',
  'CONFIDENCE',
  'COST',
  '90 % RANGE',
  'TIME',
]

/** Columns of a job with such a limit: the chance to keep it. */
const LIMITS = [
  { of: 'deadline', title: 'IN TIME' },
  { of: 'budget', title: 'IN BUDGET' },
] as const

function chanceOf({ forecast }: PlacementInShort, of: keyof PlacementInShort['forecast']['chances']): string {
  const chance = forecast.chances[of]
  return chance === undefined ? NOTHING : chanceInWords(chance)
}

/** The best placement of a type, and how many other places sell it in the same way. */
interface Row {
  best: PlacementInShort
  others: number
}

function rowsOf(placements: readonly PlacementInShort[]): Row[] {
  const rows = new Map<string, Row>()
  for (const placement of placements) {
    const key = rowKey(placement.offer)
    const row = rows.get(key)
    if (row === undefined) rows.set(key, { best: placement, others: 0 })
    else row.others += 1
  }
  return [...rows.values()]
}

/** Describes assumptions behind a plan's figures that the job does not state. */
function assumptionsOf({ isDurationAssumed, assumedAccelerator, leftShare }: PlanReport): string[] {
  const on = assumedAccelerator === undefined ? '' : ` on the ${assumedAccelerator}`
  const lines: string[] = []
  if (isDurationAssumed)
    lines.push(
      `Cost and time assume one hour of training${on}; --duration narrows the range, and so do the first steps on a machine.`,
    )
  else if (assumedAccelerator !== undefined)
    lines.push(
      `The duration is assumed to mean training${on}; name another GPU type as in --duration "10h on L4".`,
    )
  if (leftShare !== undefined && leftShare < 1)
    lines.push(`Cost and time are for the ${Math.round(leftShare * 100)} % of the work that is left.`)
  return lines
}

/** One sentence for each backend with prices that were not read from its provider. */
function oldPricesOf({ placements, others }: PlanReport, nowMs: number): string[] {
  const words = [...placements, ...others].flatMap(({ offer: { backend, priceSource } }) => {
    const { kind, observedAtMs, standIn } = priceSource
    if (kind !== 'static' || (standIn === undefined && nowMs - observedAtMs < DAY_MS)) return []
    const from = standIn === undefined ? '' : ` of ${standIn}`
    return `Prices of ${backend} have not been read live: they are those${from} of ${formatInstant(observedAtMs).slice(0, 10)}. Plan again in a minute; crucible doctor shows why they cannot be read.`
  })
  return [...new Set(words)]
}

/** Returns one sentence for each open reservation that placements use or leave alone: the provider also fills it on its own. */
function openReservationsOf({ placements }: PlanReport): string[] {
  const words = placements.flatMap(({ offer }) => openReservationInWords(offer) ?? [])
  return [...new Set(words)].map((each) => `${each.charAt(0).toUpperCase()}${each.slice(1)}.`)
}

function rowOf(
  { best: { offer, costMicroUsd, durationMs, forecast, isLate }, others }: Row,
  { rank, nowMs, costOf }: { rank: number; nowMs: number; costOf: (microUsd: MicroUsd) => string },
): string[] {
  const { backend, capacityType, type, place, shape, priceSource } = offer
  return [
    String(rank),
    backend,
    capacityType,
    type,
    others === 0 ? place : `${place} +${others}`,
    formatShape(shape),
    // The heading says that the price is per hour.
    priceInWords(offer).replace(/\/h$/, ''),
    priceFrom(priceSource, nowMs),
    offer.availability === 'available' ? 'yes' : offer.availability,
    forecast.interruptions < 0.01 ? 'none' : String(Number(forecast.interruptions.toPrecision(2))),
    confidenceOf(forecast),
    costOf(costMicroUsd),
    `${costOf(forecast.cost.lowMicroUsd)}..${costOf(forecast.cost.highMicroUsd)}`,
    `${formatDuration(durationMs)}${isLate === true ? ', late' : ''}`,
  ]
}

/** A cost for an assumed duration, whose cents would say more than is known. */
function roundUsd(microUsd: MicroUsd): string {
  if (microUsd === 0) return '$0'
  return microUsd < MICRO_USD_PER_USD ? '<$1' : `$${Math.round(microUsd / MICRO_USD_PER_USD)}`
}

/** Source and age of a price: `live, 5s`; a built-in price table is part of this version and has no age. */
function priceFrom({ kind, observedAtMs, standIn }: PriceSource, nowMs: number): string {
  if (kind === 'configured') return 'setting'
  const from = standIn === undefined ? '' : ` of ${standIn}`
  return `${kind === 'live' ? 'live' : 'table'}${from}, ${age(observedAtMs, nowMs)}`
}
