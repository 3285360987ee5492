// Refuses regular expressions of the product, in both languages, that take more than linear time: recheck judges them. A text of a job, a
// provider or a user may be made for them. `tools/patterns/exceptions.json` names those whose text is short, each with the reason, and
// `tools/patterns/safe.json` those that were judged before: recheck tries texts at random, and a new judgement may be another one. Each run
// renews it. Arguments are the only files to judge.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { check } from 'recheck'
import { filesOf, ROOT } from './content.mjs'
import { patternsOfPython } from './patterns/python.mjs'
import { patternsOfTypeScript } from './patterns/typescript.mjs'

const ROOMS = [
  ...[
    'activities',
    'backends',
    'bindings',
    'cli',
    'client',
    'core',
    'intake',
    'packages',
    'planner',
    'rehearse',
  ],
  ...['network', 'runner', 'service', 'storage', 'workers', 'workflows'],
]
const SAFE = join(ROOT, 'tools', 'patterns', 'safe.json')
/** A judgement takes milliseconds, or seconds where recheck has to try. */
const LIMIT_MS = 60_000

const exceptions = readJson(join(ROOT, 'tools', 'patterns', 'exceptions.json'), [])
const idOf = ({ source, flags, file, line }) => {
  const text = source === null ? `${file}:${line}` : `${source}/${flags}`
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function readJson(path, otherwise) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return otherwise
    throw error
  }
}

/** What is wrong with an expression; undefined for nothing. */
async function faultOf({ source, flags }) {
  const { status, complexity, error, attack } = await check(source, flags, { timeout: LIMIT_MS })
  if (status === 'safe') return undefined
  if (status === 'vulnerable') return `takes ${complexity.summary} time, as for ${attack.pattern}`
  return `could not be judged (${error?.kind}): write it in a simpler way`
}

const named = process.argv.slice(2)
const files =
  named.length > 0
    ? named.map((path) => relative(ROOT, path))
    : filesOf(...ROOMS).filter((file) => !/(?:^|\/)(?:test|dist|node_modules)\//.test(file))
const found = [
  ...patternsOfTypeScript(
    ROOT,
    files.filter((file) => /(?<!\.d)\.[cm]?[jt]s$/.test(file)),
  ),
  ...patternsOfPython(
    ROOT,
    files.filter((file) => file.endsWith('.py')),
  ),
]
const isExcepted = (pattern) =>
  exceptions.some(
    ({ file, source }) => pattern.file === file && (source === undefined || pattern.source === source),
  )
const safe = new Set(readJson(SAFE, []))
const faults = []
const waiting = [
  ...new Map(found.filter((one) => !isExcepted(one)).map((one) => [idOf(one), one])).values(),
].filter((one) => !safe.has(idOf(one)))

/** Keeps a judgement at once: a run may be cut off. */
function keep(id) {
  safe.add(id)
  if (named.length === 0) write([...safe])
}

function write(ids) {
  writeFileSync(SAFE, `${JSON.stringify(ids.sort(), null, 2)}\n`)
}

async function judge() {
  for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
    const fault = one.source === null ? 'is not a constant, so that nothing can judge it' : await faultOf(one)
    if (fault === undefined) keep(idOf(one))
    else faults.push(`${one.file}:${one.line} /${one.source ?? one.written ?? ''}/${one.flags} ${fault}`)
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, judge))
const ids = new Set(found.map(idOf).filter((id) => safe.has(id)))
if (named.length === 0 && ids.size < safe.size) write([...ids])
const unused = exceptions.filter(
  ({ file, source }) =>
    named.length === 0 &&
    !found.some((one) => one.file === file && (source === undefined || one.source === source)),
)
for (const { file, source } of unused)
  faults.push(`tools/patterns/exceptions.json: ${file} has no expression ${source ?? ''}`)
for (const fault of faults.sort()) process.stdout.write(`${fault}\n`)
// recheck keeps its agent, a process, open.
process.exit(faults.length > 0 ? 1 : 0)
