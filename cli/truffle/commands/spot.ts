import { Option, type Command } from 'commander'
import {
  advisorUrl,
  findSpot,
  parsePattern,
  readInterruptions,
  savingsPercentOf,
  SCORE_TYPES_MIN,
  SCORES_MAX,
  type Inquiry,
  type Interruptions,
  type SpotPool,
} from '../../../backends/ec2/capacity'
import { messageOf } from '../../../core/errors'
import { HOUR_MS } from '../../../core/time/time'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import { capacityScoresOf } from '../capacity-scores'
import { addShared, hoursArgument, listArgument, priceArgument, type SharedOptions } from '../options'
import { iso, usdPerHour } from '../rows'
import { endingOfNothing, unansweredRows, type Session } from '../session'
import { sparkline } from '../sparkline'
import { nothingFound } from './search'

interface Options extends SharedOptions {
  az?: string[]
  maxPrice?: number
  sortByPrice?: true
  showSavings?: true
  pickFirst?: true
  activeOnly?: true
  lookbackHours: number
  scores?: number
  interruptions: boolean
  localZones?: true
}

/** A week shows days and nights. */
const LOOKBACK_HOURS = 168
const MACHINES_MAX = 10_000

const COLUMNS = [
  'instance_type',
  'region',
  'availability_zone',
  'spot_price',
  'on_demand_price',
  'savings_percent',
  'interruption_frequency',
  'placement_score',
  'capacity_score',
  'timestamp',
  'product_type',
  'lowest_price',
  'highest_price',
]

export function define(command: Command, session: Session): void {
  command.description(
    'Show spot prices of every zone, with their course over a week and how often AWS has interrupted machines of the type in the last month.',
  )
  addShared(
    command
      .argument('<pattern...>', 'type, family, glob, regular expression or accelerator')
      .option('--max-price <usd>', 'only up to this price per hour', priceArgument)
      .option('--sort-by-price', 'cheapest first')
      .option('--show-savings', 'with the price on demand')
      .option('--pick-first', 'only the first result; with --sort-by-price the cheapest')
      .option('--active-only', 'only prices that have changed within the time of --lookback-hours')
      .option('--lookback-hours <hours>', `hours of the price course`, hoursArgument, LOOKBACK_HOURS)
      .option('--az <list>', 'only these zones', listArgument)
      .option(
        '--scores <count>',
        'placement scores for this many machines; AWS limits how many different questions it answers in a day',
        countArgument(MACHINES_MAX),
      )
      .option('--no-interruptions', 'do not read how often AWS interrupts')
      .addOption(new Option('--local-zones').hideHelp()),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle spot "m8g.*" --max-price 0.10 --sort-by-price', 'cheap ones first'],
        ['truffle spot g6.xlarge --show-savings', 'compared with on demand'],
        ['truffle spot g5 g6 --scores 8 --regions us-east-1,us-west-2', 'where eight are likely to start'],
        ['truffle spot H100 --pick-first --sort-by-price --json', 'the cheapest, for a script'],
      ),
    )
    .action((patterns: string[], options: Options) => spot(session, patterns, options))
}

async function spot(session: Session, given: string[], options: Options): Promise<void> {
  const inquiry = session.inquiry(options)
  const patterns = given.flatMap((text) => listArgument(text)).map(parsePattern)
  const lookbackMs = options.lookbackHours * HOUR_MS
  const endpoint = session.cli.environment.AWS_ENDPOINT_URL?.trim() || undefined
  const [{ answers, unanswered }, interruptions] = await Promise.all([
    findSpot(inquiry, { patterns, lookbackMs, hasSavings: options.showSavings === true }),
    options.interruptions ? readInterruptions(advisorUrl(endpoint), inquiry.signal) : undefined,
  ])
  const all = answers.flatMap(({ value }) => value.pools)
  if (all.length === 0 && unanswered.length === 0) throw await nothingFound(inquiry, patterns, all)
  const fitting = chosen(all, options, session.now() - lookbackMs)
  const scores = options.scores === undefined ? undefined : await scoresOf(inquiry, fitting, options.scores)
  const pools = options.pickFirst === true ? fitting.slice(0, 1) : fitting
  const facts = { interruptions, scores: scores?.of, capacityOf: scores?.capacityOf }
  session.answer({
    command: 'spot',
    results: pools.map((pool) => row(pool, facts)),
    columns: COLUMNS,
    unanswered: unansweredRows(unanswered),
    notes: [
      ...answers.flatMap(({ value }) => value.notes),
      ...(scores?.notes ?? []),
      ...(options.interruptions && interruptions === undefined
        ? ['The interruption frequencies could not be read: the Spot Instance Advisor did not answer.']
        : []),
      ...(await inquiry.notes()),
    ],
    show: (out) => show(out, pools, { ...facts, options }),
    ending: pools.length === 0 ? endingOfNothing({ unanswered }) : undefined,
  })
}

function chosen(pools: readonly SpotPool[], options: Options, sinceMs: number): SpotPool[] {
  const { az = [], maxPrice = Infinity, activeOnly, sortByPrice } = options
  return pools
    .filter(({ zone, usdPerHour: usd, changedAtMs }) => {
      const isRecent = activeOnly !== true || changedAtMs >= sinceMs
      return usd <= maxPrice && isRecent && (az.length === 0 || az.includes(zone))
    })
    .sort((a, b) => {
      const byPlace = a.type.name.localeCompare(b.type.name) || a.zone.localeCompare(b.zone)
      return sortByPrice === true ? a.usdPerHour - b.usdPerHour || byPlace : byPlace
    })
}

interface Scores {
  of: (pool: SpotPool) => number | undefined
  /** How well EC2 could serve the request in the pool's zone; missing if the account may not ask. */
  capacityOf?: (pool: SpotPool) => string | undefined
  notes: string[]
}

async function scoresOf(inquiry: Inquiry, pools: readonly SpotPool[], count: number): Promise<Scores> {
  if (pools.length === 0) return { of: () => undefined, notes: [] }
  const [placement, capacity] = await Promise.all([
    placementScoresOf(inquiry, pools, count),
    capacityScoresOf(inquiry, pools, { market: 'spot', count }),
  ])
  return { ...placement, ...capacity, notes: [...placement.notes, ...capacity.notes] }
}

/** Asks once for all Regions. A missing permission costs the scores, not the answer. */
async function placementScoresOf(
  inquiry: Inquiry,
  pools: readonly SpotPool[],
  count: number,
): Promise<Scores> {
  const types = [...new Set(pools.map(({ type }) => type.name))].sort()
  const regions = [...new Set(pools.map(({ region }) => region))].sort()
  try {
    const found = await inquiry
      .at(inquiry.homeRegion)
      .capacity.placementScores({ types, count, regions, byZone: false }, inquiry.signal)
    const byRegion = new Map(found.map(({ region, score }) => [region, score]))
    return {
      of: ({ region }) => byRegion.get(region),
      notes: [
        `Placement scores, 1 to 10, are for ${count} machines of any of the types in one Region, now; AWS scores the best ${SCORES_MAX}.`,
        ...(types.length < SCORE_TYPES_MIN
          ? [`With fewer than ${SCORE_TYPES_MIN} types, AWS gives low scores.`]
          : []),
      ],
    }
  } catch (error) {
    if (inquiry.signal.aborted) throw error
    const notes = [`No placement scores (ec2:GetSpotPlacementScores): ${messageOf(error)}`]
    return { of: () => undefined, notes }
  }
}

interface Facts {
  interruptions: Interruptions | undefined
  scores: Scores['of'] | undefined
  capacityOf: Scores['capacityOf'] | undefined
}

function row(
  pool: SpotPool,
  { interruptions, scores, capacityOf }: Facts,
): Record<string, string | number | null | number[]> {
  const { type, region, zone, usdPerHour: usd, changedAtMs, history, onDemandUsdPerHour } = pool
  return {
    instance_type: type.name,
    region,
    availability_zone: zone,
    spot_price: usd,
    on_demand_price: onDemandUsdPerHour ?? null,
    savings_percent: savingsPercentOf(pool) ?? null,
    interruption_frequency: interruptions?.of({ region, type: type.name }) ?? null,
    placement_score: scores?.(pool) ?? null,
    capacity_score: capacityOf?.(pool) ?? null,
    timestamp: iso(changedAtMs),
    product_type: 'Linux/UNIX',
    lowest_price: Math.min(...history),
    highest_price: Math.max(...history),
    price_history: history,
  }
}

function show(
  out: Output,
  pools: readonly SpotPool[],
  { interruptions, scores, capacityOf, options }: Facts & { options: Options },
): void {
  if (pools.length === 0) return out.line('No spot price fits.')
  const hasSavings = options.showSavings === true
  const head = [
    'Instance Type',
    'Region',
    'AZ',
    'Spot Price',
    ...(hasSavings ? ['On-Demand', 'Savings'] : []),
    `Last ${options.lookbackHours} h`,
    ...(interruptions === undefined ? [] : ['Interrupted']),
    ...(scores === undefined ? [] : ['Score']),
    ...(capacityOf === undefined ? [] : ['Capacity']),
  ]
  out.table(
    head,
    pools.map((pool) => {
      const savings = savingsPercentOf(pool)
      return [
        pool.type.name,
        pool.region,
        pool.zone,
        usdPerHour(pool.usdPerHour),
        ...(hasSavings
          ? [usdPerHour(pool.onDemandUsdPerHour), savings === undefined ? '-' : `${savings}%`]
          : []),
        sparkline(pool.history),
        ...(interruptions === undefined
          ? []
          : [interruptions.of({ region: pool.region, type: pool.type.name }) ?? '-']),
        ...(scores === undefined ? [] : [String(scores(pool) ?? '-')]),
        ...(capacityOf === undefined ? [] : [capacityOf(pool) ?? '-']),
      ]
    }),
    { right: ['Spot Price', 'On-Demand', 'Savings', 'Score'], optional: ['Region'] },
  )
}
