// Writes core/accelerator-speeds.ts from the measurements and data sheets in tools/speeds/; `node tools/gen-speeds.mjs`. With --check it
// writes nothing: exit code 1 if the file is out of date, and how often a range holds a model that it was not made from, by family of work.
import { readFileSync, writeFileSync } from 'node:fs'
import prettier from 'prettier'
import {
  familiesOf,
  heldOf,
  leaveOneOut,
  leaveTypesOut,
  linesOf,
  POOLED,
  quantile90,
  speedsOf,
} from './speeds/fit.mjs'

const FILE = new URL('../core/accelerator-speeds.ts', import.meta.url)
const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
const measured = read('speeds/measured.json')
const sheets = { ...read('speeds/data-sheets.json'), reference: measured.reference }

const families = familiesOf(measured).map((name) => {
  const lines = linesOf(measured, name)
  return { name, lines, measured: leaveOneOut(lines, sheets), derived: leaveTypesOut(lines, sheets) }
})
// Few types of a family were measured, so all families together judge how far a data sheet misses.
const derived = families.filter(({ name }) => name !== POOLED).flatMap((family) => family.derived)
const speeds = families.map(({ name, lines, measured: cases }) => [
  name,
  speedsOf(lines, sheets, { measured: quantile90(cases), derived: quantile90(derived) }),
])

const sources = Object.values(measured.sources)
  .map(({ where, commit, date }) => ` * - ${where}: commit ${commit} of ${date}.`)
  .join('\n')
const text = `// Made by tools/gen-speeds.mjs; do not edit.
import type { SpeedTable } from './speed'

/**
 * Training speed relative to an ${measured.reference}, by family of work and type. Of ten models, nine are between \`factor / spread\` and
 * \`factor * spread\`. \`measured\` counts the measurements; types without any are derived from throughput and memory bandwidth.
 *
 * Measurements, read ${measured.read}:
 *
${sources}
 *
 * Throughput and bandwidth: ${sheets.source}
 */
export const ACCELERATOR_SPEEDS: SpeedTable = ${JSON.stringify(Object.fromEntries(speeds))}
`
const style = await prettier.resolveConfig(FILE)
const formatted = await prettier.format(text, { ...style, parser: 'typescript' })
if (process.argv.includes('--check')) {
  const shown = [...families, { name: 'types without measurements', measured: derived }]
  for (const { name, measured: cases } of shown) {
    const share = ((heldOf(cases) / cases.length) * 100).toFixed(1)
    console.log(`${name}: ${heldOf(cases)} of ${cases.length} left out are in the range (${share} %)`)
  }
  if (readFileSync(FILE, 'utf8') !== formatted) {
    console.error('core/accelerator-speeds.ts is out of date: run `node tools/gen-speeds.mjs`.')
    process.exitCode = 1
  }
} else writeFileSync(FILE, formatted)
