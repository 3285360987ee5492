import { stringify } from 'yaml'
import { jobFileJsonSchema } from './job-schema'

/** The parts of a JSON Schema that the table shows. */
interface FieldSchema {
  description?: string
  default?: unknown
  examples?: unknown[]
  properties?: Record<string, FieldSchema>
}

/** The fields of the job file as a table in Markdown, for docs/reference/job-file.md. */
export function jobFieldTable(): string {
  const rows = rowsOf(jobFileJsonSchema(), '')
  return ['| field | meaning | examples |', '|---|---|---|', ...rows].join('\n')
}

function rowsOf({ properties = {} }: FieldSchema, prefix: string): string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
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
