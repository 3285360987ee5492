// Writes the generated parts of the command line's pages in docs/reference from the commands' own help. `node tools/gen-cli-docs.mjs`; a
// test fails when they are out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import './typescript.mjs'

const require = createRequire(import.meta.url)
const { referenceParts } = require('../cli/kit/reference.ts')

for (const { page, name, text } of await referenceParts()) {
  const file = new URL(`../docs/reference/${page}`, import.meta.url)
  const marked = new RegExp(`(<!-- ${name} -->\\n)[^]*(<!-- /${name} -->)`)
  const written = readFileSync(file, 'utf8').replace(marked, (_, begin, end) => `${begin}\n${text}\n\n${end}`)
  writeFileSync(file, written)
}
