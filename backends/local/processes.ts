/** The environment variable that every process of a machine carries; its value is the attempt's id. */
export const MARKER = 'CRUCIBLE_MACHINE'

/** A process for good: its number, which the system gives out again, with when it started, which it does not. */
export interface ProcessIdentity {
  pid: number
  started: string
}

export interface ProcessInfo extends ProcessIdentity {
  parent: number
  /** Session, or process group where sessions cannot be seen: a machine's first process begins one of its own. */
  group: number
  /** Dead, and only waiting for its parent to notice. */
  isDefunct: boolean
  /** Value of the marker in its environment, where that may be read. */
  machine?: string
  /** The machine whose control group it is in, where the runner could make one. */
  groupOf?: string
}

export interface ProcessReader {
  one(pid: number): Promise<ProcessInfo | undefined>
  all(): Promise<ProcessInfo[]>
}

/** One look at this host's processes, which reads all of them at most once. */
export interface ProcessLook {
  identify(pid: number): Promise<ProcessIdentity | undefined>
  isAlive(identity: ProcessIdentity): Promise<boolean>
  /** Every living process of a machine; `first` is the one that it was started with, if that is known. */
  ofMachine(machine: string, first?: ProcessIdentity): Promise<ProcessInfo[]>
}

export function lookAtProcesses(reader: ProcessReader): ProcessLook {
  let all: Promise<ProcessInfo[]> | undefined
  return {
    identify: (pid) => reader.one(pid),
    isAlive: async (identity) => isSame(await reader.one(identity.pid), identity),
    ofMachine: async (machine, first) => membersOf(await (all ??= reader.all()), machine, first),
  }
}

function isSame(process: ProcessInfo | undefined, identity: ProcessIdentity): boolean {
  return process !== undefined && !process.isDefunct && process.started === identity.started
}

/**
 * The processes that carry the machine's mark, are in its control group or are its first one, then, until no more are found, their children and
 * whoever shares a session with them: a process that wiped its environment has one of the two. Never this process.
 */
export function membersOf(all: ProcessInfo[], machine: string, first?: ProcessIdentity): ProcessInfo[] {
  const living = all.filter((one) => !one.isDefunct && one.pid !== process.pid)
  const own = all.find((one) => one.pid === process.pid)
  const members = new Set(
    living.filter(
      (one) =>
        one.machine === machine ||
        one.groupOf === machine ||
        (one.pid === first?.pid && one.started === first.started),
    ),
  )
  for (let before = -1; before !== members.size;) {
    before = members.size
    const pids = new Set([...members].map((one) => one.pid))
    const groups = new Set([...members].map((one) => one.group))
    groups.delete(own?.group ?? 0)
    groups.delete(0)
    for (const one of living) {
      if (pids.has(one.parent) || groups.has(one.group)) members.add(one)
    }
  }
  return [...members]
}
