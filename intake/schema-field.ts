import { z } from 'zod'

/** A field with its description and examples for editors; the examples are values as in the file. */
export function field<T extends z.ZodType>(schema: T, description: string, ...examples: unknown[]): T {
  return schema.meta({ description, examples: examples.length === 0 ? undefined : examples })
}

type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override']>

/** Adds our examples to the schema. The library omits examples of converted fields; ours are values as written. */
export const withExamples: Override = ({ zodSchema, jsonSchema }) => {
  const examples = z.globalRegistry.get(zodSchema)?.examples
  if (Array.isArray(examples)) jsonSchema.examples = examples
}
