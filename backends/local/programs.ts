import { execFile, type ExecFileException } from 'node:child_process'
import { callerLeft } from './calls'

export interface ProgramOptions {
  env: Record<string, string>
  timeoutMs: number
  signal?: AbortSignal
  /** Run it as this user and group; only root can. */
  user?: number
  cwd?: string
}

/**
 * `missing`: no executable program. `broken`: it failed. `unanswered`: it took too long, or this host could start no more
 * programs, which may be temporary. `message` completes "the program ...".
 */
export type ProgramAnswer =
  { kind: 'answered'; output: string } | { kind: 'missing' | 'broken' | 'unanswered'; message: string }

/** A list of processes with their environments can be megabytes. */
const OUTPUT_MAX_BYTES = 256 * 1024 * 1024

/** Runs a helper program to its end and returns its output. Rejects only when the caller aborts. */
export function runProgram(file: string, args: string[], options: ProgramOptions): Promise<ProgramAnswer> {
  const { env, timeoutMs: timeout, signal, user, cwd } = options
  const settings = {
    env,
    timeout,
    killSignal: 'SIGKILL',
    maxBuffer: OUTPUT_MAX_BYTES,
    encoding: 'utf8',
    ...(user !== undefined && { uid: user, gid: user }),
    cwd,
  } as const
  return new Promise((resolve, reject) => {
    execFile(file, args, { ...settings, signal }, (error, stdout, stderr) => {
      if (signal?.aborted) reject(callerLeft())
      else if (error === null) resolve({ kind: 'answered', output: stdout })
      else resolve(failureOf(error, { timeout, said: lastLine(stderr) ?? lastLine(stdout) }))
    })
  })
}

function failureOf(
  error: ExecFileException,
  { timeout, said }: { timeout: number; said?: string | undefined },
): ProgramAnswer {
  if (error.killed) return { kind: 'unanswered', message: `did not answer within ${timeout / 1000} s` }
  switch (String(error.code)) {
    case 'ENOENT':
      return { kind: 'missing', message: 'was not found' }
    // The system also reports this error for a missing program if some folder of the path is closed to this user.
    case 'EACCES':
      return { kind: 'missing', message: 'is not executable for this user' }
    case 'EAGAIN':
    case 'ENOMEM':
    case 'EMFILE':
      return { kind: 'unanswered', message: `could not be started (${error.message})` }
    default:
      return { kind: 'broken', message: `failed: ${said ?? error.message}` }
  }
}

function lastLine(text: string): string | undefined {
  return text.trim().split('\n').at(-1) || undefined
}
