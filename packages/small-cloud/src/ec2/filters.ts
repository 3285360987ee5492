/** Filters and pages, the same for all lists. */
import { ApiError } from '../wire/errors'
import type { Filter } from '../wire/query'
import { matches } from '../world/faults'
import type { Tags } from './model'

/** What a filter looks at; several values count where one fits. */
export type Reader<T> = (item: T) => string | undefined | readonly (string | undefined)[]

/** The filters that a list knows, by name. */
export type Readers<T> = Readonly<Record<string, Reader<T>>>

/** The most values that one request may filter by. */
const FILTER_VALUES_MAX = 200

/** `tag:<key>` and `tag-key` besides those given. */
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

export interface PageWish {
  MaxResults?: number | undefined
  NextToken?: string | undefined
}

export interface PageLimits {
  /** Fewer cannot be asked for. */
  least?: number
  /** How many there are at most on a page, asked for or not. */
  most: number
}

/** One page of a list. A token names the place where the next page begins. */
export function page<T>(items: readonly T[], wish: PageWish, { least = 5, most }: PageLimits): Page<T> {
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

/** Things by id, in the order asked for. Throws the code where one of them is not there. */
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

/** Throws the code where an id is not formed like one. */
export function checkForm(ids: readonly string[], prefix: string, code: string): void {
  const malformed = ids.find((id) => !new RegExp(`^${prefix}-[0-9a-f]{8}([0-9a-f]{9})?$`).test(id))
  if (malformed !== undefined)
    throw new ApiError(code, `Invalid id: "${malformed}" (expecting "${prefix}-...")`)
}

/** Those with the ids, all where none is named. Throws the code where one of them is not there. */
export function chosen<T>(
  all: readonly T[],
  ids: readonly string[],
  { by, code, what }: { by: (item: T) => string; code: string; what: string },
): readonly T[] {
  if (ids.length === 0) return all
  const known = new Map(all.map((item) => [by(item), item]))
  return byId(ids, (id) => known.get(id), { code, what })
}
