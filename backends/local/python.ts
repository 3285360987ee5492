import type { Failure } from '../../core/failure'
import { runProgram } from './programs'

/** What the runner is written for (docs/reference/runner-protocol.md). */
const OLDEST = { major: 3, minor: 8 }
const PYTHON_TIMEOUT_MS = 15_000

export const PYTHON_REMEDY = 'Install Python 3.8 or newer, or set CRUCIBLE_LOCAL_PYTHON to one.'

/** Why this Python cannot run the runner, or `undefined` if it can; throws `transient` if a retry may help. */
export async function whyPythonWontDo(
  python: string,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  const program = 'import sys; print("%d.%d" % sys.version_info[:2])'
  const answer = await runProgram(python, ['-c', program], { env, timeoutMs: PYTHON_TIMEOUT_MS, signal })
  const needed = `the runner requires Python ${OLDEST.major}.${OLDEST.minor} or newer`
  if (answer.kind !== 'answered') {
    const failureClass = answer.kind === 'unanswered' ? 'transient' : 'invalid'
    return {
      class: failureClass,
      message: `${needed}, but \`${python}\` ${answer.message}`,
      hint: PYTHON_REMEDY,
    }
  }
  const [major = 0, minor = 0] = answer.output.trim().split('.').map(Number)
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return undefined
  const message = `${needed}, but \`${python}\` is ${answer.output.trim()}`
  return { class: 'invalid', message, hint: PYTHON_REMEDY }
}
