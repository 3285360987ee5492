import { constants } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { readProcesses, type HostProcess, type ProcessTable } from './processes'

export interface EnclosedCommand {
  /** A program in the machine's PATH, or a path on the machine, with its arguments. */
  argv: string[]
  /** A path on the machine. The command ends with 200 when it does not exist. */
  cwd: string
  /** The complete environment: nothing of this process's environment is passed on. */
  environment: Record<string, string>
  /** Descriptors of this process, which may be closed afterwards. */
  stdout: number
  stderr: number
}

/** Exactly one of the two is set. */
export interface ProcessEnd {
  exitCode: number | null
  signal: NodeJS.Signals | null
}

/** A process in a separate session. */
export interface EnclosedProcess {
  ended: Promise<ProcessEnd>
  /** Returns this process in the host's table, or `undefined` when it has ended. */
  find(table: ProcessTable): HostProcess | undefined
}

/** Contains the processes of one machine, and maps its directories. */
export interface Enclosure {
  readonly kind: 'namespaces' | 'groups'
  /** Folders of this host that its processes do not see. */
  readonly hidden: string[]
  /** Variables for its processes, in addition to those of every machine. */
  readonly environment: Record<string, string>
  /** Converts a path of the machine, such as `/var/lib`, to the form that its processes must use. */
  seenAs(path: string): string
  /** Resolves when commands can be run. */
  start(): Promise<void>
  run(command: EnclosedCommand): EnclosedProcess
  /** Returns the machine's living processes that descend from a matching one. */
  members(table: ProcessTable, isSeed: (process: HostProcess) => boolean): HostProcess[]
  /** Whether a process of this host is one of the machine's, or descends from one; Linux only. */
  owns(pid: number): boolean
  /** Resolves when every process is dead. */
  kill(): Promise<void>
  /** Calls the listener when the enclosure ends without `kill`. */
  onEnd(listener: () => void): void
}

/** The folders of a machine's disk; a machine writes nowhere else. */
export const MACHINE_FOLDERS = ['/var', '/run', '/root', '/tmp'] as const

/** Changes the folder first, so that a missing one ends the command with a service manager's code. */
export const LAUNCH = 'cd -- "$1" || exit 200; shift; exec "$@"'

/** Returns 128 plus the signal's number, like a shell. */
export function statusOf({ exitCode, signal }: ProcessEnd): number {
  return exitCode ?? 128 + constants.signals[signal!]
}

const FIND_EVERY_MS = 5

/** Resolves with the process once it has been started; `undefined` when it has already ended. */
export async function untilFound(child: EnclosedProcess): Promise<HostProcess | undefined> {
  let isOver = false
  void child.ended.then(() => (isOver = true))
  for (;;) {
    const found = child.find(await readProcesses())
    if (found !== undefined || isOver) return found
    await pause(FIND_EVERY_MS)
  }
}
