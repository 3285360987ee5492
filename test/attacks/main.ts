/** `npm run attacks`: tries every threat of docs/guides/security.md and prints what came of it. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { THREATS, type Proof } from './threats'
import { rowsOf, verdictOf, type Outcome, type Tried } from './verdicts'

const ROOT = join(__dirname, '..', '..')
const say = (line: string): boolean => process.stdout.write(`${line}\n`)

interface Report {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[]
}

function runJest(): Map<string, Tried[]> {
  const files = [...new Set(THREATS.flatMap(({ proof }) => ('file' in proof ? [proof.file] : [])))]
  const folder = mkdtempSync(join(tmpdir(), 'crucible-attacks-'))
  try {
    const report = join(folder, 'report.json')
    spawnSync(
      process.execPath,
      ['node_modules/.bin/jest', '-w', '2', '--json', '--outputFile', report, '--runTestsByPath', ...files],
      { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] },
    )
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
    return new Map(
      testResults.map(({ name, assertionResults }) => [
        relative(ROOT, name),
        assertionResults.map(({ fullName, status }) => ({ name: fullName, status })),
      ]),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function runPython(module: string): Tried[] {
  const { stdout } = spawnSync('python3', ['test/runner/python/run.py', module], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { name: string; failure: string | null })
    .map(({ name, failure }) => ({ name, status: failure === null ? 'passed' : 'failed' }))
}

function main(): void {
  const ofJest = runJest()
  const outcomeOf = (proof: Proof): Outcome =>
    'python' in proof
      ? verdictOf(runPython(proof.python))
      : verdictOf((ofJest.get(proof.file) ?? []).filter(({ name }) => name.startsWith(proof.tests)))
  const outcomes = THREATS.map(({ proof }) => outcomeOf(proof))
  for (const row of rowsOf(THREATS, outcomes)) say(row)
  const broken = outcomes.filter((outcome) => outcome !== 'held' && outcome !== 'skipped').length
  const skipped = outcomes.filter((outcome) => outcome === 'skipped').length
  say(`\n${outcomes.length} threats tried, ${broken} got through, ${skipped} skipped (their tests say why)`)
  process.exitCode = broken === 0 ? 0 : 1
}

main()
