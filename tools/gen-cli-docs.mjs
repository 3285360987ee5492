// Writes the generated parts of the command line's pages in docs/reference from the commands' own help. `node tools/gen-cli-docs.mjs`; a
// test fails when they are out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { transformSync } from '@swc/core'

const require = createRequire(import.meta.url)
// Loads the sources instead of a build, which may be older.
require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    filename,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  })
  module._compile(code, filename)
}
const { referenceParts } = require('../cli/reference.ts')

for (const { page, name, text } of await referenceParts()) {
  const file = new URL(`../docs/reference/${page}`, import.meta.url)
  const marked = new RegExp(`(<!-- ${name} -->\\n)[^]*(<!-- /${name} -->)`)
  const written = readFileSync(file, 'utf8').replace(marked, (_, begin, end) => `${begin}\n${text}\n\n${end}`)
  writeFileSync(file, written)
}
