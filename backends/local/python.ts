import type { Failure } from '../../core/failure'
import { runProgram } from './programs'

/** Oldest Python for which the runner is written (docs/reference/runner-protocol.md). */
const OLDEST = { major: 3, minor: 8 }
const PYTHON_TIMEOUT_MS = 15_000

export const PYTHON_REMEDY = 'Install Python 3.8 or newer, or set CRUCIBLE_LOCAL_PYTHON to one.'

/** `path`: the interpreter itself, where the name leads to a wrapper such as that of pyenv, which costs time at each start. */
export type PythonCheck = { kind: 'usable'; path: string } | { kind: 'refused'; failure: Failure }

/** Finds the Python for the runner. Rejects only when the caller aborts. */
export async function findPython(
  python: string,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<PythonCheck> {
  const program = 'import sys; print("%d.%d" % sys.version_info[:2]); print(sys.executable)'
  const answer = await runProgram(python, ['-c', program], { env, timeoutMs: PYTHON_TIMEOUT_MS, signal })
  const refused = (failure: Failure): PythonCheck => ({ kind: 'refused', failure })
  const needed = `the runner requires Python ${OLDEST.major}.${OLDEST.minor} or newer`
  if (answer.kind !== 'answered') {
    const failureClass = answer.kind === 'unanswered' ? 'transient' : 'invalid'
    const message = `${needed}, but \`${python}\` ${answer.message}`
    return refused({ class: failureClass, message, hint: PYTHON_REMEDY })
  }
  const [version = '', path = ''] = answer.output.split('\n').map((line) => line.trim())
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor))
    return { kind: 'usable', path: path === '' ? python : path }
  const message = `${needed}, but \`${python}\` is ${version}`
  return refused({ class: 'invalid', message, hint: PYTHON_REMEDY })
}
