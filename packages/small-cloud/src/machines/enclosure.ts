import { constants } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { readProcesses, type HostProcess, type ProcessTable } from './processes'

export interface EnclosedCommand {
  /** A program of the machine's PATH, or a path as the machine sees it, with its arguments. */
  argv: string[]
  /** As the machine sees it. The command ends with 200 when it is not there. */
  cwd: string
  /** All of it: nothing of this process's own environment is passed on. */
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

/** A process in a session of its own. */
export interface EnclosedProcess {
  ended: Promise<ProcessEnd>
  /** It as this host sees it, or `undefined` when it has ended. */
  find(table: ProcessTable): HostProcess | undefined
}

/** What keeps the processes of one machine together, and its directories in the places where they belong. */
export interface Enclosure {
  readonly kind: 'namespaces' | 'groups'
  /** Folders of this host that its processes do not see. */
  readonly hidden: string[]
  /** What its processes need in their environment beside that of any machine. */
  readonly environment: Record<string, string>
  /** A path of a machine, such as `/var/lib`, as its processes have to write it here. */
  seenAs(path: string): string
  /** Resolves when commands can be run. */
  start(): Promise<void>
  run(command: EnclosedCommand): EnclosedProcess
  /** The living processes that begin with such a one, among those of the machine. */
  members(table: ProcessTable, isSeed: (process: HostProcess) => boolean): HostProcess[]
  /** Every process is dead when it resolves. */
  kill(): Promise<void>
  /** Called when it falls apart without `kill`. */
  onEnd(listener: () => void): void
}

/** The folders of a machine's disk; a machine writes nowhere else. */
export const MACHINE_FOLDERS = ['/var', '/run', '/root', '/tmp'] as const

/** Changes folder first, so that a missing one ends the command as a service manager would say it. */
export const LAUNCH = 'cd -- "$1" || exit 200; shift; exec "$@"'

/** 128 and the signal's number, as a shell says it. */
export function statusOf({ exitCode, signal }: ProcessEnd): number {
  return exitCode ?? 128 + constants.signals[signal!]
}

const FIND_EVERY_MS = 5

/** The process once whoever starts it has got so far; `undefined` when it has ended already. */
export async function untilFound(child: EnclosedProcess): Promise<HostProcess | undefined> {
  let isOver = false
  void child.ended.then(() => (isOver = true))
  for (;;) {
    const found = child.find(await readProcesses())
    if (found !== undefined || isOver) return found
    await pause(FIND_EVERY_MS)
  }
}
