// Writes the skeleton of a backend, with its contract test: npm run new-backend -- NAME
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'

const TOOLS = dirname(fileURLToPath(import.meta.url))
const SKELETON = join(TOOLS, 'backend-skeleton')
/** The name is used for a folder, a task queue and environment variables. */
const NAME = /^[a-z][a-z0-9]{1,19}$/
/** Words with another meaning in job files, queues or tests. */
const TAKEN = ['backend', 'contract', 'orchestrator', 'scripted', 'spot', 'reserved', 'watch', 'none', 'all']

class Refusal extends Error {}

/** The files of the skeleton: where each is written, and its text. */
function filesFor(name) {
  const upper = name.toUpperCase()
  const pascal = name[0].toUpperCase() + name.slice(1)
  const named = (text) =>
    text.replaceAll('__NAME__', upper).replaceAll('__Name__', pascal).replaceAll('__name__', name)
  return readdirSync(SKELETON, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({
      path: named(relative(SKELETON, path)).replace(/\.txt$/, ''),
      text: named(readFileSync(path, 'utf8')),
    }))
    .sort((a, b) => a.path.localeCompare(b.path))
}

function checkName(name, root) {
  if (name === undefined || !NAME.test(name))
    throw new Refusal(
      `${name === undefined ? 'The name is missing.' : `"${name}" is not a name for a backend.`} ` +
        'Write 2 to 20 of a-z and 0-9, beginning with a letter, such as: npm run new-backend -- nimbus',
    )
  if (TAKEN.includes(name)) throw new Refusal(`"${name}" has another meaning here. Choose another name.`)
  const taken = [
    `backends/${name}`,
    `backends/${name}.ts`,
    `test/backends/${name}`,
    ...filesFor(name).map(({ path }) => path),
  ]
  const there = taken.find((path) => existsSync(join(root, path)))
  if (there !== undefined)
    throw new Refusal(`${there} exists; nothing was written. Choose another name, or remove it first.`)
}

/** A text of the tree with one insertion; fails before anything is written if the tree does not look as expected. */
function inserted(root, path, { before, text }) {
  const old = readFileSync(join(root, path), 'utf8')
  const at = old.search(before)
  if (at < 0)
    throw new Refusal(
      `${path} has no place for the backend: ${before} does not match. Correct tools/new-backend.mjs.`,
    )
  return { path, text: `${old.slice(0, at)}${text}${old.slice(at)}` }
}

/** The lines with which a backend becomes known: registry, settings and order of the pages. */
function edits(name, root) {
  const upper = name.toUpperCase()
  const pascal = name[0].toUpperCase() + name.slice(1)
  const imports = inserted(root, 'backends/registry.ts', {
    before: /\nexport \* from '\.\/account'/,
    text: `import { create${pascal}Backend } from './${name}'\nimport { ${upper}_SETTINGS, parse${pascal}Config } from './${name}/config'\n`,
  })
  const entry = `  ${name}: register({
    settings: ${upper}_SETTINGS,
    parse: parse${pascal}Config,
    create: create${pascal}Backend,
    needsGrants: () => true,
    isNear: false,
    isRemote: () => true,
  }),
`
  const at = /\}\n\n\/\*\* Sets up an account/
  if (!at.test(imports.text))
    throw new Refusal('backends/registry.ts has no end of BACKENDS. Correct tools/new-backend.mjs.')
  const registry = { ...imports, text: imports.text.replace(at, (end) => `${entry}${end}`) }
  const settings = inserted(root, 'docs/reference/configuration.md', {
    before: /The variables of a workload are/,
    text: `## The ${name} backend

Unfinished; the name for \`CRUCIBLE_BACKENDS\` is \`${name}\`.

| variable | meaning | unit | default |
|---|---|---|---|
| \`CRUCIBLE_${upper}_ENDPOINT\` | address of the API of ${name} | URL | https://api.${name}.example |

`,
  })
  const order = inserted(root, 'docs/order.json', {
    before: /"docs\/reference\/s3\.md"/,
    text: `"docs/reference/${name}.md",\n    `,
  })
  return [registry, settings, order]
}

/** Returns the paths that it wrote and changed. Throws before the first one is written, or not at all. */
async function generate(name, root) {
  checkName(name, root)
  const changed = edits(name, root)
  const written = filesFor(name)
  for (const file of [...written, ...changed]) {
    const path = join(root, file.path)
    const options = (await resolveConfig(path)) ?? {}
    if (file.path.endsWith('.ts')) file.text = await format(file.text, { ...options, filepath: path })
  }
  for (const { path, text } of [...written, ...changed]) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return { written: written.map(({ path }) => path), changed: changed.map(({ path }) => path) }
}

const HELP = `npm run new-backend -- NAME writes a backend that refuses to work until it is filled in:
its folder under backends/, a harness with the contract test, a page, and its line in the registry.`

const [name, root = dirname(TOOLS)] = process.argv.slice(2)
if (name === '--help' || name === '-h') console.log(HELP)
else
  try {
    const { written, changed } = await generate(name, root)
    console.log(`Written:\n${written.map((path) => `  ${path}`).join('\n')}`)
    console.log(`Changed:\n${changed.map((path) => `  ${path}`).join('\n')}`)
    console.log(`
Next:
  1. Follow docs/design/adding-a-backend.md, beginning with "Find out first".
  2. Fill in what this names, until it passes:
     npx jest --selectProjects unit --testPathPatterns backends/${name}.contract
  3. Rewrite docs/reference/${name}.md and its section of docs/reference/configuration.md.`)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    console.error(error.message)
    process.exitCode = 2
  }
