// npm run mutants -- --help
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { filesOf, ROOT } from '../content.mjs'
import { compiling } from './compile.mjs'
import { mutantsOf } from './generate.mjs'
import { Hunt } from './hunt.mjs'
import { madePythonMutants, PythonHunt, pythonMutantsOf } from './python/hunt.mjs'
import { sampleOf } from './sample.mjs'

const USAGE = `npm run mutants -- [options] [files or folders]

Breaks the code on purpose, one place at a time, and counts how many breaks the tests catch. Prints each survivor. Files are those of
planner/, core/ and workflows/ unless named; "runner" is the runner, in Python. The working tree is not touched.

  --sample N      as many of the mutants, drawn by chance (all)
  --seed N        of the draw (1)
  --part N/M      the Nth of M equal shares of what was drawn, to spread a run over machines (1/1)
  --list          print the mutants, and run nothing
  --without-server   leave out the tests that need a Temporal server
`
const ROOMS = ['planner', 'core', 'workflows']

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      sample: { type: 'string' },
      seed: { type: 'string', default: '1' },
      part: { type: 'string', default: '1/1' },
      list: { type: 'boolean' },
      'without-server': { type: 'boolean' },
    },
  })
  for (const path of positionals)
    if (!existsSync(join(ROOT, path)))
      throw new Error(`There is no ${path}. Name files or folders from the repository's root.`)
  const number = (name) => {
    if (values[name] === undefined) return undefined
    if (!/^\d+$/.test(values[name])) throw new Error(`--${name} takes a whole number, not ${values[name]}.`)
    return Number(values[name])
  }
  const [, part, parts] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(values.part) ?? []
  if (part === undefined || Number(part) > Number(parts))
    throw new Error(`--part takes N/M, such as 1/4, not ${values.part}.`)
  return {
    ...values,
    positionals,
    sample: number('sample'),
    seed: number('seed'),
    part: [Number(part), Number(parts)],
  }
}

async function chosen({ positionals, sample, seed, part: [part, parts] }) {
  const files = filesOf(...(positionals.length === 0 ? ROOMS : positionals))
  const { mutants, instrumented } = await mutantsOf(files.filter((path) => /(?<!\.d)\.ts$/.test(path)))
  const all = [...mutants, ...(await pythonMutantsOf(files))]
  const drawn = sample === undefined ? all : sampleOf(all, sample, seed)
  const own = drawn.filter((_, index) => index % parts === part - 1)
  const python = await madePythonMutants(own.filter(({ isPython }) => isPython))
  return { mutants: own.filter(({ isPython }) => !isPython), python, instrumented }
}

const oneLine = (text) => text.replace(/\s+/g, ' ').slice(0, 120)
const wordsOf = ({ file, line, operator, before, after }) =>
  `${file}:${line} ${operator}\n    - ${oneLine(before)}\n    + ${oneLine(after) || '(nothing)'}`

function summarise(results) {
  console.log(
    `\n${'room'.padEnd(12)}${['caught', 'survived', 'score', 'not compiling'].map((word) => word.padStart(14)).join('')}`,
  )
  const rooms = [...new Set(results.map(({ mutant }) => mutant.file.split('/')[0]))]
  for (const room of [...rooms, 'all']) {
    const of = (verdict) =>
      results.filter(
        (each) => each.verdict === verdict && (room === 'all' || each.mutant.file.startsWith(`${room}/`)),
      ).length
    const [caught, survived, refused] = ['caught', 'survived', 'refused'].map(of)
    const score = caught + survived === 0 ? '-' : `${((100 * caught) / (caught + survived)).toFixed(1)} %`
    console.log(
      room.padEnd(12) + [caught, survived, score, refused].map((cell) => String(cell).padStart(14)).join(''),
    )
  }
}

async function main() {
  const options = readArguments()
  if (options.help) return console.log(USAGE)
  const { mutants, python, instrumented } = await chosen(options)
  if (options.list) return [...mutants, ...python].forEach((mutant) => console.log(wordsOf(mutant)))
  const possible = new Set(await compiling(mutants))
  const results = mutants
    .filter((mutant) => !possible.has(mutant))
    .map((mutant) => ({ mutant, verdict: 'refused' }))
  const settled = ({ mutant, verdict, by }) => {
    results.push({ mutant, verdict })
    const words = verdict === 'survived' ? '✗ SURVIVED' : '✓ caught'
    const count = mutants.length + python.length
    console.log(`${results.length}/${count} ${words} ${wordsOf(mutant)}${by ? `\n    by ${by}` : ''}`)
  }
  const hunts = []
  if (possible.size > 0) {
    const hasServer = !options['without-server']
    hunts.push(new Hunt({ mutants: [...possible], instrumented, hasServer, settled }))
  }
  if (python.length > 0) hunts.push(new PythonHunt({ mutants: python, settled }))
  const remove = () => hunts.forEach((hunt) => hunt.remove())
  process.once('SIGINT', () => {
    remove()
    summarise(results)
    process.exit(130)
  })
  try {
    for (const hunt of hunts) await hunt.run()
  } finally {
    remove()
    summarise(results)
  }
  if (results.some(({ verdict }) => verdict === 'survived')) process.exitCode = 1
}

main().catch((error) => {
  console.error(error.message)
  process.exitCode = 2
})
