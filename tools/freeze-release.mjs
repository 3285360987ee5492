// Keeps the recorded histories and documents of a release: npm run freeze-release -- VERSION
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Frozen parts: recorded workflows, the documents that the runner and the control plane exchange, and the store of one job. */
const KEPT = {
  histories: 'test/replay/histories',
  documents: 'test/runner/golden',
  store: 'test/replay/store',
}
const RELEASES = 'test/replay/releases'
/** Subfolders of the documents: refused ones, and tables that are not documents. */
const LEFT_OUT = ['invalid', 'vectors']

class Refusal extends Error {}

function check(version, root) {
  const current = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version
  if (version === undefined)
    throw new Refusal(`The version is missing. Run: npm run freeze-release -- ${current}`)
  if (version !== current)
    throw new Refusal(
      `"${version}" is not the version in package.json, which is ${current}; nothing was written. ` +
        'Check out the tag of the release, or correct the version.',
    )
  if (existsSync(join(root, RELEASES, version)))
    throw new Refusal(
      `${RELEASES}/${version} exists; nothing was written. A frozen release never changes: it stands for jobs that run.`,
    )
  const missing = Object.values(KEPT).find((folder) => !existsSync(join(root, folder)))
  if (missing !== undefined) throw new Refusal(`${missing} does not exist; nothing was written.`)
}

/** Copies next to the target and renames, so that an interrupted run leaves no half of a release. */
function freeze(version, root) {
  check(version, root)
  mkdirSync(join(root, RELEASES), { recursive: true })
  const unfinished = mkdtempSync(join(root, RELEASES, '.unfinished-'))
  try {
    for (const [name, from] of Object.entries(KEPT)) {
      const source = join(root, from)
      const isLeftOut = (path) => LEFT_OUT.some((folder) => path === join(source, folder))
      cpSync(source, join(unfinished, name), { recursive: true, filter: (path) => !isLeftOut(path) })
    }
    renameSync(unfinished, join(root, RELEASES, version))
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return readdirSync(join(root, RELEASES, version, 'histories')).length
}

const HELP = `npm run freeze-release -- VERSION copies the recorded histories and documents to ${RELEASES}/VERSION.
The tests replay the newest frozen release against the current code.`

const [version, root = dirname(dirname(fileURLToPath(import.meta.url)))] = process.argv.slice(2)
if (version === '--help' || version === '-h') console.log(HELP)
else
  try {
    const count = freeze(version, root)
    console.log(`${RELEASES}/${version}: ${count} histories, and documents. Commit it with the release.`)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    console.error(error.message)
    process.exitCode = 2
  }
