// Checks the words that people read against tools/prose/words.yml: pages without their code, and the strings and comments of sources.
//
//   npm run lint:prose                          every page, and the sources of SOURCES below
//   node tools/lint-prose.mjs docs/faq.md cli/kit/help.ts
//
// A line that quotes a refused phrase on purpose ends with <!-- prose-ok --> (Markdown), // prose-ok or # prose-ok (sources).
import { mkdirSync, existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLinter, loadTextlintrc } from 'textlint'
import { CACHE, hashOf, ROOT } from './content.mjs'
import { piecesOfPython, piecesOfScript } from './prose/pieces.mjs'

const PAGES = [
  'README.md',
  'AGENTS.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'STYLE.md',
  'docs',
  'packages/analyzer/README.md',
  'packages/small-cloud/README.md',
  'packages/small-cloud/WORLDS.md',
  'examples/char-lm/README.md',
  'examples/nanogpt/README.md',
  'bindings/python/README.md',
  'bindings/python/truffle/README.md',
  'bindings/python/crucible/README.md',
]
/** Files and folders of sources whose help texts, messages, test names and comments are checked. */
const SOURCES = [
  ...Object.keys(JSON.parse(readFileSync(join(ROOT, 'tools', 'import-law.json'), 'utf8')).rooms),
  ...['runner', 'tools', 'examples', 'bindings'],
  'packages/small-cloud/build.mjs',
  'packages/small-cloud/src',
  'packages/small-cloud/test',
  'test',
]
/** Scripts as users write them, some with syntax errors. */
const SKIPPED = ['test/analyze/scripts', 'test/analyze/held-out']
/** The files that passed last, by their contents. */
const PASSED = join(CACHE, 'prose.json')
const RULES = [
  'tools/lint-prose.mjs',
  'tools/prose/pieces.mjs',
  'tools/prose/pieces.py',
  'tools/prose/words.yml',
]
const SOURCE = /\.(ts|mjs|js|py)$/

function filesUnder(path, extension) {
  const full = join(ROOT, path)
  if (!existsSync(full)) throw new Error(`${path} does not exist; correct the list in tools/lint-prose.mjs.`)
  if (SKIPPED.includes(path)) return []
  if (!statSync(full).isDirectory()) return [path]
  return readdirSync(full, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() || extension.test(entry.name))
    .flatMap((entry) => filesUnder(join(path, entry.name), extension))
}

/** Returns a page without its generated parts (`<!-- name -->` to `<!-- /name -->`), whose words are checked at their source. */
export function withoutGenerated(page) {
  return page.replace(/<!-- ([\w-]+) -->[^]*?<!-- \/\1 -->/g, (part) => part.replace(/[^\n]+/g, ''))
}

/** Arranges the pieces of a source in one text with the same line numbers, so that the linter is called once per file. */
function laidOut(pieces) {
  const lines = []
  for (const { line, text } of pieces)
    text.split('\n').forEach((part, index) => {
      const at = line - 1 + index
      // A bar separates two strings of a line, so that no phrase is found across them.
      lines[at] = lines[at] === undefined ? part : `${lines[at]} | ${part}`
    })
  return Array.from(lines, (line) => line ?? '').join('\n')
}

/** Returns the text of each file in the form for the linter. */
function textsOf(files) {
  const scripts = files.filter((path) => SOURCE.test(path))
  const python = scripts.filter((path) => path.endsWith('.py'))
  const pythonPieces = piecesOfPython(python.map((path) => join(ROOT, path)))
  return new Map(
    files.map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8')
      if (!scripts.includes(path)) return [path, withoutGenerated(text)]
      const pieces = path.endsWith('.py') ? pythonPieces[python.indexOf(path)] : piecesOfScript(path, text)
      return [path, laidOut(pieces)]
    }),
  )
}

/** Returns the refused phrases of one file, as `file:line: message`. */
async function problemsOf(linter, path, text) {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n')
  const { messages } = await linter.lintText(text, `${path}${SOURCE.test(path) ? '.txt' : '.md'}`)
  return messages
    .map((message) => ({ line: message.loc.start.line, text: message.message }))
    .filter(({ line }) => !/prose-ok/.test(lines[line - 1] ?? ''))
    .map((message) => `${path}:${message.line}: ${message.text}`)
}

/** Hashes of files that passed with the same rules. */
function readPassed(rules) {
  try {
    const passed = JSON.parse(readFileSync(PASSED, 'utf8'))
    return passed.rules === rules ? passed.files : {}
  } catch {
    return {}
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.slice(2).map((path) => relative(ROOT, join(process.cwd(), path)))
  const files =
    asked.length > 0
      ? asked
      : [
          ...PAGES.flatMap((path) => filesUnder(path, /\.md$/)),
          ...SOURCES.flatMap((path) => filesUnder(path, SOURCE)),
        ]
  const rules = hashOf(RULES)
  const passed = readPassed(rules)
  const hashes = Object.fromEntries(files.map((path) => [path, hashOf([path])]))
  const changed = files.filter((path) => passed[path] !== hashes[path])
  const linter = createLinter({
    descriptor: await loadTextlintrc({ configFilePath: join(ROOT, '.textlintrc.json') }),
  })
  const failed = new Set()
  for (const [path, text] of textsOf(changed)) {
    const problems = await problemsOf(linter, path, text)
    for (const problem of problems) console.error(problem)
    if (problems.length > 0) failed.add(path)
  }
  if (asked.length === 0) {
    const good = Object.entries(hashes).filter(([path]) => !failed.has(path))
    mkdirSync(CACHE, { recursive: true })
    writeFileSync(PASSED, JSON.stringify({ rules, files: Object.fromEntries(good) }))
  }
  console.log(`prose: ${files.length} files, ${failed.size} with problems`)
  process.exitCode = failed.size === 0 ? 0 : 1
}
