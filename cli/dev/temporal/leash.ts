import { spawn } from 'node:child_process'
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import type { Socket } from 'node:net'

/** Time from the request to stop until a process is killed. A dev server takes about a second to close its database. */
export const GRACE_SECONDS = 10

/** Lines of output kept to explain why a process ended. */
const KEPT_LINES = 20
/** The line with the cause of a crash of a Go program; many lines of its stacks follow. It is kept. */
const PANIC = /^(panic|fatal error): /

/**
 * The shell becomes the process and leaves a small watcher behind. The watcher reads from a pipe whose other end only this
 * process holds. A line on the pipe means that the child has ended; a pipe that closes without one means that this process died,
 * and the watcher ends the child. This needs only POSIX `sh`, and the child keeps the process id and exit code that its parent
 * sees.
 */
const SCRIPT = `(
  exec >/dev/null 2>&1
  read -r word <&3 && exit
  kill -TERM $$ || exit
  n=0
  while [ $n -lt $1 ]; do kill -0 $$ || exit; sleep 1; n=$((n + 1)); done
  kill -KILL $$
) &
shift
exec "$@" 3<&-`

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A child process that cannot outlive this one, and that a Ctrl-C at our terminal does not reach. */
export interface LeashedProcess {
  pid: number
  exited: Promise<Exit>
  /** The last lines of its output. */
  output(): string
  /** Asks the process to end, and kills it after the grace period; resolves when it has ended. May be called more than once. */
  stop(): Promise<Exit>
}

export interface LeashOptions {
  onOutput?: ((line: string) => void) | undefined
  /** Whole seconds. */
  graceSeconds?: number
  /** Variables of its environment, such as secrets, which no argument may hold. */
  environment?: Readonly<Record<string, string>>
}

/** The variables that name a user whom the system does not know, as in a container with a user id of its own: programs ask for them. */
function namesOfUser(): Record<string, string> {
  try {
    userInfo()
    return {}
  } catch {
    return { USER: String(process.getuid?.()), HOME: '/' }
  }
}

/**
 * Starts a process on a leash. Its environment holds only the system's default PATH and the given variables, so that nothing in the
 * user's environment changes it.
 */
export function startLeashed(
  executable: string,
  args: readonly string[],
  { onOutput, graceSeconds = GRACE_SECONDS, environment = {} }: LeashOptions = {},
): LeashedProcess {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'sh', String(graceSeconds), executable, ...args], {
    // A separate session: the terminal's Ctrl-C reaches only this process, which then stops everything in order.
    detached: true,
    env: { PATH: '/usr/bin:/bin', ...namesOfUser(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const leash = child.stdio[3] as Socket
  leash.on('error', () => {})
  const lines: string[] = []
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on('line', (line) => {
      if (line !== '') lines.push(line)
      if (lines.length > KEPT_LINES)
        lines.splice(
          lines.findIndex((kept) => !PANIC.test(kept)),
          1,
        )
      onOutput?.(line)
    })
  }
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', () => leash.end('ended\n'))
    // Waits for the last output, so that the reason is complete.
    child.once('close', (code, signal) => resolve({ code, signal }))
    child.once('error', (error) => {
      lines.push(error.message)
      resolve({ code: 127, signal: null })
    })
  })
  return {
    pid: child.pid ?? -1,
    exited,
    output: () => lines.join('\n'),
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), graceSeconds * 1_000)
      return exited.finally(() => clearTimeout(timer))
    },
  }
}

/** Describes how a process ended unexpectedly, with its last output; `name` is the subject of the sentence. */
export function endingNamed(name: string): (process: LeashedProcess) => Promise<string> {
  return async (process) => `${name} ${withOutput(describeExit(await process.exited), process.output())}`
}

export function describeExit({ code, signal }: Exit): string {
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
}

export function withOutput(what: string, output: string): string {
  return output === '' ? `${what}.` : `${what}; last output:\n${output}`
}
