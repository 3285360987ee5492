import { Argument, Option, type Command } from 'commander'
import type * as registry from '../../../backends/registry'
import type * as clientSurvey from '../../../client/reservation/capacity-survey'
import type * as preflight from '../../../client/job/preflight'
import type * as clientViews from '../../../client/reservation/views'
import type * as clientReserve from '../../../client/reservation/reserve'
import type * as clientSchedules from '../../../client/retraining/planned-runs'
import { CrucibleError, toCrucibleError } from '../../../client/errors'
import { defined } from '../../../core/defined'
import { RESERVATION_KINDS, type CapacityRequest } from '../../../core/reservation/reservation'
import { SHARE_DEFAULT, SHARES } from '../../../core/reservation/hold'
import type { PurchaseRule } from '../../../core/reservation/reserving'
import { DAY_MS, formatInstant, HOUR_MS } from '../../../core/time/time'
import { countArgument, durationArgument, instantOf, moneyArgument, timeArgument } from '../../kit/arguments'
import type { Deadline } from '../../../intake/units'
import { checkOptions } from '../../kit/action-options'
import type { Cli } from '../../cli'
import { tellGaps } from '../../kit/gaps'
import { examples } from '../../examples'
import type * as calendars from '../../reservation/calendar'
import { surveysOf, tellUnseen, withFreshPlaces } from '../../reservation/surveys'
import type * as telling from '../../reservation/subcommands'
import type { Options } from '../../reservation/subcommands'
import type * as texts from '../../reservation/text'

const ACTIONS = [
  'list',
  'show',
  'offers',
  'reserve',
  'approve',
  'reject',
  'decide',
  'extend',
  'resize',
  'split',
  'release',
  'calendar',
] as const
type Action = (typeof ACTIONS)[number]

const WISH = ['offers', 'reserve'] as const

/** The actions that accept each option. */
const ACTIONS_OF: Readonly<Record<string, readonly Action[]>> = {
  backend: ['list', ...WISH, 'calendar'],
  kind: WISH,
  type: WISH,
  region: WISH,
  zone: WISH,
  from: [...WISH, 'resize'],
  startBy: WISH,
  endBy: WISH,
  maxPrice: WISH,
  unasked: WISH,
  extendMax: WISH,
  releaseIdle: WISH,
  for: [...WISH, 'extend'],
  maxUpfront: [...WISH, 'extend'],
  count: [...WISH, 'resize', 'split'],
  maxSpend: [...WISH, 'resize'],
  share: ['reserve', 'resize'],
  until: ['reserve', 'extend', 'resize'],
  notify: ['reserve'],
  purpose: ['reserve'],
  id: ['reserve', 'split'],
  note: ['reject'],
  bought: ['decide'],
  notBought: ['decide'],
  maxCharge: ['release'],
  weeks: ['calendar'],
  ical: ['calendar'],
}

const WEEKS = 13

const EXAMPLES = (): string =>
  examples(
    ['crucible reservations offers --type p5.48xlarge --for 4d', 'list capacity for sale'],
    ['crucible reservations reserve --type p5.48xlarge --for 4d --max-price 40', 'search, then ask'],
    ['crucible reservations approve res-3f', 'buy the offer that it found'],
    ['crucible reservations calendar --ical > capacity.ics', 'for a calendar program'],
  )

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Reserve capacity: see what is for sale, buy it once by a rule or with an approval, and see what is held and what it costs. ' +
        'Prepaid capacity has fixed dates and cannot be returned; hourly capacity is paid for, used or not, until it is released.',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(ACTIONS))
    .argument('[reservation]', 'id of a reservation, or the beginning of it')
    .option('--backend <backend>', 'the backend that sells it', 'ec2')
    .addOption(new Option('--kind <kind>', 'how it is paid').choices(RESERVATION_KINDS).default('prepaid'))
    .option('--type <types...>', 'machine types, the preferred one first')
    .option('--count <machines>', 'number of machines (default: 1)', countArgument(1_000))
    .option(
      '--for <duration>',
      'how long, such as 4d; machines in prepaid capacity are ended up to an hour before; with extend, what is added',
      durationArgument,
    )
    .option(
      '--from <time>',
      'earliest start (default: now); with resize, a later start of capacity that has not begun',
      timeArgument,
    )
    .option('--start-by <time>', 'latest start', timeArgument)
    .option('--end-by <time>', 'latest end', timeArgument)
    .option('--region <regions...>', 'Regions to search (default: all of the backend)')
    .option('--zone <zones...>', 'zones to search')
    .option('--max-upfront <usd>', 'the most that is paid in advance', moneyArgument)
    .option('--max-price <usd>', 'the most for an hour of one machine', moneyArgument)
    .option(
      '--unasked <usd>',
      'buy up to this price without an approval (default: always ask)',
      moneyArgument,
    )
    .option(
      '--max-spend <usd>',
      'hourly: release it before it has cost more; with resize, raise that',
      moneyArgument,
    )
    .option(
      '--extend-max <usd>',
      'prepaid: extend it for jobs that would not be done in time, if moving them costs more, for this much in all',
      moneyArgument,
    )
    .option('--release-idle <duration>', 'hourly: release it once unused for this long', durationArgument)
    .addOption(
      new Option(
        '--share <jobs>',
        'reserve, resize: jobs that may use idle places, in addition to those of its owner that name it (default: owner)',
      ).choices(SHARES),
    )
    .option(
      '--until <time>',
      'end of the search (default: the latest start, or eight weeks); with extend, the new end; with resize, that or never',
      (text: string) => (text === 'never' ? text : timeArgument(text)),
    )
    .option(
      '--notify <url>',
      'reserve: post events to this webhook: approval, payment, begin, idle time, release',
    )
    .option('--purpose <text>', 'purpose, shown in lists')
    .option('--id <id>', 'reserve, split: makes the command repeatable, such as res-ranker-2027-q1')
    .option('--note <text>', 'reject: why; it also ends a search')
    .option('--bought <reservation>', "decide: the provider's id of the purchase")
    .option('--not-bought', 'decide: it was certainly not bought')
    .option('--max-charge <usd>', 'release: accept remaining charges up to this amount', moneyArgument)
    .option('--weeks <weeks>', 'calendar: how many', countArgument(104), WEEKS)
    .option('--ical', 'calendar: print iCalendar')
    .option('--yes', 'approve, extend, resize, split, release: do not ask')
    .addHelpText('after', EXAMPLES())
    .action((action: Action, meant: string | undefined, options: Options) => {
      checkOptions(command, action, ACTIONS_OF)
      return run(cli, { action, meant, options })
    })
}

const viewing = (): typeof clientViews => require('../../../client/reservation/views') as typeof clientViews
const surveying = (): typeof clientSurvey =>
  require('../../../client/reservation/capacity-survey') as typeof clientSurvey

function checkBackend(backend: string): void {
  const { unknownBackends } = require('../../../client/job/preflight') as typeof preflight
  const { BACKENDS } = require('../../../backends/registry') as typeof registry
  const [problem] = unknownBackends([backend], Object.keys(BACKENDS))
  if (problem !== undefined) throw new CrucibleError('usage', problem)
}

interface Given {
  action: Action
  meant: string | undefined
  options: Options
}

async function run(cli: Cli, { action, meant, options }: Given): Promise<void> {
  checkBackend(options.backend)
  const { showOffers, showReservations } = require('../../reservation/text') as typeof texts
  switch (action) {
    case 'list': {
      const context = cli.context()
      const statuses = await viewing().listReservations(context)
      const surveys = await surveysOf(cli, options.backend)
      const reservations = withFreshPlaces(statuses, surveys)
      return showReservations(cli, { reservations, surveys, incomplete: tellGaps(cli, context.gaps) })
    }
    case 'offers':
      return showOffers(
        cli,
        await surveying().surveyCapacity(cli.context(), options.backend, {
          wish: wishOf(cli, options),
          rule: ruleOf(cli, options),
        }),
      )
    case 'reserve':
      return reserve(cli, options)
    case 'calendar':
      return calendar(cli, options)
    case 'show':
    case 'approve':
    case 'reject':
    case 'decide':
    case 'extend':
    case 'resize':
    case 'split':
    case 'release':
      if (meant === undefined)
        throw new CrucibleError('usage', `\`crucible reservations ${action}\` needs a reservation.`, {
          hint: 'See them with `crucible reservations list`.',
        })
      return (require('../../reservation/subcommands') as typeof telling).tell(cli, action, {
        meant,
        options,
      })
  }
}

/** Limits of the other kind would be ignored: a person relies on them. */
function checkKind({ kind, maxUpfront, extendMax, maxSpend, releaseIdle }: Options): void {
  const [flags, instead] =
    kind === 'prepaid'
      ? [{ '--max-spend': maxSpend, '--release-idle': releaseIdle }, '--max-upfront or --max-price']
      : [{ '--max-upfront': maxUpfront, '--extend-max': extendMax }, '--max-spend or --max-price']
  const [given] = Object.entries(flags).filter(([, value]) => value !== undefined)
  if (given === undefined) return
  const other = kind === 'prepaid' ? 'hourly' : 'prepaid'
  throw new CrucibleError('usage', `${given[0]} is for capacity that is ${other}, and this is ${kind}.`, {
    hint: `Leave it out, add --kind ${other}, or limit the cost with ${instead}.`,
  })
}

/**
 * Time before the end of prepaid capacity at which its machines may be ended. It is added to the requested duration, so that `--for 4d`
 * finds capacity that is sold as four days.
 */
const CUT_OFF_MS = HOUR_MS

function wishOf(cli: Cli, options: Options): CapacityRequest {
  const { backend, kind, type = [], count = 1, for: durationMs, from, startBy, endBy, region, zone } = options
  const at = (time: Deadline | undefined): number | undefined => time && instantOf(time, cli.now())
  if (type.length === 0)
    throw new CrucibleError('usage', 'Machine type missing.', {
      hint: 'Write, for example, --type p5.48xlarge --count 8.',
    })
  checkKind(options)
  if (kind === 'prepaid' && durationMs === undefined)
    throw new CrucibleError('usage', 'Prepaid capacity needs a duration.', {
      hint: 'Write, for example, --for 4d.',
    })
  const wish: CapacityRequest = {
    backend,
    kind,
    types: type,
    count,
    durationMs: durationMs && (kind === 'prepaid' ? Math.max(HOUR_MS, durationMs - CUT_OFF_MS) : durationMs),
    earliestStartAtMs: at(from),
    latestStartAtMs: at(startBy),
    latestEndAtMs: at(endBy),
    regions: region,
    zones: zone,
  }
  checkTimes(wish, cli.now())
  return wish
}

/** Refuses times between which nothing fits: the search would go on in vain. */
function checkTimes(
  { earliestStartAtMs, latestStartAtMs, latestEndAtMs, durationMs = 0 }: CapacityRequest,
  nowMs: number,
): void {
  const startAtMs = Math.max(nowMs, earliestStartAtMs ?? nowMs)
  const start = earliestStartAtMs === startAtMs ? '--from' : 'now'
  if (latestStartAtMs !== undefined && latestStartAtMs < startAtMs)
    throw new CrucibleError('usage', `--start-by ${formatInstant(latestStartAtMs)} is before ${start}.`, {
      hint: 'Write a later time.',
    })
  if (latestEndAtMs !== undefined && latestEndAtMs < startAtMs + durationMs)
    throw new CrucibleError(
      'usage',
      `--end-by ${formatInstant(latestEndAtMs)} leaves too little time after ${start}.`,
      { hint: `Write ${formatInstant(startAtMs + durationMs)} or later.` },
    )
}

function ruleOf(cli: Cli, options: Options): PurchaseRule {
  const { maxUpfront, maxPrice, unasked, maxSpend, releaseIdle, extendMax, until, share } = options
  const searchEnd = until === 'never' ? undefined : until
  return defined({
    upfrontMaxMicroUsd: maxUpfront,
    machineHourMaxMicroUsd: maxPrice,
    unaskedMaxMicroUsd: unasked,
    spendMaxMicroUsd: maxSpend,
    idleMaxMs: releaseIdle,
    share: share ?? SHARE_DEFAULT,
    extendMaxMicroUsd: extendMax,
    searchUntilAtMs: searchEnd && instantOf(searchEnd, cli.now()),
  })
}

/** Duration of a search without a given end. */
const SEARCH_MS = 56 * DAY_MS

async function reserve(cli: Cli, options: Options): Promise<void> {
  const client = require('../../../client/reservation/reserve') as typeof clientReserve
  if (options.until === 'never')
    throw new CrucibleError('usage', 'A search always ends; --until never is for resize.', {
      hint: 'Leave it out for eight weeks, or write a time such as --until 30d.',
    })
  // A wrong wish is refused before the server is asked for its time, from which durations count.
  wishOf(cli, options)
  await cli.presentTime()
  const wish = wishOf(cli, options)
  const rule = ruleOf(cli, options)
  if (wish.kind === 'hourly' && rule.spendMaxMicroUsd === undefined)
    throw new CrucibleError('usage', 'Hourly capacity costs money until it is released.', {
      hint: 'Set a limit, such as --max-spend 500: it is released before that.',
    })
  if (rule.searchUntilAtMs === undefined && wish.latestStartAtMs === undefined)
    rule.searchUntilAtMs = cli.now() + SEARCH_MS
  await checkWish(cli, wish, rule)
  const { purpose, id, notify: webhook } = options
  const reserved = await client.reserve(cli.context(), { wish, rule, purpose, id, webhook })
  cli.out.json({ ...reserved })
  const isOver = 'It has already ended, and ids are never reused'
  const what = reserved.isNew ? 'Looking for capacity' : reserved.isOver ? isOver : 'It already exists'
  cli.out.line(
    cli.asCalled(`${what}: ${reserved.id}. See it with \`crucible reservations show ${reserved.id}\`.`),
  )
}

/** Asks a worker before a search begins that nothing can satisfy. A worker that does not answer stops no search. */
async function checkWish(cli: Cli, wish: CapacityRequest, rule: PurchaseRule): Promise<void> {
  try {
    await surveying().surveyCapacity(cli.context(), wish.backend, { wish, rule })
  } catch (error) {
    const known = toCrucibleError(error)
    if (known.kind === 'usage') throw known
    cli.out.warn(cli.asCalled(`The search begins unchecked: ${known.message}`))
  }
}

async function calendar(cli: Cli, { backend, weeks, ical }: Options): Promise<void> {
  const { calendarLines, mondayOf, showCalendar, WEEK_MS } =
    require('../../reservation/calendar') as typeof calendars
  const context = cli.context()
  const known = await viewing().listReservations(context)
  const surveys = await surveysOf(cli, backend)
  const statuses = withFreshPlaces(known, surveys)
  const owned = surveys.flatMap((survey) => survey.owned)
  const fromMs = mondayOf(cli.now())
  const toMs = fromMs + weeks * WEEK_MS
  const { plannedRuns } = require('../../../client/retraining/planned-runs') as typeof clientSchedules
  const runs = await plannedRuns(context, toMs)
  const incomplete = tellGaps(cli, context.gaps)
  tellUnseen(cli, surveys)
  const lines = calendarLines({ statuses, owned, runs }, cli.now()).filter(
    ({ startsAtMs, endsAtMs }) => startsAtMs < toMs && (endsAtMs ?? Infinity) > fromMs,
  )
  showCalendar(cli, lines, { fromMs, weeks, isICal: ical === true, incomplete })
  const silent = known.filter(({ state }) => state === null).map(({ id }) => id)
  if (silent.length > 0) cli.saysUnknown(`Not known to be still wanted or held: ${silent.join(', ')}.`)
}
