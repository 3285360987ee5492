import type { Command } from 'commander'
import {
  acceleratorsOf,
  compareTypes,
  parsePattern,
  pricesOfTypes,
  searchTypes,
  type RegionalType,
} from '../../../backends/ec2/capacity'
import { ACCELERATORS } from '../../../core/accelerators'
import { SPEED_REFERENCE, speedOf } from '../../../core/speed'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import { addShared, listArgument, regionsOf, type SharedOptions } from '../options'
import { gib, shapeRow, usdPerHour } from '../rows'
import { nothingFound } from './search'
import { unansweredRows, type Session } from '../session'

interface Options extends SharedOptions {
  accelerators?: true
  types?: true
}

const ACCELERATOR_COLUMNS = [
  'accelerator',
  'memory_gb',
  'relative_speed',
  'speed_low',
  'speed_high',
  'speed_basis',
]
const FAMILY_COLUMNS = [
  'family',
  'instance_type',
  'region',
  'gpus',
  'gpu_model',
  'gpu_memory_mib',
  'vcpus',
  'memory_mib',
  'architecture',
  'network_performance',
  'efa_interfaces',
  'relative_speed',
  'on_demand_price',
]

export function define(command: Command, session: Session): void {
  command.description(
    'List the instance families of a Region that have GPUs or other accelerators: memory, network, and speed in training relative to an ' +
      `${SPEED_REFERENCE}. With --accelerators, list the accelerators that Crucible knows, without asking AWS.`,
  )
  addShared(
    command
      .argument('[pattern...]', 'only these types or families')
      .option('--accelerators', 'only the accelerators; needs no credentials')
      .option('--types', 'every type, not only the largest of each family'),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle list --regions us-east-1', 'the families of one Region'],
        ['truffle list --accelerators', 'memory and relative speed of accelerators'],
      ),
    )
    .action((patterns: string[], options: Options) =>
      options.accelerators === true
        ? listAccelerators(session)
        : listFamilies(
            session,
            patterns.filter((text) => !/^gpus?$|^families$/i.test(text)),
            options,
          ),
    )
}

interface SpeedRow {
  relative_speed: number | null
  speed_low: number | null
  speed_high: number | null
  speed_basis: string | null
}

function speedRow(accelerator: string): SpeedRow {
  const speed = speedOf(accelerator, SPEED_REFERENCE)
  const rounded = (factor: number): number => Number(factor.toPrecision(3))
  return speed === undefined
    ? { relative_speed: null, speed_low: null, speed_high: null, speed_basis: null }
    : {
        relative_speed: rounded(speed.factor),
        speed_low: rounded(speed.low),
        speed_high: rounded(speed.high),
        speed_basis: speed.basis,
      }
}

function listAccelerators(session: Session): void {
  const results = ACCELERATORS.map(({ name, memoryGb }) => ({
    accelerator: name,
    memory_gb: memoryGb,
    ...speedRow(name),
  }))
  session.answer({
    command: 'list',
    results,
    columns: ACCELERATOR_COLUMNS,
    more: { relative_to: SPEED_REFERENCE },
    unanswered: [],
    notes: [
      `Speed in training relative to an ${SPEED_REFERENCE}; of ten trainings, nine are within the range.`,
    ],
    show: (out) =>
      out.table(
        ['Accelerator', 'Memory', 'Speed', 'Range', 'Basis'],
        results.map((row) => [
          row.accelerator,
          `${row.memory_gb} GB`,
          times(row.relative_speed),
          `${times(row.speed_low)} to ${times(row.speed_high)}`,
          String(row.speed_basis ?? '-'),
        ]),
        { right: ['Memory', 'Speed'] },
      ),
  })
}

const times = (factor: unknown): string => (typeof factor === 'number' ? `${factor}x` : '-')

async function listFamilies(session: Session, given: string[], options: Options): Promise<void> {
  const patterns = given.flatMap((text) => listArgument(text)).map(parsePattern)
  const inquiry = session.inquiry({ ...options, ...oneRegion(session, options) })
  const { answers, unanswered } = await searchTypes(
    inquiry,
    { patterns, isAcceleratedOnly: patterns.length === 0 },
    { hasZones: false },
  )
  const all = answers.flatMap(({ value }) => value)
  if (all.length === 0 && unanswered.length === 0) throw await nothingFound(inquiry, patterns, all)
  const found = (options.types === true ? all : largestOfEach(all)).sort((a, b) =>
    compareTypes(a.type.name, b.type.name),
  )
  const prices = await pricesOfTypes(inquiry, found)
  const results = found.map((one) => {
    const { type, region } = one
    return {
      family: type.name.split('.')[0]!,
      instance_type: type.name,
      region,
      ...shapeRow(type),
      relative_speed: speedRow(acceleratorsOf(type)?.name ?? '').relative_speed,
      on_demand_price: prices.of(one) ?? null,
    }
  })
  session.answer({
    command: 'list',
    results,
    columns: FAMILY_COLUMNS,
    more: { relative_to: SPEED_REFERENCE },
    unanswered: unansweredRows(unanswered),
    notes: [...prices.notes, ...(await inquiry.notes())],
    show: (out) => showFamilies(out, found, { priceOf: prices.of, speeds: results }),
  })
}

function showFamilies(
  out: Output,
  found: readonly RegionalType[],
  {
    priceOf,
    speeds,
  }: {
    priceOf: (one: RegionalType) => number | undefined
    speeds: readonly { relative_speed: number | null }[]
  },
): void {
  const head = ['Family', 'Largest', 'Accelerators', 'Memory each', 'vCPUs', 'Memory', 'Network', 'EFA']
  out.table(
    [...head, 'Speed', '$/h'],
    found.map((one, index) => {
      const { type } = one
      const accelerators = acceleratorsOf(type)
      return [
        type.name.split('.')[0]!,
        type.name,
        accelerators === undefined ? '-' : `${accelerators.count}x ${accelerators.name}`,
        accelerators === undefined ? '-' : gib(accelerators.memoryMiB),
        String(type.cpus),
        gib(type.memoryMiB),
        type.networkPerformance ?? '-',
        String(type.efaInterfaces ?? 0),
        times(speeds[index]!.relative_speed),
        usdPerHour(priceOf(one)),
      ]
    }),
    {
      right: ['vCPUs', 'Memory', 'EFA', 'Speed', '$/h'],
      flexible: ['Network'],
      optional: ['Network', 'EFA'],
    },
  )
}

/** Families differ little between Regions, so that one is asked unless Regions are named. */
function oneRegion(session: Session, options: Options): { regions?: string[] } {
  if (regionsOf(options) !== 'all' || options.regions !== undefined) return {}
  const { AWS_REGION, AWS_DEFAULT_REGION } = session.cli.environment
  return { regions: [AWS_REGION?.trim() || AWS_DEFAULT_REGION?.trim() || 'us-east-1'] }
}

function largestOfEach(found: readonly RegionalType[]): RegionalType[] {
  const largest = new Map<string, RegionalType>()
  for (const one of found) {
    const key = `${one.region} ${one.type.name.split('.')[0]}`
    const known = largest.get(key)
    const gpus = (each: RegionalType): number => acceleratorsOf(each.type)?.count ?? 0
    const isLarger =
      known === undefined ||
      gpus(one) > gpus(known) ||
      (gpus(one) === gpus(known) && one.type.cpus > known.type.cpus)
    if (isLarger) largest.set(key, one)
  }
  return [...largest.values()]
}
