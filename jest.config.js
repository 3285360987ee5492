const { spawnSync } = require('node:child_process')
const { existsSync, readFileSync, statfsSync } = require('node:fs')
const { availableParallelism } = require('node:os')
const { delimiter, dirname, join } = require('node:path')

const transform = {
  '^.+\\.ts$': [
    '@swc/jest',
    {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
      sourceMaps: 'inline',
    },
  ],
}
/** What package.json's `imports` leads to in dist/, as it is in the tree. */
const moduleNameMapper = {
  '^#small-cloud$': '<rootDir>/packages/small-cloud/src/index.ts',
  '^#small-cloud/(.*)$': '<rootDir>/packages/small-cloud/src/$1.ts',
}
/** Files of which `npm test` runs none (see test/support/selection.ts). */
const leftOut =
  process.env.CRUCIBLE_TEST_SELECTION === '1' ? Object.keys(require('./tools/only-in-all.json')) : []
/** Suites that have passed, of which nothing has changed (see tools/suites.mjs). */
const unchanged = JSON.parse(process.env.CRUCIBLE_TESTS_UNCHANGED ?? '[]')
const testPathIgnorePatterns = [
  '/node_modules/',
  ...unchanged.map((pattern) => pattern.replace('^', '<rootDir>/')),
  ...leftOut.map((file) => `<rootDir>/${file.replaceAll('.', '\\.')}$`),
]
const modulePathIgnorePatterns = ['<rootDir>/dist', '<rootDir>/packages/[^/]+/dist']
const base = {
  // Compiled files and the durations of the last run outlast a restart of the host.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  testEnvironment: '<rootDir>/test/support/patient-environment.ts',
  runtime: '<rootDir>/test/support/runtime.js',
  transform,
  modulePathIgnorePatterns,
  testPathIgnorePatterns,
  moduleNameMapper,
}

// Tests look into what their jobs write; those of jobs' own users turn it on.
process.env.CRUCIBLE_LOCAL_UIDS ??= 'no'

// The SDK warns in every process that Node 20 will be too old for it one day; so does no worker of ours.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

// Servers that live for minutes have the memory to collect their garbage less often. With all cores for themselves they would spend a
// tenth of their processor time on passing work from one to the other.
process.env.GOGC ??= '400'
process.env.GOMAXPROCS ??= String(Math.ceil(availableParallelism() / 2))

/**
 * The folder of the Python that `python3` leads to, where that is the script of a version manager, which looks for it at every
 * start and takes twice the processor time that Python takes.
 */
function pythonBehindScript() {
  const found = process.env.PATH.split(delimiter)
    .map((folder) => join(folder, 'python3'))
    .find((path) => existsSync(path))
  if (found === undefined || readFileSync(found).toString('latin1', 0, 2) !== '#!') return undefined
  const { stdout } = spawnSync(found, ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' })
  return stdout ? dirname(stdout.trim()) : undefined
}

const pythonFolder = pythonBehindScript()
if (pythonFolder !== undefined) process.env.PATH = `${pythonFolder}${delimiter}${process.env.PATH}`

const MEMORY_FOLDER = '/dev/shm'
const TMPFS_MAGIC = 0x01021994
const MEMORY_MIN_BYTES = 4 * 1024 ** 3

/** Whether the folder is in memory, has enough space, and lets programs in it run. */
function canHoldTests(folder) {
  if (!existsSync(folder)) return false
  const { type, bavail, bsize } = statfsSync(folder)
  if (type !== TMPFS_MAGIC || bavail * bsize < MEMORY_MIN_BYTES) return false
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === folder)
  return mount !== undefined && !mount.includes('noexec')
}

// Machines of tests make and remove thousands of small files, for which ext4 takes a third of their processor time: it does not reuse
// the number of a file that was removed a moment ago, and searches for another.
if (process.env.TMPDIR === undefined && canHoldTests(MEMORY_FOLDER)) process.env.TMPDIR = MEMORY_FOLDER

/** `unit` needs nothing but Node and Python; `temporal` starts a real Temporal server once for all its files. */
module.exports = {
  // Many wait for processes and servers most of the time, and those need the cores.
  maxWorkers: 5,
  // What a file has loaded stays in its worker.
  workerIdleMemoryLimit: '1GB',
  // A worker that leaks nothing takes longer than Jest's half second to end where other programs have the cores.
  workerGracefulExitTimeout: 30_000,
  // On an idle machine, as every limit in a test; the environment multiplies them by the patience factor.
  testTimeout: 60_000,
  testSequencer: '<rootDir>/test/support/sequencer.js',
  reporters: ['default', '<rootDir>/test/support/server-end.js'],
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: ['<rootDir>/{test,packages/*/test}/**/*.test.ts'],
      testPathIgnorePatterns: [...testPathIgnorePatterns, '\\.e2e\\.test\\.ts$'],
    },
    {
      ...base,
      displayName: 'temporal',
      testMatch: ['<rootDir>/test/**/*.e2e.test.ts'],
      globalSetup: '<rootDir>/test/support/global-setup.ts',
      globalTeardown: '<rootDir>/test/support/global-teardown.ts',
    },
  ],
}
