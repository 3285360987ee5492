// Builds dist/. Each step is skipped when the hash of its inputs is unchanged since the last build.
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { filesOf, hashOf, ROOT } from './content.mjs'

/** The state of the build is in its own folder: checkouts may share node_modules, but not their builds. Packages omit caches. */
const STATE = join(ROOT, 'dist', 'build.cache')
const BUILD_INFO = join(ROOT, 'dist', 'types.cache')
const RUNNER = 'dist/runner/crucible-runner.pyz'
/** Packed in the runner. */
const HELPERS = 'bindings/python/crucible/src/crucible/checkpoint'
/** Programs that backends send to machines, as text. */
const MACHINE_PROGRAMS = [
  'bootstrap.py',
  'launching.py',
  'crucible_runner/machine_timer.py',
  'crucible_runner/sealing.py',
]
/** Grammar with which `crucible analyze` reads scripts. Its package compiles when it is installed, so users get only this file. */
const GRAMMAR = 'dist/packages/analyzer/src/tree-sitter-python.wasm'
const BUNDLE = 'dist/workers/workflow-bundle.js'
/** The names in cli/quick.ts; the code cache works only with this version of Node. */
const QUICK = 'dist/cli/quick-commands'
const QUICK_OUTPUTS = [
  `${QUICK}.js`,
  `${QUICK}.licenses.txt`,
  `${QUICK}.js.${process.version}-${process.arch}.cache`,
]
const QUICK_TOOLS = ['tools/quick.mjs', 'tools/quick-cache.mjs']

/** The folders to compile, from tsconfig.json. */
function folders() {
  const { include } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'))
  return include.filter((name) => !/(^|\/)test$/.test(name) && existsSync(join(ROOT, name)))
}

const isSource = (file) => file.endsWith('.ts') && !file.endsWith('.d.ts')
const outputOf = (source) => `dist/${source.replace(/\.ts$/, '.js')}`
/** Files that the code reads at run time. The runner is included as its zipapp. */
const isAsset = (file) => !file.endsWith('.ts') && !file.endsWith('.md')

/** The steps in order. A step's dependencies on earlier steps are among its inputs. */
function steps() {
  const code = filesOf(...folders())
  const sources = code.filter(isSource)
  const assets = code.filter(isAsset)
  const settings = ['tools/build.mjs', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json']
  return [
    { name: 'code', inputs: [...sources, ...settings], outputs: sources.map(outputOf), run: compile },
    {
      name: 'assets',
      inputs: assets,
      outputs: assets.map((file) => `dist/${file}`),
      run: () => assets.forEach((file) => copy(file, `dist/${file}`)),
    },
    {
      name: 'Python grammar',
      inputs: ['tools/build.mjs', 'package-lock.json'],
      outputs: [GRAMMAR],
      run: () => copy('node_modules/tree-sitter-python/tree-sitter-python.wasm', GRAMMAR),
    },
    {
      name: 'runner',
      inputs: filesOf('runner', HELPERS, 'tools/runner-zip.mjs'),
      outputs: [RUNNER, ...MACHINE_PROGRAMS.map((name) => `dist/runner/${name}`)],
      run: () => {
        runNode([join(ROOT, 'tools', 'runner-zip.mjs')], 'The runner could not be packed')
        for (const name of MACHINE_PROGRAMS) copy(`runner/${name}`, `dist/runner/${name}`)
      },
    },
    {
      name: 'workflow bundle',
      inputs: filesOf('workflows', 'core', 'workers', 'tools/workflow-bundle.mjs', ...settings),
      outputs: [BUNDLE],
      // Its output is shown only on failure, because it is long.
      run: () =>
        runNode(
          [join(ROOT, 'tools', 'workflow-bundle.mjs'), join(ROOT, BUNDLE)],
          'The workflows could not be bundled',
        ),
    },
    {
      name: 'quick commands',
      inputs: [...sources, ...filesOf(...QUICK_TOOLS, 'tools/lean-proto.mjs'), ...settings],
      outputs: QUICK_OUTPUTS,
      run: () => {
        for (const tool of QUICK_TOOLS) runNode([join(ROOT, tool)], 'The quick commands could not be bundled')
      },
    },
  ]
}

/** Returns the steps to run, each with the hash to store once it is done. */
function pendingSteps() {
  const done = readState()
  return steps()
    .map((step) => ({ ...step, hash: hashOf(step.inputs) }))
    .filter(
      ({ name, hash, outputs }) =>
        done[name] !== hash || !outputs.every((file) => existsSync(join(ROOT, file))),
    )
}

export function isBuilt() {
  return pendingSteps().length === 0
}

/** Updates dist/. Calls `say` for each finished step; throws the tool's own output when one fails. */
export async function build(say) {
  const pending = pendingSteps()
  if (pending.length === 0) return
  const outputs = join(ROOT, 'dist')
  mkdirSync(outputs, { recursive: true })
  accessSync(outputs, constants.W_OK)
  removeStale()
  // The inputs of an old bundle exist and are newer than it until the next one is built, so the old bundle is removed.
  if (pending.some(({ outputs }) => outputs === QUICK_OUTPUTS)) removeQuick()
  for (const { name, hash, run } of pending) {
    say(`Building: ${name}`)
    await run()
    writeFileSync(STATE, JSON.stringify({ ...readState(), [name]: hash }))
  }
}

function readState() {
  try {
    return JSON.parse(readFileSync(STATE, 'utf8'))
  } catch {
    return {}
  }
}

function compile() {
  // The compiler trusts its own records of written files; an emptied dist/ must be written again.
  const sources = filesOf(...folders()).filter(isSource)
  if (!sources.every((file) => existsSync(join(ROOT, outputOf(file))))) rmSync(BUILD_INFO, { force: true })
  const tsc = join(ROOT, 'node_modules', 'typescript-7', 'bin', 'tsc')
  const args = ['-p', 'tsconfig.build.json', '--incremental', '--tsBuildInfoFile', BUILD_INFO]
  runNode([tsc, ...args], 'The code does not compile')
}

/** Removes outputs of deleted sources, so that they can no longer be loaded. */
function removeStale() {
  for (const file of filesOf('dist').filter(
    (name) => /\.(js|js\.map|d\.ts)$/.test(name) && name !== BUNDLE && name !== QUICK_OUTPUTS[0],
  )) {
    const source = file.slice('dist/'.length).replace(/\.(js|js\.map|d\.ts)$/, '.ts')
    if (!existsSync(join(ROOT, source))) rmSync(join(ROOT, file))
  }
}

/** Includes code caches of other versions of Node. */
function removeQuick() {
  for (const file of filesOf('dist/cli').filter((name) => name.startsWith(`${QUICK}.`)))
    rmSync(join(ROOT, file))
}

function copy(from, to) {
  mkdirSync(dirname(join(ROOT, to)), { recursive: true })
  copyFileSync(join(ROOT, from), join(ROOT, to))
}

function runNode(args, failure) {
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${failure}:\n${error?.message ?? `${stdout}${stderr}`.trimEnd()}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  build((line) => console.error(line)).catch((error) => {
    console.error(error.message)
    process.exitCode = 1
  })
}
