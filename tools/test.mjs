// npm test: set-up, types, lint, format, and the selection of Jest tests that keeps every promise; with --all, every Jest test.
// A check that has passed is not repeated while no file that it reads has changed; nor, without --all, are the suites of tools/suites.mjs.
// Ends with the line "N passed, N failed, N skipped", whatever happens.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { join, relative } from 'node:path'
import { performance } from 'node:perf_hooks'
import { CACHE, filesOf, hashOf, ROOT } from './content.mjs'
import { stateOf, SUITES } from './suites.mjs'

const IS_ALL = process.argv.includes('--all')
const LIMIT_MS = (IS_ALL ? 120 : 45) * 60_000
const SLOWEST = 10
/**
 * Flag for Node: a test file allocates much short-lived memory, and room for it saves a twentieth of the processor time. Jest's workers get
 * it too.
 */
const ROOM = '--max-semi-space-size=32'
const escaped = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
const bin = (path) => join(ROOT, 'node_modules', path)
const KNIP = bin('knip/bin/knip.js')
const TSC = bin('typescript-7/bin/tsc')
/** File with the hash of each check's files at its last success, and for each suite its state then, and the outcome of its tests. */
const PASSED = join(CACHE, 'passed.json')
/** Jest's report on the last run, with the duration of each test. */
const JEST_REPORT = join(CACHE, 'jest.json')
/** Patterns of the lines `FILE: TEST` that may be skipped, each with its reason; any other skip is a failure. */
const EXPECTED_SKIPS = Object.entries(
  JSON.parse(readFileSync(join(ROOT, 'tools', 'expected-skips.json'), 'utf8')),
).map(([pattern, reason]) => ({
  reason,
  matches: new RegExp(`^${pattern.split('*').map(escaped).join('.*')}`),
}))
/** The compiler and the formatter keep their results for unchanged files. */
const remembering = (name) => ['--incremental', '--tsBuildInfoFile', join(CACHE, `${name}.tsbuildinfo`)]
const REMEMBERED_FORMAT = [
  '--cache',
  '--cache-strategy',
  'content',
  '--cache-location',
  join(CACHE, 'format'),
]

const ANY_FILE = /./
const TYPESCRIPT = /\.(?:ts|json)$/
const SCRIPTS = /\.(?:ts|js|mjs|json)$/
const PAGES = /^docs\/|^[^/]+\.md$|^package-lock\.json$/

/**
 * Checks; each counts as one test. The pattern matches the files whose content it reads. Two lanes for two cores run next to Jest,
 * whose tests wait much of the time.
 */
const LANES = [
  [
    ['types', TYPESCRIPT, [TSC, '--noEmit', '-p', 'tsconfig.json', ...remembering('types')]],
    [
      'types without Node',
      TYPESCRIPT,
      [TSC, '--noEmit', '-p', 'tsconfig.pure.json', ...remembering('types-pure')],
    ],
    [
      'format',
      ANY_FILE,
      [bin('prettier/bin/prettier.cjs'), '--check', '--log-level', 'warn', ...REMEMBERED_FORMAT, '.'],
    ],
  ],
  [
    ['lint', SCRIPTS, [join(ROOT, 'tools', 'lint.mjs')]],
    ['expressions', /\.(?:[cm]?[jt]s|py)$|^tools\/patterns\//, [join(ROOT, 'tools', 'lint-patterns.mjs')]],
    ['unused code', SCRIPTS, [KNIP]],
    ['code only for tests', SCRIPTS, [KNIP, '--production']],
    ['prose', ANY_FILE, [join(ROOT, 'tools', 'lint-prose.mjs')]],
    ['docs site', PAGES, [bin('vitepress/bin/vitepress.js'), 'build', 'docs']],
  ],
]

/** Runs Node; returns the exit code, and the output unless it is passed through. */
function runNode(args, stdio, isPatient = false) {
  const env = { ...process.env, CRUCIBLE_TEST_SELECTION: IS_ALL ? '' : '1' }
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio, env, timeout: LIMIT_MS })
  if (isPatient && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 1, output: error.message }))
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

const counts = { passed: 0, failed: 0, skipped: 0 }

/**
 * Returns the files of checks. Types and lint of one file depend on others, so a check is repeated unless none of the files that it can
 * read has changed.
 */
function filesOfChecks() {
  const isOutput = (name) => ['node_modules', 'dist', 'coverage', 'calls'].includes(name)
  const settings = ['.prettierrc.json', '.prettierignore', '.editorconfig', '.textlintrc.json']
  const entries = readdirSync(ROOT, { withFileTypes: true }).filter(
    ({ name }) => settings.includes(name) || (!name.startsWith('.') && !isOutput(name)),
  )
  return [
    ...entries.flatMap((entry) => (entry.isDirectory() ? filesOf(entry.name) : [entry.name])),
    ...filesOf('docs/.vitepress', '.ci'),
  ]
}

/** Returns a hash of the names of all files, because imports and links lead to them, and of the contents of those that the check reads. */
function hashFor(reads, files) {
  const names = createHash('sha256').update(files.join('\0')).digest('hex')
  return [hashOf(files.filter((file) => reads.test(file))), names, process.version].join(' ')
}

function readPassed() {
  try {
    return JSON.parse(readFileSync(PASSED, 'utf8'))
  } catch {
    return {}
  }
}

function keepPassed(name, outcome) {
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(PASSED, JSON.stringify({ ...readPassed(), [name]: outcome }))
}

async function check([name, reads, args], files) {
  const hash = hashFor(reads, files)
  if (readPassed()[name] === hash) {
    counts.passed += 1
    console.log(`✓ ${name} (nothing that it reads has changed since it passed)`)
    return
  }
  const startedAt = performance.now()
  // The check has low priority, so that no test becomes slow because of it.
  const { code, output } = await runNode(args, ['ignore', 'pipe', 'pipe'], true)
  counts[code === 0 ? 'passed' : 'failed'] += 1
  if (code === 0) keepPassed(name, hash)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(code === 0 ? `✓ ${name} (${seconds} s)` : `✗ ${name} (${seconds} s)\n${output.trimEnd()}`)
}

const linesOf = (testResults, isMeant) =>
  testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => isMeant(status))
      .map(({ fullName }) => `${relative(ROOT, name)}: ${fullName}`),
  )
const isSkipped = (status) => status === 'pending' || status === 'todo'

/** Counts the suites that need not run; returns the others, and the skipped tests of those that do not run. */
function rememberSuites(files) {
  const suites = SUITES.map((suite) => ({ ...suite, state: stateOf(suite, files) }))
  const known = readPassed()
  const unchanged = IS_ALL ? [] : suites.filter(({ name, state }) => known[name]?.state === state)
  for (const { name } of unchanged) {
    counts.passed += known[name].passed
    console.log(`✓ ${known[name].passed} ${name} (nothing that they read has changed since they passed)`)
  }
  process.env.CRUCIBLE_TESTS_UNCHANGED = JSON.stringify(unchanged.map(({ tests }) => tests.source))
  const others = suites.filter((suite) => !unchanged.includes(suite))
  return { others, skipped: unchanged.flatMap(({ name }) => known[name].skipped) }
}

/** Stores the state of suites; after a run of every test, the next run of the selection decides. */
function keepSuites(suites, testResults) {
  for (const { name, tests, state } of suites) {
    const results = testResults.filter((file) => tests.test(relative(ROOT, file.name)))
    const hasPassed = !IS_ALL && results.length > 0 && results.every(({ status }) => status !== 'failed')
    const passed = linesOf(results, (status) => status === 'passed').length
    keepPassed(name, hasPassed ? { state, passed, skipped: linesOf(results, isSkipped) } : undefined)
  }
}

async function jest(files) {
  mkdirSync(CACHE, { recursive: true })
  rmSync(JEST_REPORT, { force: true })
  const { others, skipped } = rememberSuites(files)
  const { code } = await runNode(
    [ROOM, bin('jest/bin/jest.js'), '--json', '--outputFile', JEST_REPORT],
    ['ignore', 'ignore', 'inherit'],
  )
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, testResults } = JSON.parse(
    readFileSync(JEST_REPORT, 'utf8'),
  )
  counts.passed += numPassedTests
  counts.failed += numFailedTests + numRuntimeErrorTestSuites
  keepSuites(others, testResults)
  report(testResults, skipped)
  if (code !== 0 && counts.failed === 0) throw new Error(`Jest ended with exit code ${code}`)
}

/** Reports the slowest files, and every test that did not run. */
function report(testResults, skippedBefore) {
  const seconds = ({ startTime, endTime }) => (endTime - startTime) / 1000
  const slowest = testResults.toSorted((one, other) => seconds(other) - seconds(one)).slice(0, SLOWEST)
  if (slowest.length > 0) console.log(`The slowest ${slowest.length} files:`)
  for (const file of slowest)
    console.log(`  ${seconds(file).toFixed(1).padStart(6)} s  ${relative(ROOT, file.name)}`)
  const skipped = [...skippedBefore, ...linesOf(testResults, isSkipped)]
  counts.skipped += skipped.length
  const reasonOf = (line) => EXPECTED_SKIPS.find(({ matches }) => matches.test(line))?.reason
  const reasons = new Map()
  for (const line of skipped) {
    const reason = reasonOf(line) ?? 'no known reason'
    const file = line.slice(0, line.indexOf(': '))
    const files = reasons.get(reason) ?? new Map()
    reasons.set(reason, files.set(file, (files.get(file) ?? 0) + 1))
  }
  if (reasons.size > 0) console.log('Skipped:')
  for (const [reason, files] of reasons)
    console.log(`  ${reason}: ${[...files].map(([file, count]) => `${count} of ${file}`).join(', ')}`)
  const unexpected = skipped.filter((line) => reasonOf(line) === undefined)
  if (unexpected.length > 0)
    console.log(
      `Skipped although tools/expected-skips.json does not name it, which fails:\n${unexpected.map((line) => `  ${line}`).join('\n')}`,
    )
  counts.failed += unexpected.length
}

try {
  const { code } = await runNode(
    [join(ROOT, 'tools', 'setup.mjs'), '--test'],
    ['ignore', 'inherit', 'inherit'],
  )
  if (code !== 0) throw new Error('The set-up failed; see above.')
  const files = filesOfChecks()
  const checked = Promise.all(
    LANES.map(async (lane) => {
      for (const step of lane) await check(step, files)
    }),
  )
  await jest(files).finally(() => checked)
} catch (error) {
  counts.failed += 1
  console.error(error.message)
} finally {
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  process.exitCode = counts.failed === 0 ? 0 : 1
}
