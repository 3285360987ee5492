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
  return ['| field | meaning | examples | default |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

function rowsOf({ properties = {} }: FieldSchema, prefix: string): string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const cells = [
      code(`${prefix}${name}`),
      field.description ?? '',
      (field.examples ?? []).map((example) => code(flow(example))).join(' or '),
      // A group's default is that of its fields.
      field.default === undefined || field.properties !== undefined ? '' : code(flow(field.default)),
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
