// Writes the generated parts of docs/cli.md from the commands' own help. `node tools/gen-cli-docs.mjs`; a test fails when they are
// out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { transformSync } from '@swc/core'

const require = createRequire(import.meta.url)
// The sources themselves rather than a build, which may be older.
require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    filename,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  })
  module._compile(code, filename)
}
const { referenceParts } = require('../cli/reference.ts')

const file = new URL('../docs/cli.md', import.meta.url)
let page = readFileSync(file, 'utf8')
for (const [name, text] of Object.entries(await referenceParts())) {
  const marked = new RegExp(`(<!-- ${name} -->\\n)[^]*(<!-- /${name} -->)`)
  page = page.replace(marked, (_, begin, end) => `${begin}\n${text}\n\n${end}`)
}
writeFileSync(file, page)
