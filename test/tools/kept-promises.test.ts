import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, jest } from '@jest/globals'
import { parser } from 'typescript-eslint'
import { Linter, type Rule } from 'eslint'
import { createProgram, ScriptTarget } from 'typescript'
import { chosen } from '../support/selection'

jest.setTimeout(60_000)

const { keptPromises } = jest.requireActual<{ keptPromises: Rule.RuleModule }>('../../tools/kept-promises.js')

const HEAD = [
  'declare function kept<T>(promise: Promise<T>): Promise<T>',
  'declare function work(): Promise<void>',
  'declare function name(): string',
]

/** What the rule says about lines of a function. */
function complaints(...lines: string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'kept-promises-'))
  try {
    const file = join(folder, 'workflow.ts')
    const code = [...HEAD, 'export async function workflow() {', ...lines, '}'].join('\n')
    writeFileSync(file, code)
    const programs = [createProgram([file], { target: ScriptTarget.ES2022 })]
    const config: Linter.Config = {
      files: ['**/*.ts'],
      languageOptions: { parser, parserOptions: { programs } },
      plugins: { crucible: { rules: { 'kept-promises': keptPromises } } },
      rules: { 'crucible/kept-promises': 'error' },
    }
    return new Linter({ cwd: folder }).verify(code, config, file).map(({ message }) => message)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

it.each([
  ['const later = work()', 'await later'],
  ['let later: Promise<void>', 'later = work()', 'await later'],
  ['const later = work().finally(() => undefined)', 'await later'],
])('lint refuses a promise of workflow code that may reject before anything awaits it: %s', (...lines) => {
  expect(complaints(...lines)).toEqual([expect.stringContaining('kept()')])
})

it.each(
  chosen(
    ['const later = kept(work())', 'const done = await work()', 'const word = name()'],
    ['const later = kept(work())'],
  ),
)('lint lets pass what is awaited at once, kept, or no promise: %s', (line) => {
  expect(complaints(line)).toEqual([])
})
