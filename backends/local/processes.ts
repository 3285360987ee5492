/** Environment variable of every process of a machine; its value is the attempt's id. */
export const MARKER = 'CRUCIBLE_MACHINE'

/** A process, identified permanently: its id, which the system reuses, with its start time. */
export interface ProcessIdentity {
  pid: number
  started: string
}

export interface ProcessInfo extends ProcessIdentity {
  parent: number
  /** Session, or process group on systems without visible sessions: a machine's first process starts a new one. */
  group: number
  /** A zombie that waits for its parent. */
  isDefunct: boolean
  /** Value of the marker in its environment, if readable. */
  machine?: string
  /** The machine whose control group contains it, if the runner could create one. */
  groupOf?: string
}

export interface ProcessReader {
  one(pid: number): Promise<ProcessInfo | undefined>
  all(): Promise<ProcessInfo[]>
}

/** One scan of this host's processes, which reads all of them at most once. */
export interface ProcessScan {
  identify(pid: number): Promise<ProcessIdentity | undefined>
  isAlive(identity: ProcessIdentity): Promise<boolean>
  /** Returns every living process of a machine; `first` is its first process, if known. */
  ofMachine(machine: string, first?: ProcessIdentity): Promise<ProcessInfo[]>
}

export function scanProcesses(reader: ProcessReader): ProcessScan {
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
 * The processes that carry the machine's marker, are in its control group or are its first one, then, repeatedly, their children
 * and the members of their sessions: a process that cleared its environment has one of the two. Never this process.
 */
function membersOf(all: ProcessInfo[], machine: string, first?: ProcessIdentity): ProcessInfo[] {
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
