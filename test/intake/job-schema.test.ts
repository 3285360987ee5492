import { describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJobObject } from '../../intake/job-file'
import { jobFileJsonSchema } from '../../intake/job-schema'
import { fieldTable } from '../../intake/field-table'

const DOCS = join(__dirname, '..', '..', 'docs')
const REGENERATE = 'run `node tools/gen-job-schema.mjs`'

interface Schema {
  type?: unknown
  description?: string
  examples?: unknown[]
  default?: unknown
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  oneOf?: unknown
}

/** Every field of the job file with its path. */
function fields(schema: Schema, path: string[] = []): { path: string[]; field: Schema }[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    { path: [...path, name], field },
    ...fields(field, [...path, name]),
  ])
}

const schema = jobFileJsonSchema() as Schema
const all = fields(schema)

/** What a field means only together with others. */
const BESIDE: Readonly<Record<string, object>> = {
  'resources.shm': { image: 'x' },
  image_login: { image: 'x', image_login: { username: 'x', password: 'X' } },
}

function merged(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const groups = Object.entries(over).map(([name, value]) =>
    isGroup(value) && isGroup(base[name]) ? [name, { ...base[name], ...value }] : [name, value],
  )
  return { ...base, ...(Object.fromEntries(groups) as object) }
}

const isGroup = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

describe("the job file's JSON Schema", () => {
  it('is the one in docs', () => {
    const file: unknown = JSON.parse(readFileSync(join(DOCS, 'job.schema.json'), 'utf8'))
    expect({ file, how: REGENERATE }).toEqual({ file: schema, how: REGENERATE })
  })

  it('has the fields of the job file and no others', () => {
    expect(all.map(({ path }) => path.join('.'))).toEqual([
      'name',
      'run',
      'script',
      'setup',
      'shell',
      'workdir',
      'image',
      'image_login',
      'image_login.username',
      'image_login.password',
      'inputs',
      'resources',
      'resources.gpus',
      'resources.gpu_memory',
      'resources.accelerators',
      'resources.instance_type',
      'resources.cpus',
      'resources.memory',
      'resources.disk',
      'resources.disk_throughput',
      'resources.disk_iops',
      'resources.shm',
      'duration',
      'work_family',
      'interruptible',
      'isolation',
      'accept',
      'checkpoint',
      'checkpoint.directory',
      'checkpoint.every',
      'checkpoint.size',
      'checkpoint.complete',
      'checkpoint.include',
      'checkpoint.exclude',
      'checkpoint.quiet',
      'checkpoint.signal',
      'checkpoint.keep',
      'on_rebalance',
      'deadline',
      'budget',
      'backends',
      'regions',
      'reservation',
      'reserved',
      'max_price',
      'optimize',
      'retries',
      'retries.failures',
      'retries.interruptions',
      'env',
      'secrets',
      'outputs',
      'require_outputs',
      'tags',
    ])
    expect(schema.additionalProperties).toBe(false)
    expect(schema.oneOf).toEqual([{ required: ['run'] }, { required: ['script'] }])
  })

  it.each(all.map(({ path, field }) => ({ name: path.join('.'), path, field })))(
    'explains $name and shows it',
    ({ path, field }) => {
      expect(field.description?.length).toBeGreaterThan(20)
      expect(field.examples?.length).toBeGreaterThan(0)
      // Each example, and the default, must be something that the reader takes.
      const values = [...field.examples!, ...(field.default === undefined ? [] : [field.default])]
      for (const value of values) {
        const nested = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as Record<
          string,
          unknown
        >
        const command = path[0] === 'run' || path[0] === 'script' ? {} : { run: 'x' }
        const nowMs = Date.UTC(2026, 10, 21)
        const read = parseJobObject(
          merged({ ...command, ...(BESIDE[path.join('.')] ?? BESIDE[path[0]!]) }, nested),
          {
            nowMs,
            defaultName: 'x',
            flagOf: () => undefined,
          },
        )
        expect(read).toEqual({ job: expect.any(Object) })
      }
    },
  )

  it('tells the defaults that the reader uses', () => {
    const defaults = Object.fromEntries(
      all
        .filter(({ field }) => field.default !== undefined && field.properties === undefined)
        .map(({ path, field }) => [path.join('.'), field.default]),
    )
    expect(defaults).toEqual({
      workdir: '.',
      interruptible: false,
      optimize: 'cost',
      'retries.failures': 0,
      'retries.interruptions': 100,
    })
  })
})

describe('docs/reference/job-file.md', () => {
  const page = readFileSync(join(DOCS, 'reference/job-file.md'), 'utf8')

  it('has the table of fields', () => {
    const table = /<!-- fields -->\n([^]*)\n<!-- \/fields -->/.exec(page)?.[1]
    expect({ table, how: REGENERATE }).toEqual({ table: fieldTable(jobFileJsonSchema()), how: REGENERATE })
  })
})
