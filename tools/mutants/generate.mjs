// Generates mutants of source files: Stryker's operators, all of them in the code at once.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { ROOT } from '../content.mjs'

/**
 * String mutants are left out: the compiler refuses an empty code, name or kind, and only tests of wording could catch an empty message.
 */
const LEFT_OUT = ['StringLiteral']

const silent = new Proxy(
  {},
  { get: (_, name) => (String(name).startsWith('is') ? () => false : () => undefined) },
)

/**
 * Returns every mutant of some files, in order (its id, its position, its replacement, and the file's whole text with it), and the files
 * with all their mutants. A global variable activates one of them.
 */
export async function mutantsOf(names) {
  const contents = new Map(names.map((name) => [name, readFileSync(join(ROOT, name), 'utf8')]))
  const { mutants, files } = await new Instrumenter(silent).instrument(
    [...contents].map(([name, content]) => ({ name, content, mutate: true })),
    { excludedMutations: LEFT_OUT, ignorers: [], plugins: null },
  )
  const starts = new Map([...contents].map(([name, content]) => [name, lineStarts(content)]))
  const chosen = mutants.filter(({ status }) => status !== 'Ignored')
  return {
    instrumented: files.map(({ name, content }) => ({ name, content })),
    mutants: chosen.map(({ id, fileName, mutatorName, replacement, location }) => {
      const original = contents.get(fileName)
      const offset = ({ line, column }) => starts.get(fileName)[line] + column
      const [from, to] = [offset(location.start), offset(location.end)]
      return {
        id,
        file: fileName,
        line: location.start.line + 1,
        operator: mutatorName,
        before: original.slice(from, to),
        after: replacement,
        original,
        text: original.slice(0, from) + replacement + original.slice(to),
      }
    }),
  }
}

function lineStarts(text) {
  const starts = [0]
  for (let index = text.indexOf('\n'); index >= 0; index = text.indexOf('\n', index + 1))
    starts.push(index + 1)
  return starts
}
