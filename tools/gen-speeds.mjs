// Writes core/accelerator-speeds.ts from the measurements and data sheets in tools/speeds/; `node tools/gen-speeds.mjs`. With --check it
// writes nothing: exit code 1 if the file is out of date, and how often a range holds a model that it was not made from.
import { readFileSync, writeFileSync } from 'node:fs'
import prettier from 'prettier'
import { coverage, speedsFrom } from './speeds/fit.mjs'

const FILE = new URL('../core/accelerator-speeds.ts', import.meta.url)
const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
const measured = read('speeds/measured.json')
const sheets = read('speeds/data-sheets.json')

const text = `// Made by tools/gen-speeds.mjs; do not edit.
import type { RelativeSpeed } from './speed'

/**
 * Training speed in mixed precision relative to an ${measured.reference}: of ten models, nine are between \`low\` and \`high\`.
 *
 * Measured: ${measured.source}.
 *
 * Derived from them by throughput and memory bandwidth: ${sheets.source}
 */
export const ACCELERATOR_SPEEDS: Readonly<Record<string, RelativeSpeed>> = ${JSON.stringify(speedsFrom(sheets, measured))}
`
const style = await prettier.resolveConfig(FILE)
const formatted = await prettier.format(text, { ...style, parser: 'typescript' })
if (process.argv.includes('--check')) {
  const { held, all } = coverage(measured)
  console.log(
    `${held} of ${all} models that were left out are in the range (${((held / all) * 100).toFixed(1)} %)`,
  )
  if (readFileSync(FILE, 'utf8') !== formatted) {
    console.error('core/accelerator-speeds.ts is out of date: run `node tools/gen-speeds.mjs`.')
    process.exitCode = 1
  }
} else writeFileSync(FILE, formatted)
