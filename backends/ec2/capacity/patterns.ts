import { findAccelerator, isAccelerator } from '../../../core/accelerators'
import { isGlobMatch } from '../../../core/glob'
import { invalid } from '../errors'
import type { MachineType } from '../sdk/api'
import { shapeOf } from '../market/shapes'

/** Which machine types a person means. */
export interface TypePattern {
  text: string
  /** Filter that EC2 itself applies. */
  filter: string
  fits: (type: Pick<MachineType, 'name'> & Partial<MachineType>) => boolean
  /** Whether it names an accelerator, so that the name of a type is not enough. */
  isAccelerator: boolean
}

const NAME = /^[a-z0-9*?.-]+$/
/** `p5`, `g6e`, `u7i-12tb`: a family without a size. */
const FAMILY = /^[a-z]+\d[a-z0-9]*(?:-[a-z0-9]+)*$/

const PLACE = /^[a-z]{2,4}(?:-gov|-[a-z]{2})?-(?:north|south|east|west|central)[a-z]*-\d[a-z]?$/

/** Reads a type (`p5.48xlarge`), a family (`p5`), a glob (`g6*.xlarge`), a regular expression (`^p[45]`) or an accelerator (`H100`). */
export function parsePattern(given: string): TypePattern {
  const text = given.trim()
  const name = text.toLowerCase()
  if (text === '')
    throw invalid('the name of a machine type is empty', 'Write one such as p5.48xlarge or "g6.*".')
  if (PLACE.test(name))
    throw invalid(
      `${name} is ${/\d$/.test(name) ? 'a Region' : 'a zone'}, not a machine type`,
      'Name the type first, and the place with --regions or --az.',
    )
  const accelerator = findAccelerator(text)?.name
  if (accelerator !== undefined && !/^(?:trn|inf)\d$/.test(name))
    return {
      text,
      filter: '*',
      isAccelerator: true,
      fits: (type) =>
        type.gpus !== undefined &&
        isAccelerator(shapeOf(type as MachineType, 0).accelerator ?? '', accelerator),
    }
  if (NAME.test(name)) {
    const glob = FAMILY.test(name) ? `${name}.*` : name
    return { text, filter: glob, isAccelerator: false, fits: (type) => isGlobMatch(glob, type.name) }
  }
  const expression = regularExpression(text)
  return { text, filter: '*', isAccelerator: false, fits: (type) => expression.test(type.name) }
}

function regularExpression(text: string): RegExp {
  const [, inside = text] = /^\/(.*)\/$/.exec(text) ?? []
  try {
    return new RegExp(inside, 'i')
  } catch {
    throw invalid(
      `"${text}" is neither a pattern such as "g6.*" nor a regular expression`,
      'Put the pattern in quotes, so that the shell does not change it.',
    )
  }
}

/** The types that fit one of the patterns; all without a pattern. */
export function fitting<T extends { name: string }>(
  types: readonly T[],
  patterns: readonly TypePattern[],
): T[] {
  return patterns.length === 0 ? [...types] : types.filter((type) => patterns.some(({ fits }) => fits(type)))
}

/** Filters for EC2: at most one that fits everything. */
export function filtersOf(patterns: readonly TypePattern[]): string[] {
  const filters = patterns.map(({ filter }) => filter)
  return filters.length === 0 || filters.includes('*') ? ['*'] : [...new Set(filters)]
}
