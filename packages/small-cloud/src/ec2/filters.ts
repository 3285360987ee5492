/** Filters and paging, shared by all lists. */
import { ApiError } from '../wire/errors'
import type { Filter } from '../wire/query'
import { matches } from '../world/faults'
import type { Tags } from './model'

/** Reads the value that a filter compares; of several values one must match. */
type Reader<T> = (item: T) => string | undefined | readonly (string | undefined)[]

/** The filters of a list, by name. */
export type Readers<T> = Readonly<Record<string, Reader<T>>>

/** Maximum number of values per filter in one request. */
const FILTER_VALUES_MAX = 200

/** Supports `tag:<key>` and `tag-key` in addition to the given filters. */
export function select<T extends object>(
  items: readonly T[],
  filters: readonly Filter[],
  readers: Readers<T>,
): T[] {
  if (filters.reduce((count, { Value }) => count + Value.length, 0) > FILTER_VALUES_MAX)
    throw new ApiError(
      'FilterLimitExceeded',
      `The maximum number of filter values specified on a single call is ${FILTER_VALUES_MAX}`,
    )
  const tests = filters.map(({ Name, Value }) => {
    const read = readerFor(Name, readers)
    return (item: T) =>
      [read(item)]
        .flat()
        .some((text) => text !== undefined && Value.some((pattern) => matches(pattern, text)))
  })
  return items.filter((item) => tests.every((test) => test(item)))
}

function tagsOf(item: object): Tags | undefined {
  return (item as { tags?: Tags }).tags
}

function readerFor<T extends object>(name: string, readers: Readers<T>): Reader<T> {
  if (name.startsWith('tag:')) return (item) => tagsOf(item)?.get(name.slice('tag:'.length))
  if (name === 'tag-key') return (item) => [...(tagsOf(item)?.keys() ?? [])]
  const reader = Object.hasOwn(readers, name) ? readers[name] : undefined
  if (reader === undefined) throw new ApiError('InvalidParameterValue', `The filter '${name}' is invalid`)
  return reader
}

export interface Page<T> {
  items: T[]
  nextToken?: string
}

export interface PageRequest {
  MaxResults?: number | undefined
  NextToken?: string | undefined
}

export interface PageLimits {
  /** The smallest page size that a request may ask for. */
  least?: number
  /** The largest page size, requested or not. */
  most: number
}

/** Returns one page of a list. A token is the position of the next page. */
export function page<T>(items: readonly T[], wish: PageRequest, { least = 5, most }: PageLimits): Page<T> {
  const { MaxResults: size = most } = wish
  if (size < least || size > most)
    throw new ApiError(
      'InvalidParameterValue',
      `Value ( ${size} ) for parameter maxResults is invalid. Expecting a value between ${least} and ${most}.`,
    )
  const from = wish.NextToken === undefined ? 0 : placeOf(wish.NextToken)
  const end = from + size
  return { items: items.slice(from, end), ...(end < items.length ? { nextToken: tokenOf(end) } : {}) }
}

const TOKEN_PREFIX = 'page:'

function tokenOf(place: number): string {
  return Buffer.from(`${TOKEN_PREFIX}${place}`).toString('base64')
}

function placeOf(token: string): number {
  const match = new RegExp(`^${TOKEN_PREFIX}(\\d+)$`).exec(Buffer.from(token, 'base64').toString())
  if (match === null) throw new ApiError('InvalidNextToken', 'The token is not valid')
  return Number(match[1])
}

/** Returns items by id, in the order of the request. Throws the code when an id does not exist. */
export function byId<T>(
  ids: readonly string[],
  found: (id: string) => T | undefined,
  { code, what }: { code: string; what: string },
): T[] {
  const missing = ids.filter((id) => found(id) === undefined)
  if (missing.length > 0) {
    const [words, verb] =
      missing.length === 1 ? [`${what} '${missing[0]}'`, 'does'] : [`${what}s '${missing.join(', ')}'`, 'do']
    throw new ApiError(code, `The ${words} ${verb} not exist`)
  }
  return ids.map((id) => found(id)!)
}

/** Throws the code when an id is malformed. */
export function checkForm(ids: readonly string[], prefix: string, code: string): void {
  const malformed = ids.find((id) => !new RegExp(`^${prefix}-[0-9a-f]{8}([0-9a-f]{9})?$`).test(id))
  if (malformed !== undefined)
    throw new ApiError(code, `Invalid id: "${malformed}" (expecting "${prefix}-...")`)
}

/** Returns the items with the ids, or all items without ids. Throws the code when an id does not exist. */
export function chosen<T>(
  all: readonly T[],
  ids: readonly string[],
  { by, code, what }: { by: (item: T) => string; code: string; what: string },
): readonly T[] {
  if (ids.length === 0) return all
  const known = new Map(all.map((item) => [by(item), item]))
  return byId(ids, (id) => known.get(id), { code, what })
}
