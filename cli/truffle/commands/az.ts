import type { Command } from 'commander'
import { parsePattern, searchTypes, type RegionalType } from '../../../backends/ec2/capacity'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import { capacityScoresOf } from '../capacity-scores'
import { addShared, listArgument, type SharedOptions } from '../options'
import { endingOfNothing, unansweredRows, type Session } from '../session'
import { nothingFound } from './search'

interface Options extends SharedOptions {
  az?: string[]
  minAzCount?: number
  regionsOnly?: true
  scores?: number
}

const ZONES_MAX = 20
const COUNT_MAX = 1_000
const COLUMNS = [
  'instance_type',
  'region',
  'availability_zones',
  'availability_zone_ids',
  'az_count',
  'capacity_scores',
]

export function define(command: Command, session: Session): void {
  addShared(
    command
      .argument('<pattern...>', 'type, family, glob, regular expression or accelerator')
      .option('--az <list>', 'only Regions and zones among these, such as us-east-1a', listArgument)
      .option(
        '--min-az-count <count>',
        'only Regions with at least this many zones',
        countArgument(ZONES_MAX),
      )
      .option('--regions-only', 'only the names of the Regions')
      .option(
        '--scores <count>',
        'capacity scores for this many on-demand machines',
        countArgument(COUNT_MAX),
      ),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle az p5.48xlarge', 'zones that sell this type'],
        ['truffle az "g6.*" --min-az-count 3', 'Regions with three zones or more'],
        ['truffle az p4d.24xlarge --az us-east-1a,us-east-1b', 'whether these zones have it'],
      ),
    )
    .action((patterns: string[], options: Options) => az(session, patterns, options))
}

interface ZonedType extends RegionalType {
  ids: string[]
  /** Capacity scores of the zones, in their order; missing if they were not asked for. */
  scores?: (string | null)[]
}

async function az(session: Session, given: string[], options: Options): Promise<void> {
  const { az: wanted = [], minAzCount = 1 } = options
  const inquiry = session.inquiry(regionsOfZones(options))
  const patterns = given.flatMap((text) => listArgument(text)).map(parsePattern)
  const { answers, unanswered } = await searchTypes(inquiry, { patterns }, { hasZones: true })
  const all = answers.flatMap(({ value }) => value)
  if (all.length === 0 && unanswered.length === 0) throw await nothingFound(inquiry, patterns, all)
  const ids = new Map<string, ReadonlyMap<string, string>>()
  await Promise.all(
    [...new Set(all.map(({ region }) => region))].map(async (region) => {
      // Names of zones mean different places in different accounts; without the right to ask, they must do.
      ids.set(
        region,
        await inquiry
          .at(region)
          .capacity.zoneIds(inquiry.signal)
          .catch(() => new Map()),
      )
    }),
  )
  const fitting = all
    .map((one): ZonedType => {
      const zones = one.zones.filter((zone) => wanted.length === 0 || wanted.includes(zone))
      return { ...one, zones, ids: zones.map((zone) => ids.get(one.region)?.get(zone) ?? '') }
    })
    .filter(({ zones }) => zones.length >= minAzCount)
    .sort((a, b) => a.region.localeCompare(b.region))
  const regions = [...new Set(fitting.map(({ region }) => region))]
  const pools = fitting.flatMap(({ type, region, zones }) => zones.map((zone) => ({ type, region, zone })))
  const { capacityOf, notes } =
    options.scores === undefined
      ? { notes: [] }
      : await capacityScoresOf(inquiry, pools, { market: 'on-demand', count: options.scores })
  const found = fitting.map((one) => ({
    ...one,
    ...(capacityOf && { scores: one.zones.map((zone) => capacityOf({ ...one, zone }) ?? null) }),
  }))
  session.answer({
    command: 'az',
    results:
      options.regionsOnly === true
        ? regions.map((region) => ({ region }))
        : found.map(({ type, region, zones, ids: own, scores }) => ({
            instance_type: type.name,
            region,
            availability_zones: zones,
            availability_zone_ids: own,
            az_count: zones.length,
            capacity_scores: scores ?? null,
          })),
    columns: options.regionsOnly === true ? ['region'] : COLUMNS,
    unanswered: unansweredRows(unanswered),
    notes: [...notes, ...(await inquiry.notes())],
    show: (out) =>
      options.regionsOnly === true ? regions.forEach((one) => out.line(one)) : show(out, found),
    ending: found.length === 0 ? endingOfNothing({ unanswered }) : undefined,
  })
}

/** Zones that are named need only their Regions. */
function regionsOfZones(options: Options): Options {
  const { az: zones, regions, region } = options
  if (zones === undefined || regions !== undefined || region !== undefined) return options
  const named = zones.flatMap((zone) => /^[a-z]{2,4}(?:-[a-z]+)+-\d+/.exec(zone)?.[0] ?? [])
  return named.length === 0 ? options : { ...options, regions: named }
}

function show(out: Output, found: readonly ZonedType[]): void {
  if (found.length === 0) return out.line('No zone fits.')
  const hasScores = found.some(({ scores }) => scores !== undefined)
  out.table(
    ['Instance Type', 'Region', 'Zones', 'AZs', 'Zone IDs', ...(hasScores ? ['Capacity'] : [])],
    found.map(({ type, region, zones, ids, scores }) => [
      type.name,
      region,
      String(zones.length),
      zones.join(', '),
      ids.join(', '),
      ...(hasScores ? [scores?.map((score) => score ?? '-').join(', ') ?? ''] : []),
    ]),
    { right: ['Zones'], flexible: ['AZs', 'Zone IDs'], optional: ['Zone IDs'] },
  )
}
