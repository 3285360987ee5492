import { Option, type Command } from 'commander'
import {
  parsePattern,
  pricesOfTypes,
  searchTypes,
  type RegionalType,
  type Inquiry,
  type TypePattern,
} from '../../../backends/ec2/capacity'
import { CrucibleError } from '../../../client/errors'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import { addShared, architectureArgument, gibArgument, listArgument, type SharedOptions } from '../options'
import { acceleratorsInWords, gib, TYPE_COLUMNS, typeRow, usdPerHour } from '../rows'
import { unansweredRows, type Session } from '../session'

interface Options extends SharedOptions {
  architecture?: string
  family?: string[]
  minVcpus?: number
  minVcpu?: number
  minMemory?: number
  gpuOnly?: true
  skipAzs?: true
  showPrice?: true
}

const VCPUS_MAX = 10_000

export function define(command: Command, session: Session): void {
  addShared(
    command
      .argument('<pattern...>', 'type, family, glob, regular expression or accelerator')
      .option('--architecture <name>', 'x86_64 or arm64', architectureArgument)
      .option('--family <list>', 'only these families, such as p5,g6', listArgument)
      .option('--min-vcpus <count>', 'at least this many vCPUs', countArgument(VCPUS_MAX))
      .addOption(new Option('--min-vcpu <count>').argParser(countArgument(VCPUS_MAX)).hideHelp())
      .option('--min-memory <GiB>', 'at least this much memory', gibArgument)
      .option('--gpu-only', 'only types with GPUs or other accelerators')
      .option('--skip-azs', 'do not ask for zones')
      .option('--show-price', 'with the price on demand'),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle search m7i.large --regions us-east-1', 'one type in one Region'],
        ['truffle search "g6*.xlarge" --show-price', 'a glob, in quotes'],
        ['truffle search "^p[45]" --gpu-only', 'a regular expression'],
        ['truffle search H100', 'every type with this accelerator'],
      ),
    )
    .action((patterns: string[], options: Options) => search(session, patterns, options))
}

async function search(session: Session, given: string[], options: Options): Promise<void> {
  const inquiry = session.inquiry(options)
  const patterns = given.flatMap((text) => listArgument(text)).map(parsePattern)
  const wish = {
    patterns,
    architecture: options.architecture,
    minVcpus: options.minVcpus ?? options.minVcpu,
    minMemoryGiB: options.minMemory,
    isAcceleratedOnly: options.gpuOnly === true,
  }
  const { answers, unanswered } = await searchTypes(inquiry, wish, { hasZones: options.skipAzs !== true })
  const found = answers
    .flatMap(({ value }) => value)
    .filter(({ type }) => options.family?.includes(type.name.split('.')[0]!) ?? true)
    .sort((a, b) => a.region.localeCompare(b.region))
  if (found.length === 0 && unanswered.length === 0) throw await nothingFound(inquiry, patterns, found)
  const prices = options.showPrice === true ? await pricesOfTypes(inquiry, found) : undefined
  session.answer({
    command: 'search',
    results: found.map((one) => typeRow(one, prices?.of(one))),
    columns: TYPE_COLUMNS,
    unanswered: unansweredRows(unanswered),
    notes: [...(prices?.notes ?? []), ...(await inquiry.notes())],
    show: (out) => show(out, found, prices?.of),
    ending: found.length === 0 ? ('unavailable' as const) : undefined,
  })
}

/** The error for a type that no Region has, with types that have a similar name. */
export async function nothingFound(
  inquiry: Inquiry,
  patterns: readonly TypePattern[],
  found: readonly unknown[],
): Promise<CrucibleError> {
  const what = patterns.map(({ text }) => text).join(', ')
  const family = /^[a-z]+\d*[a-z]*/.exec(patterns[0]?.text.toLowerCase() ?? '')?.[0] ?? ''
  const similar =
    family === '' || found.length > 0
      ? []
      : await inquiry
          .each(({ market }) => market.types([`${family}*`], inquiry.signal))
          .then(({ answers }) => [...new Set(answers.flatMap(({ value }) => value.map(({ name }) => name)))])
          .catch(() => [])
  const regions = (await inquiry.regions()).regions
  const where = regions.length === 1 ? regions[0]! : `any of ${regions.length} Regions`
  const NAMED_MAX = 6
  return new CrucibleError('not-found', `No instance type matches ${what} in ${where}.`, {
    hint: /^gpus?$/i.test(what)
      ? 'For all types with accelerators: `truffle list`.'
      : similar.length === 0
        ? 'Write a type such as p5.48xlarge, a family such as g6, or a glob in quotes, such as "g6.*".'
        : `Similar ones: ${similar.sort().slice(0, NAMED_MAX).join(', ')}.`,
  })
}

function show(
  out: Output,
  found: readonly RegionalType[],
  priceOf: ((one: RegionalType) => number | undefined) | undefined,
): void {
  const head = ['Instance Type', 'Region', 'AZs', 'vCPUs', 'Memory', 'Accelerators', 'Network']
  out.table(
    priceOf === undefined ? head : [...head, 'On-Demand/h'],
    found.map((one) => {
      const { type, region, zones } = one
      const cells = [
        type.name,
        region,
        zones.map((zone) => zone.replace(region, '')).join(',') || '-',
        String(type.cpus),
        gib(type.memoryMiB),
        acceleratorsInWords(type),
        type.networkPerformance ?? '-',
      ]
      return priceOf === undefined ? cells : [...cells, usdPerHour(priceOf(one))]
    }),
    {
      right: ['vCPUs', 'Memory', 'On-Demand/h'],
      flexible: ['Network', 'Accelerators'],
      optional: ['Network'],
    },
  )
}

/**
 * Throws if no Region has any of the named types, because an empty answer would hide a typing error. Returns the types; none if the answer
 * is uncertain.
 */
export async function refuseUnknownTypes(
  inquiry: Inquiry,
  patterns: readonly TypePattern[],
): Promise<readonly RegionalType[]> {
  if (patterns.length === 0) return []
  const asked = await searchTypes(inquiry, { patterns }, { hasZones: false }).catch(() => undefined)
  // Without permission to ask, or with missing Regions, the answer is uncertain.
  if (asked === undefined || asked.unanswered.length > 0) return []
  const found = asked.answers.flatMap(({ value }) => value)
  if (found.length === 0) throw await nothingFound(inquiry, patterns, [])
  return found
}
