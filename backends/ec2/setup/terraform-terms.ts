import { Expression, type Block, type Value } from './hcl'
import { SETUP_TAGS } from './pieces'

/** Where the resources of a Region go: nothing to say of the first one, whose provider is the default one. */
export interface RegionalPlace {
  /** At the end of the names of resources and variables. */
  suffix: string
  /** The provider of the Region, such as `aws.eu_west_1`. */
  provider?: Expression
}

export const FIRST_PLACE: RegionalPlace = { suffix: '' }

/** `eu_west_1`: alias of the provider of a Region. */
export const aliasOf = (region: string): string => region.replaceAll('-', '_')

/** Of each Region but the first one. */
export function placeIn(region: string): RegionalPlace {
  const alias = aliasOf(region)
  return { suffix: `_${alias}`, provider: new Expression(`aws.${alias}`) }
}

export const variable = (name: string): Expression => new Expression(`var.${name}`)
export const the = (address: string): Expression => new Expression(address)
/** In texts of the description, and so in those that come of it. */
export const inText = (name: string): string => `\${var.${name}}`

export const TAGS = { [SETUP_TAGS.setup]: variable('prefix') }
export const named = (Name: string): { tags: Value } => ({ tags: { Name: plain(Name), ...TAGS } })

/** A text that is nothing but one variable is that variable. */
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
