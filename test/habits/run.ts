import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { Habit } from './habits'
import { packRunner } from '../support/runner-program'
import { live, type LifeReport, type Program } from './life'

export interface RunOptions {
  habits: readonly Habit[]
  programOf: (habit: Habit) => Program
  firstSeed: number
  lives: number
  /** Interruptions of each life. */
  kills: number
  jobs: number
  onReport: (report: LifeReport) => void
}

/** Lives through every habit's lives, `jobs` at a time. */
export async function runHabits(options: RunOptions): Promise<LifeReport[]> {
  const { habits, programOf, firstSeed, lives, kills, jobs, onReport } = options
  const folder = mkdtempSync(join(tmpdir(), 'crucible-habits-'))
  const runner = join(folder, 'runner.pyz')
  const reports: LifeReport[] = []
  try {
    await packRunner(runner)
    const path = pathWithPython()
    const waiting = Array.from({ length: lives }, (_, life) =>
      habits.map((habit) => ({ habit, seed: firstSeed + life })),
    ).flat()
    const next = async (): Promise<void> => {
      for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
        const report = await live({ runner, path, kills, ...one, program: programOf(one.habit) })
        reports.push(report)
        onReport(report)
      }
    }
    await Promise.all(Array.from({ length: jobs }, next))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return reports
}

/** The program of a habit, with what all of them share. */
export function pretendedProgram({ name }: Habit): Program {
  const read = (file: string): string => readFileSync(join(__dirname, 'programs', file), 'utf8')
  const shared = ['lab.py', 'formats.py', 'witness.py'].map((file) => [file, read(file)])
  return {
    files: { ...Object.fromEntries(shared), 'train.py': read(`${name}.py`) },
    run: 'exec python3 -B train.py',
    env: {},
  }
}

/** The search path with the folder of the real Python first, where `python3` is the script of a version manager, which takes its time. */
export function pathWithPython(): string {
  const python = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3'
  const executable = execFileSync(python, ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' })
  return `${dirname(executable.trim())}${delimiter}${process.env['PATH'] ?? ''}`
}
