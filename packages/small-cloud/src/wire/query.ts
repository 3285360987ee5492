/** Forms of the Query protocol, `Filter.1.Value.2=x`, as nested values, with their value types. */
import { z } from 'zod'
import { ApiError } from './errors'

/** A form as a tree: texts, and maps by the parts of the dotted names. */
export interface Tree {
  [part: string]: string | Tree
}

/** Deeper than any request of the services implemented here. */
const DEPTH_MAX = 16
/** `Action` and `Version` belong to the protocol, not to the action. */
const PROTOCOL_FIELDS = ['Action', 'Version']

/** Reads a form. Throws `MalformedQueryString` when a name is both a text and a map, or occurs twice. */
export function readForm(body: string): { action: string | undefined; tree: Tree } {
  const form = new URLSearchParams(body)
  const tree: Tree = {}
  const isOfAction = (name: string): boolean => !PROTOCOL_FIELDS.includes(name) && !name.startsWith('X-Amz-')
  for (const [name, value] of form) if (isOfAction(name)) put(tree, name, value)
  return { action: form.get('Action') ?? undefined, tree }
}

function put(tree: Tree, name: string, value: string): void {
  const parts = name.split('.')
  const malformed = new ApiError('MalformedQueryString', `The parameter ${name} contradicts another one`)
  if (parts.length > DEPTH_MAX || parts.some((part) => part === '' || part === '__proto__')) throw malformed
  let at = tree
  for (const part of parts.slice(0, -1)) {
    const below = Object.hasOwn(at, part) ? at[part]! : (at[part] = {})
    if (typeof below === 'string') throw malformed
    at = below
  }
  const last = parts.at(-1)!
  if (Object.hasOwn(at, last)) throw malformed
  at[last] = value
}

export const text = z.string()
export const integer = z
  .string()
  .regex(/^-?\d{1,15}$/, 'is not a whole number')
  .transform(Number)
export const decimal = z
  .string()
  .regex(/^-?\d+(\.\d+)?$/, 'is not a number')
  .transform(Number)
export const flag = z
  .string()
  .regex(/^(true|false)$/i, 'must be true or false')
  .transform((word) => word.toLowerCase() === 'true')
/** An instant in ISO 8601, in milliseconds since 1970. */
export const instant = z
  .string()
  .refine((word) => !Number.isNaN(Date.parse(word)), 'is not an instant')
  .transform((word) => Date.parse(word))

const INDEX = z.string().regex(/^[1-9]\d{0,4}$/)

/** `Name.1`, `Name.2`, ... in the order of their numbers. An empty text is an empty list. */
export function list<T extends z.ZodType>(item: T): z.ZodType<z.output<T>[]> {
  return z.union([
    z.record(INDEX, item).transform((items) =>
      Object.entries(items)
        .sort(([a], [b]) => Number(a) - Number(b))
        .map(([, value]) => value),
    ),
    z.literal('').transform((): z.output<T>[] => []),
  ])
}

/** `Name.member.1`, ...: the list format of STS and IAM. */
export function members<T extends z.ZodType>(item: T): z.ZodType<z.output<T>[]> {
  return z.union([
    z.strictObject({ member: list(item) }).transform(({ member }) => member),
    z.literal('').transform((): z.output<T>[] => []),
  ])
}

export const tag = z.strictObject({ Key: text, Value: text.default('') })
export const tagSpecification = z.strictObject({ ResourceType: text, Tag: list(tag).default([]) })
export const filter = z.strictObject({ Name: text, Value: list(text).default([]) })
export type Filter = z.output<typeof filter>
/** The paging fields of every EC2 list. */
export const paging = { MaxResults: integer.optional(), NextToken: text.optional() }
export const dryRun = { DryRun: flag.default(false) }
