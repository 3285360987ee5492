// Checks the words that people read against tools/prose/words.yml: pages without their code, and the strings of TypeScript files.
//
//   npm run lint:prose                          every page, and the strings of STRINGS below
//   node tools/lint-prose.mjs docs/faq.md cli/help.ts
//
// A line that quotes a refused phrase on purpose ends with <!-- prose-ok --> (Markdown) or // prose-ok (TypeScript).
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLinter, loadTextlintrc } from 'textlint'
import typescript from 'typescript'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'docs',
  'packages/small-cloud/README.md',
  'packages/small-cloud/WORLDS.md',
  'examples/char-lm/README.md',
  'examples/nanogpt/README.md',
]
/** Files and folders of TypeScript whose help texts and messages are checked; add a path once its texts pass. */
const STRINGS = []
/** Dated records, which are not edited after acceptance. */
const SKIPPED = ['docs/decisions']

function filesUnder(path, extension) {
  const full = join(ROOT, path)
  if (!existsSync(full)) throw new Error(`${path} does not exist; correct the list in tools/lint-prose.mjs.`)
  if (SKIPPED.includes(path)) return []
  if (!statSync(full).isDirectory()) return [path]
  return readdirSync(full, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() || entry.name.endsWith(extension))
    .flatMap((entry) => filesUnder(join(path, entry.name), extension))
}

/** The strings and templates of a TypeScript file that hold more than one word, each on the line where it begins. */
export function stringsOf(path, text) {
  const source = typescript.createSourceFile(path, text, typescript.ScriptTarget.Latest, true)
  const found = []
  const visit = (node) => {
    const isText = typescript.isStringLiteralLike(node) || typescript.isTemplateHead(node)
    const isRest = typescript.isTemplateMiddle(node) || typescript.isTemplateTail(node)
    if ((isText || isRest) && /\S\s+\S/.test(node.text)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart())
      found.push({ text: node.text, line: line + 1 })
    }
    typescript.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** A page without its generated parts (`<!-- name -->` to `<!-- /name -->`): their words are checked where they come from. */
export function withoutGenerated(page) {
  return page.replace(/<!-- ([\w-]+) -->[^]*?<!-- \/\1 -->/g, (part) => part.replace(/[^\n]+/g, ''))
}

/** What is refused in one file, as `file:line: message`. */
export async function problemsOf(linter, path) {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const lines = text.split('\n')
  const pieces = path.endsWith('.ts') ? stringsOf(path, text) : [{ text: withoutGenerated(text), line: 1 }]
  const kind = path.endsWith('.ts') ? '.txt' : '.md'
  const found = []
  for (const piece of pieces) {
    const { messages } = await linter.lintText(piece.text, `${path}${kind}`)
    for (const message of messages) {
      const line = piece.line + message.loc.start.line - 1
      if (!/prose-ok/.test(lines[line - 1])) found.push(`${path}:${line}: ${message.message}`)
    }
  }
  return found
}

export async function makeLinter() {
  return createLinter({
    descriptor: await loadTextlintrc({ configFilePath: join(ROOT, '.textlintrc.json') }),
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.slice(2).map((path) => relative(ROOT, join(process.cwd(), path)))
  const files =
    asked.length > 0
      ? asked
      : [
          ...PAGES.flatMap((path) => filesUnder(path, '.md')),
          ...STRINGS.flatMap((path) => filesUnder(path, '.ts')),
        ]
  const linter = await makeLinter()
  const problems = (await Promise.all(files.map((file) => problemsOf(linter, file)))).flat()
  for (const problem of problems) console.error(problem)
  console.log(`prose: ${files.length} files, ${problems.length} problems`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
