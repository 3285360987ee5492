/** Finds the parts of a schema that belong to a path in a value. */
import { z } from 'zod'
import type { Path } from './problem'

type Schema = z.core.$ZodType

/** The properties of the schema library's definitions that hold other schemas. */
interface Definition {
  innerType?: Schema
  in?: Schema
  shape?: Record<string, Schema>
  element?: Schema
  valueType?: Schema
  options?: Schema[]
}

/** Names of the fields directly under a path; empty without any. */
export function fieldsAt(schema: Schema, path: Path): string[] {
  return schemasAt(schema, path).flatMap((part) => Object.keys(definitionOf(part).shape ?? {}))
}

/** Paths of all named fields, outermost first. */
export function allFields(schema: Schema, path: string[] = []): string[][] {
  const here = fieldsAt(schema, path).map((name) => [...path, name])
  return [...here, ...here.flatMap((field) => allFields(schema, field))]
}

/** The first example of the innermost field along a path that has one, with that field's own path. */
export function exampleAt(schema: Schema, path: Path): { path: Path; example: unknown } | undefined {
  for (let depth = path.length; depth > 0; depth--) {
    const example = schemasAt(schema, path.slice(0, depth))
      .map((part) => z.globalRegistry.get(part)?.examples)
      .find(Array.isArray)
    if (example !== undefined) return { path: path.slice(0, depth), example: (example as unknown[])[0] }
  }
  return undefined
}

/** The schemas of a value at a path, wrapped and bare: several for alternatives, none for an unknown path. */
function schemasAt(schema: Schema, path: Path): Schema[] {
  return path.reduce<Schema[]>(
    (parts, key) => parts.flatMap((part) => childrenOf(definitionOf(part), key)).flatMap(layersOf),
    layersOf(schema),
  )
}

function childrenOf({ shape, element, valueType }: Definition, key: PropertyKey): Schema[] {
  const child = shape === undefined ? (typeof key === 'number' ? element : valueType) : shape[String(key)]
  return child === undefined ? [] : [child]
}

/** A schema and the schemas that it wraps (defaults, optional fields, alternatives), outermost first. */
function layersOf(schema: Schema): Schema[] {
  const { innerType, in: input, options } = definitionOf(schema)
  const inside = [innerType, input, ...(options ?? [])].filter((part) => part !== undefined)
  return [schema, ...inside.flatMap(layersOf)]
}

function definitionOf(schema: Schema): Definition {
  return schema._zod.def as Definition
}
