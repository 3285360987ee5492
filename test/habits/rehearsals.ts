import { spawn } from 'node:child_process'
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Report } from '../../rehearse/judge'
import { HABITS } from './habits'
import type { Report as Verdict } from '../kit/harness'
import { inColumns } from '../kit/table'
import { pretendedProgram } from './pretended'
import type { Expected } from './verdicts'

const ROOT = join(__dirname, '..', '..')
const NOT_SURVIVED = 8
/** The habits save every two seconds or so: a save is over sooner than one of the product's default. */
const QUIET = '0.4s'

export interface Rehearsed extends Verdict {
  expected: Expected
  /** Missing where the command printed none. */
  report?: Report
  tookMs: number
}

interface RehearsalOptions {
  interruptions: number
  /** `--for`; empty for the command's own. */
  limit: string
}

/** Rehearses a program through the command, as a person does: `crucible rehearse job.yaml --json`. */
export async function rehearse(
  expected: Expected,
  path: string,
  { interruptions, limit }: RehearsalOptions,
): Promise<Rehearsed> {
  const folder = mkdtempSync(join(tmpdir(), 'crucible-habit-rehearsal-'))
  const beganMs = performance.now()
  try {
    const code = join(folder, 'code')
    const notes = join(folder, 'notes')
    for (const each of [code, notes]) mkdirSync(each)
    for (const [name, text] of Object.entries(filesOf(expected))) writeFileSync(join(code, name), text)
    writeFileSync(join(code, 'job.yaml'), jobFile(expected, notes))
    const args = ['rehearse', join(code, 'job.yaml'), '--json', ...(limit === '' ? [] : ['--for', limit])]
    const { exitCode, stdout, stderr } = await command([...args, '--interruptions', String(interruptions)], {
      ...process.env,
      PATH: path,
      CRUCIBLE_HOME: join(folder, 'home'),
      CRUCIBLE_CHECKPOINT_QUIET: QUIET,
    })
    const printed = (stdout.startsWith('{') ? JSON.parse(stdout) : {}) as Report | { error?: unknown }
    const report = 'checks' in printed ? printed : undefined
    const faults =
      report === undefined
        ? [`it printed no report: ${JSON.stringify(printed)} ${stderr.trim().split('\n').at(-1) ?? ''}`]
        : faultsOf(expected, report, exitCode)
    return {
      state: faults.length === 0 ? 'the verdict is right' : 'the verdict is wrong',
      breaches: faults,
      story: [
        ...(report?.checks ?? []).map(({ name, outcome, text }) => `${name}: ${outcome}, ${text}`),
        ...(report?.changes ?? []).map(({ text, yaml }) => `change: ${text} ${yaml ?? ''}`),
      ],
      expected,
      report,
      tookMs: performance.now() - beganMs,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function filesOf({ name, folder }: Expected): Record<string, string> {
  if (folder === 'habits') return pretendedProgram(HABITS.find((each) => each.name === name)!).files
  const read = (file: string): string =>
    readFileSync(join(ROOT, 'test', 'rehearse', 'programs', file), 'utf8')
  return { 'training.py': read('training.py'), 'train.py': read(`${name}.py`) }
}

function jobFile({ name, directory }: Expected, notes: string): string {
  const lines = [
    `name: ${name.replaceAll('_', '-')}`,
    'run: exec python3 -B train.py',
    'env:',
    `  HABIT_NOTES: ${notes}`,
    ...(directory === undefined ? [] : ['checkpoint:', `  directory: ${directory}`]),
  ]
  return `${lines.join('\n')}\n`
}

function command(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  const main = join(ROOT, 'dist', 'cli', 'main.js')
  const child = spawn('nice', ['-n', '10', process.execPath, main, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exitCode) => resolve({ exitCode, stdout, stderr }))
  })
}

/** How a report differs from what is expected. */
function faultsOf(expected: Expected, report: Report, exitCode: number | null): string[] {
  const { survives, check, advice, line } = expected
  const faults: string[] = []
  if (report.survives !== survives)
    faults.push(`it says ${survives ? 'that it does not survive' : 'that it survives'}: ${report.summary}`)
  const code = survives ? 0 : NOT_SURVIVED
  if (exitCode !== code) faults.push(`the exit code is ${exitCode}, not ${code}`)
  const isFailed = report.checks.some(({ name, outcome }) => name === check && outcome === 'bad')
  if (check !== undefined && !isFailed) faults.push(`the check "${check}" does not fail`)
  const [first] = report.changes
  if (advice !== undefined && `${first?.text}\n${first?.yaml ?? ''}`.includes(advice) !== true)
    faults.push(`the first advice is ${JSON.stringify(first ?? null)}, without "${advice}"`)
  if (line !== undefined && first?.line !== line)
    faults.push(`the first advice names the line ${first?.line ?? 'of nothing'}, not ${line}`)
  return faults
}

/** One line for each program, and their sum. */
export function tableOfRehearsals(all: readonly Rehearsed[]): string[] {
  const rows = all.map(({ expected, report, breaches, tookMs }) => [
    expected.name,
    expected.survives ? 'survives' : 'does not',
    report === undefined ? '-' : report.survives ? 'survives' : 'does not',
    String(report?.resumes.length ?? 0),
    String(report?.checks.filter(({ outcome }) => outcome === 'warning').length ?? 0),
    `${(tookMs / 1_000).toFixed(0)} s`,
    breaches.length === 0 ? 'right' : 'WRONG',
  ])
  const right = all.filter(({ breaches }) => breaches.length === 0).length
  const lines = [
    ['PROGRAM', 'EXPECTED', 'VERDICT', 'INTERRUPTIONS', 'WARNINGS', 'TOOK', 'RESULT'],
    ...rows,
    ['TOTAL', '', '', '', '', '', `${right} of ${all.length} right`],
  ]
  return inColumns(lines, 'left')
}
