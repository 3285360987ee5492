import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A process, distinguishable from a later one with the same id. */
export interface ProcessIdentity {
  pid: number
  /** Start time as the system reports it; only compared for equality. */
  started: string
}

/** The process with that id, or `undefined` if it does not exist or is a zombie. */
export function identify(pid: number, platform = process.platform): ProcessIdentity | undefined {
  const started = platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid)
  return started === undefined ? undefined : { pid, started }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started
}

/** Clock ticks since boot, with the boot id: process ids and ticks repeat after a reboot. */
function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command name in parentheses may hold anything; the state is the first field after it, the start time the twentieth.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : `${boot}/${fields[19]}`
  } catch {
    return undefined
  }
}

function startedByPs(pid: number): string | undefined {
  // A fixed language and time zone; otherwise the same instant reads differently after the user travels.
  const env = { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC' }
  try {
    const line = execFileSync('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], {
      env,
      encoding: 'utf8',
    }).trim()
    const [state = 'Z', ...started] = line.split(/\s+/)
    return state.startsWith('Z') ? undefined : started.join(' ')
  } catch {
    return undefined
  }
}
