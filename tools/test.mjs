// npm test: set-up, types, lint, format, every Jest test. Ends with the line "N passed, N failed", whatever happens.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const LIMIT_MS = 45 * 60_000
const bin = (path) => join(ROOT, 'node_modules', path)
const TSC = bin('typescript/bin/tsc')
const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible')
/** What a compiler or the formatter found in files that are the same as then, it does not find out again. */
const remembering = (name) => ['--incremental', '--tsBuildInfoFile', join(CACHE, `${name}.tsbuildinfo`)]
const REMEMBERED_FORMAT = [
  '--cache',
  '--cache-strategy',
  'content',
  '--cache-location',
  join(CACHE, 'format'),
]

/** Each counts as one test. Two lanes for two cores, beside Jest: its tests wait much of their time. */
const LANES = [
  [
    ['types', [TSC, '--noEmit', '-p', 'tsconfig.json', ...remembering('types')]],
    ['types without Node', [TSC, '--noEmit', '-p', 'tsconfig.pure.json', ...remembering('types-pure')]],
    [
      'format',
      [bin('prettier/bin/prettier.cjs'), '--check', '--log-level', 'warn', ...REMEMBERED_FORMAT, '.'],
    ],
  ],
  [['lint', [bin('eslint/bin/eslint.js'), '.']]],
]

/** Runs Node; answers the exit code, and the output unless it goes straight to ours. */
function runNode(args, stdio, isPatient = false) {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio, timeout: LIMIT_MS })
  if (isPatient && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 1, output: error.message }))
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

const counts = { passed: 0, failed: 0 }

async function check([name, args]) {
  const startedAt = performance.now()
  // No test should become slow because of it.
  const { code, output } = await runNode(args, ['ignore', 'pipe', 'pipe'], true)
  counts[code === 0 ? 'passed' : 'failed'] += 1
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(code === 0 ? `✓ ${name} (${seconds} s)` : `✗ ${name} (${seconds} s)\n${output.trimEnd()}`)
}

async function jest() {
  const folder = mkdtempSync(join(tmpdir(), 'crucible-test-'))
  try {
    const results = join(folder, 'results.json')
    const { code } = await runNode(
      [bin('jest/bin/jest.js'), '--json', '--outputFile', results],
      ['ignore', 'ignore', 'inherit'],
    )
    const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites } = JSON.parse(
      readFileSync(results, 'utf8'),
    )
    counts.passed += numPassedTests
    counts.failed += numFailedTests + numRuntimeErrorTestSuites
    if (code !== 0 && counts.failed === 0) throw new Error(`Jest ended with exit code ${code}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

try {
  const { code } = await runNode(
    [join(ROOT, 'tools', 'setup.mjs'), '--test'],
    ['ignore', 'inherit', 'inherit'],
  )
  if (code !== 0) throw new Error('The set-up failed; see above.')
  const checked = Promise.all(
    LANES.map(async (lane) => {
      for (const step of lane) await check(step)
    }),
  )
  await jest().finally(() => checked)
} catch (error) {
  counts.failed += 1
  console.error(error.message)
} finally {
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  process.exitCode = counts.failed === 0 ? 0 : 1
}
