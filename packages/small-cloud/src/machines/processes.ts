import { execFile } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { hasCode } from './errors'

export interface HostProcess {
  pid: number
  /** The start time, which distinguishes it from a later process with the same number. */
  started: string
  parent: number
  group: number
  /** The process group on systems that do not show sessions. */
  session: number
}

/** A snapshot of the living processes of this host with their initial environments. */
export interface ProcessTable {
  processes: HostProcess[]
  /** Whether a process was started with this `NAME=value`; false if the environment is not readable. */
  carries(process: HostProcess, variable: string): boolean
}

export async function readProcesses(): Promise<ProcessTable> {
  return process.platform === 'linux' ? readProc() : await readPs()
}

/** Synchronous: these files are in memory, and the thread pool would cost ten times the read itself. */
function readProc(): ProcessTable {
  const environments = new Map<number, string>()
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? [])
  const environmentOf = (pid: number): string => {
    const known = environments.get(pid)
    if (known !== undefined) return known
    const text = `\0${read(`/proc/${pid}/environ`) ?? ''}\0`
    environments.set(pid, text)
    return text
  }
  return {
    processes,
    carries: ({ pid }, variable) => environmentOf(pid).includes(`\0${variable}\0`),
  }
}

/** proc_pid_stat(5): the name in parentheses may contain any character, so the fields are counted from the last parenthesis. */
function readStat(pid: number): HostProcess | undefined {
  const text = read(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  const [state, parent, group, session, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z' || state === 'X') return undefined
  return { pid, started: rest[15]!, parent: Number(parent), group: Number(group), session: Number(session) }
}

/** Reads a file of a process, which may end meanwhile, or belong to another user and be unreadable. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}

/** Returns a process and its ancestors, the nearest first; Linux only. */
export function lineageOf(pid: number): number[] {
  const lineage: number[] = []
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = readStat(at)?.parent)
    lineage.push(at)
  return lineage
}

/** Returns a process's own number, in the innermost of its namespaces. */
export function innerPid(pid: number): number {
  const line = read(`/proc/${pid}/status`)?.match(/^NSpid:\s*(.*)$/m)?.[1]
  return Number(line?.split(/\s+/).at(-1) ?? pid)
}

const PS_MAX_BYTES = 64 * 1024 * 1024

/** Reads processes with BSD's ps: `-E` appends the environment to the command, readable for the user's own processes. */
async function readPs(): Promise<ProcessTable> {
  const list = async (...options: string[]): Promise<string[]> => {
    const { stdout } = await promisify(execFile)('/bin/ps', options, {
      maxBuffer: PS_MAX_BYTES,
      env: { LC_ALL: 'C' },
    })
    return stdout.split('\n').filter((line) => line.trim() !== '')
  }
  const [rows, commands] = await Promise.all([
    list('-axo', 'pid=,ppid=,pgid=,stat=,lstart='),
    list('-axEwwo', 'pid=,command='),
  ])
  const environments = new Map(commands.map((line) => [parseInt(line, 10), `${line} `]))
  const processes = rows.flatMap((row): HostProcess[] => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(row)
    if (match === null || match[4]!.startsWith('Z')) return []
    const group = Number(match[3])
    return [
      { pid: Number(match[1]), started: match[5]!.trim(), parent: Number(match[2]), group, session: group },
    ]
  })
  return {
    processes,
    carries: ({ pid }, variable) => environments.get(pid)?.includes(` ${variable} `) ?? false,
  }
}

/**
 * Returns the closure of some processes over children and sessions: children are added, and all processes in a session that one of the set
 * began. Never includes this process.
 */
export function familyOf(table: ProcessTable, isSeed: (process: HostProcess) => boolean): HostProcess[] {
  const others = table.processes.filter(({ pid }) => pid !== process.pid)
  const members = new Set(others.filter(isSeed))
  for (let before = -1; before !== members.size;) {
    before = members.size
    const pids = new Set([...members].map(({ pid }) => pid))
    for (const one of others) if (pids.has(one.parent) || pids.has(one.session)) members.add(one)
  }
  return [...members]
}

/** Sends a signal to the processes whose number has not been reused; ended processes are skipped. */
export function signalProcesses(processes: HostProcess[], signal: NodeJS.Signals): void {
  for (const { pid } of processes) signalPid(pid, signal)
}

export function signalPid(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!hasCode(error, 'ESRCH', 'EPERM')) throw error
  }
}
