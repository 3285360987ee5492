import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'

interface Suite {
  name: string
  /** Its test files. */
  files: string[]
  /** What these import, directly or not, and the suite is not said to read. */
  strays: string[]
}

const PROGRAM = `
import { readImports } from './tools/mutants/tests.mjs'
import { readFileSync } from 'node:fs'
import { SUITES, reads } from './tools/suites.mjs'
const { include } = JSON.parse(readFileSync('tsconfig.json', 'utf8'))
const imports = readImports(include)
console.log(JSON.stringify(SUITES.map((suite) => {
  const files = [...imports.keys()].filter((path) => suite.tests.test(path))
  const reached = new Set(files)
  for (const path of reached) for (const target of imports.get(path) ?? []) reached.add(target)
  return { name: suite.name, files, strays: [...reached].filter((path) => !reads(suite, path)) }
})))`

const SUITES = JSON.parse(
  execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM], {
    cwd: join(__dirname, '..', '..'),
    encoding: 'utf8',
  }),
) as Suite[]

it.each(SUITES.map(({ name, ...suite }) => [name, suite] as const))(
  'npm test knows every file that the %s import',
  (_, { files, strays }) => {
    expect(files).not.toEqual([])
    expect(strays).toEqual([])
  },
)
