import { stringify } from 'yaml'

/** The parts of a JSON Schema that the table shows. */
interface FieldSchema {
  description?: string
  default?: unknown
  examples?: unknown[]
  properties?: Record<string, FieldSchema>
}

/** The fields of a file, by its JSON Schema, as a table in Markdown. */
export function fieldTable(schema: Record<string, unknown>): string {
  const rows = rowsOf(schema, '')
  return ['| field | meaning | examples |', '|---|---|---|', ...rows].join('\n')
}

function rowsOf({ properties = {} }: FieldSchema, prefix: string): string[] {
  // Fields without an example belong to another file.
  const shown = Object.entries(properties).filter(([, { examples = [] }]) => examples.length > 0)
  return shown.flatMap(([name, field]) => {
    // A group's default is that of its fields.
    const hasDefault = field.default !== undefined && field.properties === undefined
    const cells = [
      code(`${prefix}${name}`),
      `${field.description ?? ''}${hasDefault ? ` Default: ${code(flow(field.default))}.` : ''}`,
      (field.examples ?? []).map((example) => code(flow(example))).join(' or '),
    ]
    return [`| ${cells.join(' | ')} |`, ...rowsOf(field, `${prefix}${name}.`)]
  })
}

function flow(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()
}

function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``
}
