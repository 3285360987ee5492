/** A variable of the environment of every command; it names a folder in the machine's or the job's directory. */
export const CONTROL_VARIABLE = 'CRUCIBLE_CONTROL_DIR'
/** The option of the runner that names the machine's directory. */
export const ROOT_OPTION = '--root'

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
  /** The name of its machine in its environment, if readable. */
  machine?: string
  /** The name of the machine whose control group contains it, if the runner could create one. */
  groupOf?: string
  /** A directory of its machine, which its environment or its command line names. */
  folder?: string
}

/** The marks of a machine's processes. */
export interface MachineMarks {
  name: string
  /**
   * The machine's directories, for a machine whose name is only the attempt's id: another deployment's machine on this host may have the
   * same one. Missing for a name with its deployment.
   */
  folders?: readonly string[]
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
  ofMachine(marks: MachineMarks, first?: ProcessIdentity): Promise<ProcessInfo[]>
}

export function scanProcesses(reader: ProcessReader): ProcessScan {
  let all: Promise<ProcessInfo[]> | undefined
  return {
    identify: (pid) => reader.one(pid),
    isAlive: async (identity) => isSame(await reader.one(identity.pid), identity),
    ofMachine: async (marks, first) => membersOf(await (all ??= reader.all()), marks, first),
  }
}

function isSame(process: ProcessInfo | undefined, identity: ProcessIdentity): boolean {
  return process !== undefined && !process.isDefunct && process.started === identity.started
}

/**
 * The processes that carry the machine's marker, are in its control group or are its first one, then, repeatedly, their children
 * and the members of their sessions: a process that cleared its environment has one of the two. Never this process.
 */
function membersOf(all: ProcessInfo[], marks: MachineMarks, first?: ProcessIdentity): ProcessInfo[] {
  const living = all.filter((one) => !one.isDefunct && one.pid !== process.pid)
  const own = all.find((one) => one.pid === process.pid)
  const members = new Set([
    ...marked(living, marks),
    ...living.filter((one) => one.pid === first?.pid && one.started === first.started),
  ])
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

/**
 * The processes with the machine's name. If the name is only the attempt's id and some of them name directories of another machine, then
 * only those that name a directory of this one.
 */
function marked(living: ProcessInfo[], { name, folders }: MachineMarks): ProcessInfo[] {
  const named = living.filter((one) => one.machine === name || one.groupOf === name)
  if (folders === undefined) return named
  const isHere = ({ folder = '' }: ProcessInfo): boolean =>
    folders.some((own) => folder === own || folder.startsWith(`${own}/`))
  const isElsewhere = (one: ProcessInfo): boolean => one.folder !== undefined && !isHere(one)
  return named.some(isElsewhere) ? named.filter(isHere) : named
}
