import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import type { Habit } from './habits'
import type { Program } from './life'

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
