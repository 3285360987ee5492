import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { withFolder } from '../kit/folder'
import { harness, type Case, type Report } from '../kit/harness'
import { THREATS, type Proof, type Threat } from './threats'
import { rowsOf, verdictOf, type Outcome, type Tried } from './verdicts'

const ROOT = join(__dirname, '..', '..')

interface JestReport {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[]
}

type Attempt = Report & { threat: Threat; outcome: Outcome }

/** Every row of docs/guides/security.md, by the tests that try it. */
export const ATTACKS = harness({
  jobs: 1,
  isQuiet: true,
  options: {},
  around: async (_, use) => use(await withFolder('attacks', async (folder) => runJest(folder))),
  draw: () =>
    THREATS.map((threat) => {
      const name = `${threat.from}: ${threat.tries}`
      return { name, again: ['--only', name], threat }
    }),
  live: async (
    { threat }: Case & { threat: Threat },
    ofJest: ReadonlyMap<string, Tried[]>,
  ): Promise<Attempt> => {
    const outcome = outcomeOf(threat.proof, ofJest)
    const isBroken = outcome !== 'held' && outcome !== 'skipped'
    const breaches = isBroken ? [`${outcome}: ${threat.keeps}`] : []
    return { state: outcome, breaches, story: [], threat, outcome }
  },
  table: (reports) =>
    rowsOf(
      reports.map(({ threat }) => threat),
      reports.map(({ outcome }) => outcome),
    ),
})

function outcomeOf(proof: Proof, ofJest: ReadonlyMap<string, Tried[]>): Outcome {
  if ('python' in proof) return verdictOf(runPython(proof.python))
  return verdictOf((ofJest.get(proof.file) ?? []).filter(({ name }) => name.startsWith(proof.tests)))
}

function runJest(folder: string): Map<string, Tried[]> {
  const files = [...new Set(THREATS.flatMap(({ proof }) => ('file' in proof ? [proof.file] : [])))]
  const report = join(folder, 'report.json')
  spawnSync(
    process.execPath,
    ['node_modules/.bin/jest', '-w', '2', '--json', '--outputFile', report, '--runTestsByPath', ...files],
    { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as JestReport
  return new Map(
    testResults.map(({ name, assertionResults }) => [
      relative(ROOT, name),
      assertionResults.map(({ fullName, status }) => ({ name: fullName, status })),
    ]),
  )
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
