import { readFileSync, readdirSync } from 'node:fs'
import { defined } from '../../core/defined'
import { MACHINE_VARIABLE } from '../../core/queues'
import { hasCode } from './errors'
import { CONTROL_VARIABLE, ROOT_OPTION, type ProcessInfo, type ProcessReader } from './processes'

/** Prefix as in runner/crucible_runner/process/cgroup.py. */
const GROUP_PREFIX = 'crucible-'

/**
 * Reads `/proc` directly. Synchronous: these files are memory, and a hop through the thread pool costs ten times the read itself
 * (300 processes take about 5 ms).
 */
export function createLinuxReader(): ProcessReader {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return {
    one: async (pid) => readStat(pid, boot),
    all: async () =>
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .flatMap((name) => {
          const stat = readStat(Number(name), boot)
          if (stat === undefined) return []
          const environment = read(`/proc/${stat.pid}/environ`)
          const machine = valueIn(environment, MACHINE_VARIABLE)
          const groupOf = readGroup(stat.pid)
          const isMarked = machine !== undefined || groupOf !== undefined
          const folder = isMarked ? (valueIn(environment, CONTROL_VARIABLE) ?? rootOf(stat.pid)) : undefined
          return [{ ...stat, ...defined({ machine, groupOf, folder }) }]
        }),
  }
}

/** proc_pid_stat(5): the name in parentheses may hold anything, so fields are counted from the last parenthesis. */
function readStat(pid: number, boot: string): ProcessInfo | undefined {
  const text = read(`/proc/${pid}/stat`)?.toString('latin1')
  if (text === undefined) return undefined
  const [state, parent, , session, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  // Field 22 is the start in clock ticks since boot; the boot id makes it globally unique.
  const started = `${boot}/${rest[15]}`
  return {
    pid,
    started,
    parent: Number(parent),
    group: Number(session),
    isDefunct: state === 'Z' || state === 'X',
  }
}

/** cgroups(7): one line per hierarchy. Readable for other users, and a process cannot change it, unlike its environment. */
function readGroup(pid: number): string | undefined {
  const text = read(`/proc/${pid}/cgroup`)?.toString('utf8')
  const machine = text === undefined ? undefined : machineOfGroup(text)
  if (machine === undefined) return undefined
  const status = read(`/proc/${pid}/status`)?.toString('latin1') ?? ''
  return mayBelongTo(process.getuid!(), status) ? machine : undefined
}

/** The machine of the innermost control group in a text such as `/proc/PID/cgroup`. @internal Tests read texts of both versions of control groups. */
export function machineOfGroup(text: string): string | undefined {
  const names = text.split(/[/\n]/).filter((name) => name.startsWith(GROUP_PREFIX))
  return names.at(-1)?.slice(GROUP_PREFIX.length)
}

/**
 * Whether a machine of this user may have started the process with this `/proc/PID/status`: as itself, or as root through `sudo`. Another user
 * can give a group the name of a machine, which would never end, because its processes cannot be ended here. @internal Tests need no second
 * user.
 */
export function mayBelongTo(user: number, status: string): boolean {
  const real = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])
  return user === 0 || real === user || real === 0
}

/** A variable of a process's environment, in the form of `/proc/PID/environ`. */
function valueIn(environment: Buffer | undefined, name: string): string | undefined {
  if (environment === undefined) return undefined
  const mark = Buffer.from(`\0${name}=`)
  const padded = Buffer.concat([Buffer.from('\0'), environment])
  const at = padded.indexOf(mark)
  if (at === -1) return undefined
  const end = padded.indexOf(0, at + mark.length)
  return padded.toString('utf8', at + mark.length, end === -1 ? undefined : end)
}

/** The machine's directory in the command line of a runner or its guard. */
function rootOf(pid: number): string | undefined {
  const words = read(`/proc/${pid}/cmdline`)?.toString('utf8').split('\0') ?? []
  const at = words.indexOf(ROOT_OPTION)
  return at === -1 ? undefined : words[at + 1]
}

/**
 * Reads a file of /proc. A process may end while it is read, and another user's environment may be unreadable; no other error is expected.
 */
function read(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}
