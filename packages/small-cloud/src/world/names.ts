/** Finds names in a world file that do not exist in its world: rules with such names would silently never apply. */
import { LAMBDA_REGIONS, LAMBDA_TYPES } from '../lambda/types'
import { MODAL_GPUS } from '../modal/rates'
import { matches } from './faults'
import type { WorldPlan } from './schema'
import { machineTypes } from './types'
import { regionsOf, type World } from './world'

export interface Misnomer {
  path: (string | number)[]
  words: string
}

type WorldNames = Readonly<Record<'region' | 'zone' | 'type', readonly string[]>>
type Named = Partial<Record<keyof WorldNames, string | undefined>>

const KINDS: readonly (keyof WorldNames)[] = ['region', 'zone', 'type']

/** Returns every name of a region, zone or machine type in the plan that does not exist in this world. */
export function misnomersOf(plan: WorldPlan): Misnomer[] {
  const regions = regionsOf(plan)
  const zones = regions.flatMap((region) => region.zones.map(({ name }) => name))
  const known: WorldNames = {
    region: regions.map(({ name }) => name),
    zone: zones,
    type: [...machineTypes(plan).keys()],
  }
  // A rule without a service is about any provider.
  const everywhere: WorldNames = {
    ...known,
    region: [...known.region, ...Object.keys(LAMBDA_REGIONS)],
    type: [...known.type, ...LAMBDA_TYPES.map(({ name }) => name), ...Object.keys(MODAL_GPUS)],
  }
  return [
    ...regions.flatMap(({ name, zones: own, subnets }) =>
      subnets.flatMap(({ zone }, i) =>
        unknown({ ...known, zone: own.map((each) => each.name) }, { zone }, [
          ['regions', name, 'subnets', i],
        ]),
      ),
    ),
    ...plan.stock.flatMap((rule, i) => unknown(known, rule, [['stock', i]])),
    ...plan.prices.flatMap((rule, i) => unknown(known, rule, [['prices', i]])),
    ...plan.transfers.flatMap(({ from, to }, i) => [
      ...unknown(known, { region: from }, [['transfers', i], 'from']),
      ...unknown(known, { region: to }, [['transfers', i], 'to']),
    ]),
    ...plan.reservations.flatMap((rule, i) => unknown(known, rule, [['reservations', i]])),
    ...plan.blockOfferings.flatMap((rule, i) => unknown(known, rule, [['blockOfferings', i]])),
    ...Object.keys(plan.interruptionBands).flatMap((type) =>
      unknown(known, { type }, [['interruptionBands'], type]),
    ),
    ...Object.entries(plan.offered).flatMap(([type, places]) => [
      ...unknown(known, { type }, [['offered'], type]),
      ...places.flatMap((zone, i) => unknown(known, { zone }, [['offered', type], i])),
    ]),
    ...plan.faults.flatMap(({ where }, i) => unknown(everywhere, where, [['faults', i, 'where']])),
  ]
}

/** Returns the problems with the names of a reservation that is added to a running world. */
export function misnomersOfReservation(
  { regions, types }: Pick<World, 'regions' | 'types'>,
  { zone, type }: { zone: string; type: string },
): string[] {
  const known: WorldNames = {
    region: [...regions.keys()],
    zone: [...regions.values()].flatMap(({ zones }) => zones.map(({ name }) => name)),
    type: [...types.keys()],
  }
  return unknown(known, { zone, type }, [['reservation']]).map(({ words }) => words)
}

/** @param last the name's last path segment, if it differs from its kind */
function unknown(
  known: WorldNames,
  named: Named,
  [path, last]: [(string | number)[], (string | number)?],
): Misnomer[] {
  return KINDS.flatMap((kind) => {
    const name = named[kind]
    if (name === undefined || known[kind].some((each) => matches(name, each))) return []
    const place = [...path, last ?? kind]
    return [
      { path: place, words: `${place.join('.')}: this world has no ${kind} ${name}; ${remedy(kind, known)}` },
    ]
  })
}

function remedy(kind: keyof WorldNames, known: WorldNames): string {
  return kind === 'type' ? 'define it in types, or correct it' : `it has ${known[kind].join(', ')}`
}
