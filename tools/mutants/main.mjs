// npm run mutants -- --help
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { filesOf, ROOT } from '../content.mjs'
import { Checkout } from './checkout.mjs'
import { createTypeCheck, mutantsOf } from './generate.mjs'
import { sampleOf } from './sample.mjs'
import { readImports, testsOf } from './tests.mjs'

const USAGE = `npm run mutants -- [options] [files or folders]

Breaks the code on purpose, one place at a time, and counts how many breaks the tests catch. Prints each survivor. Files are those of
planner/, core/ and workflows/ unless named. The working tree is not touched.

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
  const files = filesOf(...(positionals.length === 0 ? ROOMS : positionals)).filter((path) =>
    /(?<!\.d)\.ts$/.test(path),
  )
  const all = (await Promise.all(files.map(mutantsOf))).flat()
  const drawn = sample === undefined ? all : sampleOf(all, sample, seed)
  return drawn.filter((_, index) => index % parts === part - 1)
}

const oneLine = (text) => text.replace(/\s+/g, ' ').slice(0, 120)
const wordsOf = ({ file, line, operator, before, after }) =>
  `${file}:${line} ${operator}\n    - ${oneLine(before)}\n    + ${oneLine(after) || '(nothing)'}`

class Hunt {
  checkout = new Checkout()
  /** Checks of types by project: the small one is faster, and knows only these rooms. */
  checks = new Map()
  imports = readImports()
  /** Results of the unchanged code for sets of tests: a mutant proves nothing when those fail. */
  baselines = new Map()

  constructor(hasServer) {
    this.hasServer = hasServer
  }

  compiles(mutant) {
    const project = ROOMS.includes(mutant.file.split('/')[0]) ? 'tsconfig.pure.json' : 'tsconfig.json'
    if (!this.checks.has(project)) this.checks.set(project, createTypeCheck(project))
    return this.checks.get(project)(mutant)
  }

  async judge(mutant) {
    if (!this.compiles(mutant)) return { verdict: 'refused' }
    const { unit, temporal } = testsOf(mutant.file, this.imports)
    for (const [project, tests] of [
      ['unit', unit],
      ['temporal', this.hasServer ? temporal : []],
    ]) {
      if (tests.length === 0) continue
      await this.expectPassing(project, tests)
      const { verdict, failures } = await this.checkout.testWith(mutant, project, tests)
      if (verdict !== 'passed') return { verdict: 'caught', by: failures[0]?.name ?? 'its time' }
    }
    return { verdict: 'survived' }
  }

  async expectPassing(project, tests) {
    const key = `${project} ${tests.join(' ')}`
    this.baselines.set(
      key,
      this.baselines.get(key) ?? (await this.checkout.testWith(undefined, project, tests)),
    )
    const { verdict, failures } = this.baselines.get(key)
    if (verdict === 'passed') return
    throw new Error(
      `These tests fail without any mutant; fix them first:\n${failures.map(({ name, message }) => `${name}\n${message}`).join('\n')}`,
    )
  }
}

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
  const mutants = await chosen(options)
  if (options.list) return mutants.forEach((mutant) => console.log(wordsOf(mutant)))
  const hunt = new Hunt(!options['without-server'])
  const results = []
  process.once('SIGINT', () => {
    hunt.checkout.remove()
    summarise(results)
    process.exit(130)
  })
  try {
    for (const [index, mutant] of mutants.entries()) {
      const result = { mutant, ...(await hunt.judge(mutant)) }
      results.push(result)
      const { verdict, by } = result
      if (verdict !== 'refused')
        console.log(
          `${index + 1}/${mutants.length} ${verdict === 'survived' ? '✗ SURVIVED' : '✓ caught'} ${wordsOf(mutant)}${by ? `\n    by ${by}` : ''}`,
        )
    }
  } finally {
    hunt.checkout.remove()
    summarise(results)
  }
  if (results.some(({ verdict }) => verdict === 'survived')) process.exitCode = 1
}

main().catch((error) => {
  console.error(error.message)
  process.exitCode = 2
})
