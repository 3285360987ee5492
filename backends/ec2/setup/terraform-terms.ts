import { Expression, type Block, type Value } from './hcl'
import { SETUP_TAGS } from './pieces'

/** The Region of resources in the files: nothing for the first one, whose provider is the default. */
export interface RegionalPlace {
  /** Suffix of the names of resources and variables. */
  suffix: string
  /** The provider of the Region, such as `aws.eu_west_1`. */
  provider?: Expression
}

export const FIRST_PLACE: RegionalPlace = { suffix: '' }

/** `eu_west_1`: alias of the provider of a Region. */
export const aliasOf = (region: string): string => region.replaceAll('-', '_')

/** For each Region but the first one. */
export function placeIn(region: string): RegionalPlace {
  const alias = aliasOf(region)
  return { suffix: `_${alias}`, provider: new Expression(`aws.${alias}`) }
}

export const variable = (name: string): Expression => new Expression(`var.${name}`)
export const the = (address: string): Expression => new Expression(address)
/** In texts of the description, and so in everything derived from them. */
export const inText = (name: string): string => `\${var.${name}}`

export const TAGS = { [SETUP_TAGS.setup]: variable('prefix') }
export const named = (Name: string): { tags: Value } => ({ tags: { Name: plain(Name), ...TAGS } })

/** A text that consists of one variable is that variable. */
export function plain(text: string): Value {
  const only = /^\$\{([^}]+)\}$/.exec(text)?.[1]
  return only === undefined ? text : the(only)
}

// eslint-disable-next-line max-params -- in the order in which Terraform writes it
export function resource(
  type: string,
  id: string,
  attributes: Record<string, Value>,
  blocks: Block[] = [],
): Block {
  return { kind: 'resource', labels: [type, id], attributes, blocks }
}
