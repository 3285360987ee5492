import { Option, type Command } from 'commander'
import {
  compareTypes,
  findRunFacts,
  parsePattern,
  searchTypes,
  validateRun,
  type Inquiry,
  type RunOption,
  type RunNeeds,
  type Validation,
} from '../../../backends/ec2/capacity'
import { usdInWords } from '../../../core/money/money'
import { CrucibleError } from '../../../client/errors'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import type { Row } from '../answer'
import { DAY_MS, formatDuration, HOUR_MS } from '../../../core/time/time'
import { addShared, dateArgument, daysArgument, listArgument, type SharedOptions } from '../options'
import { purchaseCommandOf, reserveCommandOf } from '../reservation-rows'
import { iso, minute } from '../rows'
import { endingOfNothing, unansweredRows, type Session } from '../session'
import { nothingFound } from './search'

interface Options extends SharedOptions {
  instanceTypes?: string[]
  count: number
  days: number
  start?: number
  startAfter?: number
  az?: string[]
}

const COUNT_MAX = 10_000
const COLUMNS = [
  'kind',
  'id',
  'region',
  'availability_zone',
  'available_capacity',
  'start_date',
  'usable_until',
  'expected_cost',
  'price_per_useful_hour',
  'short_hours',
  'ultra_cluster_placement',
  'efa_interfaces',
  'conditions',
  'obstacles',
  'is_usable',
  'command',
  'purchase_command',
]

const ONE_MACHINE_A_JOB =
  'A job of Crucible runs on one machine: this capacity can hold several jobs, or a program that you start yourself.'

export function define(command: Command, session: Session): void {
  command.description(
    'Check capacity before a training run: own Capacity Blocks and reservations with room for long enough, blocks for sale, quota, ' +
      'subnets, network and expected cost. The answer is yes (exit code 0), yes with conditions (9) or no (3).',
  )
  addShared(
    command
      .argument('[type]', 'instance type, instead of --instance-type')
      .option('--instance-type <type>', 'instance type, such as p5.48xlarge')
      .addOption(new Option('--instance-types <list>').argParser(listArgument).hideHelp())
      .option('--count <n>', 'machines', countArgument(COUNT_MAX), 1)
      .option('--days <n>', 'days of the run', daysArgument, 1)
      .option('--start <date>', 'start, such as 2027-01-15 (default: as soon as possible)', dateArgument)
      .addOption(new Option('--start-after <date>').argParser(dateArgument).hideHelp())
      .option('--az <list>', 'only these zones', listArgument),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle validate --instance-type p5.48xlarge --count 32 --days 7', 'as soon as possible'],
        [
          'truffle validate --instance-type p5.48xlarge --count 32 --days 7 --start 2027-01-15',
          'from a day on',
        ],
        [
          'truffle validate --instance-type trn1.32xlarge --count 4 --json && ./train.sh',
          'only if the answer is yes',
        ],
      ),
    )
    .action((type: string | undefined, options: Options & { instanceType?: string }) =>
      validate(session, typesOf(type, options), options),
    )
}

function typesOf(type: string | undefined, options: Options & { instanceType?: string }): string[] {
  return [
    ...(type === undefined ? [] : [type]),
    ...(options.instanceType === undefined ? [] : [options.instanceType]),
    ...(options.instanceTypes ?? []),
  ]
}

async function validate(session: Session, types: readonly string[], options: Options): Promise<void> {
  const wish = wishOf(types, options, session.now())
  const inquiry = session.inquiry(options)
  await refuseSeveral(inquiry, wish.type)
  const { answers, unanswered } = await findRunFacts(inquiry, wish)
  const facts = answers.map(({ value }) => value.facts)
  const validation = validateRun(wish, facts, inquiry.clock())
  const { verdict, options: found, rejected, missing } = validation
  const isKnown = facts.some(({ type }) => type !== undefined)
  if (!isKnown && found.length === 0 && rejected.length === 0 && unanswered.length === 0)
    throw await nothingFound(inquiry, [parsePattern(wish.type)], [])
  const next = nextCommand(wish, validation)
  const ending =
    verdict === 'yes'
      ? undefined
      : verdict === 'conditions'
        ? ('conditional' as const)
        : endingOfNothing({ unanswered })
  session.answer({
    command: 'validate',
    results: [
      ...found.map((one) => rowOf(one, wish, true)),
      ...rejected.map((one) => rowOf(one, wish, false)),
    ],
    columns: COLUMNS,
    more: {
      verdict,
      wanted: {
        instance_type: wish.type,
        count: wish.count,
        days: wish.days,
        start_date: iso(wish.startsAtMs),
      },
      quotas: quotaRows(facts),
      missing,
      next_command: next,
    },
    unanswered: unansweredRows(unanswered),
    notes: [
      ...answers.flatMap(({ value }) => value.notes),
      ...(wish.count > 1 ? [ONE_MACHINE_A_JOB] : []),
      ...(await inquiry.notes()),
    ],
    show: (out) => show(session, out, { wish, validation, next }),
    ending,
  })
}

/** A family or an accelerator can mean several types, and a run needs one. */
async function refuseSeveral(inquiry: Inquiry, type: string): Promise<void> {
  if (type.includes('.')) return
  const { answers } = await searchTypes(inquiry, { patterns: [parsePattern(type)] }, { hasZones: false })
  const names = [...new Set(answers.flatMap(({ value }) => value.map((one) => one.type.name)))].sort(
    compareTypes,
  )
  if (names.length === 0) return
  throw new CrucibleError('usage', `${type} can be several instance types.`, {
    hint: `Name one with --instance-type: ${names.join(', ')}.`,
  })
}

function wishOf(types: readonly string[], options: Options, nowMs: number): RunNeeds {
  const [type, ...others] = types
  if (type === undefined)
    throw new CrucibleError('usage', 'The instance type is missing.', {
      hint: 'Write: truffle validate --instance-type p5.48xlarge --count 32 --days 7',
    })
  if (others.length > 0 || /[*?,]/.test(type))
    throw new CrucibleError('usage', 'truffle validate checks one instance type at a time.')
  const startsAtMs = options.start ?? options.startAfter
  // A date alone is its midnight, which has passed for today.
  if (startsAtMs !== undefined && startsAtMs < nowMs - DAY_MS)
    throw new CrucibleError('usage', `${new Date(startsAtMs).toISOString().slice(0, 10)} has passed.`, {
      hint: 'Write a later date with --start, or leave it out for as soon as possible.',
    })
  return {
    type: type.toLowerCase().trim(),
    count: options.count,
    days: options.days,
    zones: options.az ?? [],
    startsAtMs: startsAtMs !== undefined && startsAtMs > nowMs ? startsAtMs : undefined,
  }
}

function quotaRows(facts: Parameters<typeof validateRun>[1]): Row[] {
  return facts.flatMap(({ region, quota, type }) =>
    quota === undefined || type === undefined
      ? []
      : [
          {
            region,
            quota_code: quota.code,
            limit_vcpus: quota.limit ?? null,
            used_vcpus: quota.used ?? null,
            vcpus_per_machine: type.cpus,
          },
        ],
  )
}

function rowOf(option: RunOption, wish: RunNeeds, isUsable: boolean): Row {
  return {
    kind: option.kind,
    id: option.id ?? null,
    region: option.region,
    availability_zone: option.zone,
    available_capacity: option.room ?? null,
    start_date: iso(option.startsAtMs),
    usable_until: iso(option.usableUntilMs),
    expected_cost: option.costUsd === undefined ? null : Math.round(option.costUsd * 100) / 100,
    price_per_useful_hour:
      option.usdPerUsefulHour === undefined ? null : Math.round(option.usdPerUsefulHour * 10_000) / 10_000,
    short_hours: Math.round((option.shortMs / HOUR_MS) * 100) / 100,
    ultra_cluster_placement: option.ultraCluster,
    efa_interfaces: option.efaInterfaces,
    conditions: option.conditions,
    obstacles: option.obstacles,
    is_usable: isUsable,
    command: commandOf(option, wish) ?? null,
    purchase_command: option.kind === 'offering' ? purchaseCommandOf(option.id!, option.region) : null,
  }
}

function commandOf(
  { kind, id, region, startsAtMs, costUsd = 0 }: RunOption,
  { type, count, days }: RunNeeds,
): string | undefined {
  if (kind === 'offering')
    return reserveCommandOf({ type, count, region, hours: days * 24, startsAtMs, usd: costUsd })
  if (kind === 'on-demand') return undefined
  return `crucible submit job.yaml --reservation ${id}`
}

/** Returns the next command. */
function nextCommand(wish: RunNeeds, { options: [best], verdict }: Validation): string {
  const { type, count, days } = wish
  if (verdict !== 'no' && best !== undefined) return commandOf(best, wish) ?? ''
  return `truffle capacity --blocks --offerings --instance-types ${type} --count ${Math.min(count, 64)} --days ${days}`
}

const TITLES = {
  yes: ['✅', 'Yes: the capacity is available.'],
  conditions: ['⚠️ ', 'Yes, with conditions.'],
  no: ['❌', 'No: no capacity fits.'],
} as const
const KINDS: Readonly<Record<RunOption['kind'], string>> = {
  'capacity-block': 'own Capacity Block',
  odcr: 'own reservation',
  offering: 'block for sale',
  'on-demand': 'on demand',
}
/** Ways that are shown; JSON has all. */
const SHOWN_MAX = 5

function show(
  session: Session,
  out: Output,
  { wish, validation, next }: { wish: RunNeeds; validation: Validation; next: string },
): void {
  const { verdict, options, rejected, missing } = validation
  const [emoji, title] = TITLES[verdict]
  out.line(session.title(emoji, title))
  const start = wish.startsAtMs === undefined ? 'as soon as possible' : `from ${minute(wish.startsAtMs)} UTC`
  out.line(`   ${wish.count}x ${wish.type} for ${wish.days} ${wish.days === 1 ? 'day' : 'days'}, ${start}`)
  for (const line of missing) out.line(`   ${line}`)
  for (const option of options.slice(0, SHOWN_MAX)) showOption(out, option)
  if (options.length > SHOWN_MAX) out.block(`\n   ${options.length - SHOWN_MAX} more; --json has all.`)
  for (const option of rejected) {
    const name = option.id === undefined ? KINDS[option.kind] : `${KINDS[option.kind]} ${option.id}`
    out.block(`\nNot usable: ${name} in ${option.zone}`)
    for (const obstacle of option.obstacles) out.line(`   ${obstacle}`)
  }
  out.block(`\nNext: ${next}`)
}

function showOption(out: Output, option: RunOption): void {
  const { kind, id, zone, room, startsAtMs, usableUntilMs, costUsd, shortMs } = option
  const { ultraCluster, efaInterfaces } = option
  out.line()
  out.line(out.paint.bold(`${KINDS[kind]} ${id ?? ''}`.trimEnd()))
  const until = usableUntilMs === undefined ? 'UTC, without end' : `until ${minute(usableUntilMs)} UTC`
  const fits = room === undefined ? 'room unknown until launch' : `room for ${room}`
  out.line(`   ${zone}, ${fits}, ${minute(startsAtMs)} ${until}`)
  out.line(
    `   network: ${ultraCluster ? 'UltraCluster' : 'no UltraCluster'}, ${efaInterfaces} EFA interfaces`,
  )
  out.line(`   expected cost: ${costInWords(kind, costUsd)}`)
  if (shortMs > 0) out.line(`   ends ${formatDuration(shortMs)} before the run is over`)
  for (const condition of option.conditions) out.line(`   condition: ${condition}`)
}

function costInWords(kind: RunOption['kind'], usd: number | undefined): string {
  if (kind === 'capacity-block') return 'nothing more; the block is paid for'
  if (usd === undefined) return 'unknown'
  const sum = usdInWords(usd)
  if (kind === 'odcr') return `${sum}, which the reservation also costs without the run`
  return kind === 'offering' ? `${sum}, at once` : sum
}
