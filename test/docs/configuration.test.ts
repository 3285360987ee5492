import { readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { BACKENDS } from '../../backends/registry'
import { DEFAULT_TIMING, FILE_STORE_PACE } from '../../core/time/timing'
import { formatDuration } from '../../core/time/time'
import { LOG_LEVELS, TIMING_SETTINGS } from '../../service/config'

const ROOT = join(__dirname, '..', '..')
const PAGE = readFileSync(join(ROOT, 'docs', 'reference', 'configuration.md'), 'utf8')
/** Backends with a page of their own have their settings there. */
const PAGES_OF_BACKENDS = readdirSync(join(ROOT, 'docs', 'backends')).map((name) =>
  readFileSync(join(ROOT, 'docs', 'backends', name), 'utf8'),
)
const ROWS = [PAGE, ...PAGES_OF_BACKENDS.map(settingsOf)]
  .join('\n')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
const documented = ROWS.map((row) => /^\| `([^`]+)` \|/.exec(row)![1]!)

const SOURCES = ['storage', 'backends', 'service', 'workers', 'client', 'cli']
/** What a workload or a bootstrap is given, not a setting: docs/reference/runner-protocol-attempt.md and -store.md. */
const OF_WORKLOADS = [
  'CRUCIBLE_BOOTSTRAP',
  'CRUCIBLE_CONTROL_DIR',
  'CRUCIBLE_MACHINE',
  'CRUCIBLE_OUTPUT_DIR',
  'CRUCIBLE_RESUME_FROM',
  'CRUCIBLE_CHECKPOINT_DIR',
]

/** The section about settings: other tables are about other things. */
function settingsOf(page: string): string {
  return /\n## Settings\n([^]*?)(?:\n## |$)/.exec(page)![1]!
}

function textsUnder(folder: string): { path: string; text: string }[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(ROOT, path), text: readFileSync(path, 'utf8') }))
}

const sources = SOURCES.flatMap(textsUnder)

describe('docs/reference/configuration.md, with the pages of backends', () => {
  it('lists every setting that the code names, once, and no other', () => {
    const named = sources.flatMap(({ text }) => text.match(/\bCRUCIBLE_[A-Z0-9_]*[A-Z0-9]\b/g) ?? [])
    const settings = new Set(named.filter((name) => !OF_WORKLOADS.includes(name)))
    const listed = documented.filter((name) => name.startsWith('CRUCIBLE_'))
    expect([...listed].sort()).toEqual([...settings].sort())
  })

  it('lists what else config files read from the environment', () => {
    const others = sources
      .filter(({ path }) => /config\.ts$/.test(path))
      .flatMap(({ text }) =>
        [...text.matchAll(/\benv(?:ironment)?\.([A-Z][A-Z0-9_]+)/g)].map(([, name]) => name!),
      )
      .filter((name) => !name.startsWith('CRUCIBLE_'))
    for (const name of [...others, 'NO_COLOR', 'TERM']) expect(documented).toContain(name)
  })

  it.each(TIMING_SETTINGS)('has the duration $name as the workers have it', ({ name, key, meaning }) => {
    const usual = formatDuration(DEFAULT_TIMING[key])
    const pace = (FILE_STORE_PACE as Partial<typeof DEFAULT_TIMING>)[key]
    const fallback =
      pace === undefined || pace === DEFAULT_TIMING[key]
        ? usual
        : `${usual}; ${formatDuration(pace)} with a store on this machine`
    expect(ROWS).toContain(`| \`${name}\` | ${meaning} | duration | ${fallback} |`)
  })

  it.each(
    Object.entries(BACKENDS).flatMap(([backend, { settings }]) =>
      settings.map((one) => ({ backend, ...one })),
    ),
  )(
    'has the setting $name of the $backend backend as the backend has it',
    ({ name, default: fallback, meaning }) => {
      expect(ROWS.find((row) => row.startsWith(`| \`${name}\` | ${meaning} |`))).toMatch(
        new RegExp(`\\| ${fallback.replace(/[~.*{}]/g, '\\$&')} \\|$`),
      )
    },
  )

  it('names every log level and every backend', () => {
    for (const word of [...LOG_LEVELS, ...Object.keys(BACKENDS)]) expect(PAGE).toContain(`\`${word}\``)
  })
})
