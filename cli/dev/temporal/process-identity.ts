import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A process that can be told from a later one with the same number. */
export interface ProcessIdentity {
  pid: number
  /** When the process began, as its system tells it; only ever compared for equality. */
  started: string
}

/** The process of that number, or `undefined` when there is none or it only waits to be reaped. */
export function identify(pid: number, platform = process.platform): ProcessIdentity | undefined {
  const started = platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid)
  return started === undefined ? undefined : { pid, started }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started
}

/** Clock ticks since the boot, and which boot: numbers and ticks come again after the next one. */
function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command's name in brackets may hold anything; the state is the first field after it, the start the twentieth.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : `${boot}/${fields[19]}`
  } catch {
    return undefined
  }
}

function startedByPs(pid: number): string | undefined {
  // A fixed language and time zone, or the same instant reads differently on the next day's train.
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
