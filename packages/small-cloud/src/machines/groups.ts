import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import {
  LAUNCH,
  type EnclosedCommand,
  type EnclosedProcess,
  type Enclosure,
  type ProcessEnd,
} from './enclosure'
import { MachineDead } from './errors'
import { asUser, type MachineUser } from './host'
import { Lookout } from './lookout'
import {
  familyOf,
  lineageOf,
  readProcesses,
  signalProcesses,
  type HostProcess,
  type ProcessTable,
} from './processes'
import { shareJobs } from './shared-jobs'

/** The name of the state folder when the unit does not set one. */
const STATE = 'crucible'
/** A variable with the machine's id in the environment of all its processes. */
const MARKER = 'CRUCIBLE_SIM_MACHINE'
/** A process that drops its parent and its environment is still known if it was seen before. */
const LOOKOUT = new Lookout(250)
/** A killed process is gone within milliseconds, or hangs in the kernel as long as its disk: about 5 s. */
const KILL_ROUNDS_MAX = 30
const KILL_PAUSE_MAX_MS = 200

/** The path of the reaper next to the machine's disk, readable by its user. */
const REAPER = 'reaper.py'

interface Parts {
  id: string
  directory: string
  user: MachineUser
  python: string
}

/**
 * Enclosure for hosts without namespaces: a machine consists of the processes with its marker, and of their descendants found by periodic
 * scans. A guard ends it if this process is killed.
 */
export class Groups implements Enclosure {
  readonly kind = 'groups'
  readonly hidden = []
  readonly environment: Record<string, string>
  private readonly known = new Map<number, string>()
  /** Processes without the marker, which are known as children of processes that have it. */
  private strangers = new Map<number, string>()
  private readonly reapers = new Map<number, Promise<void>>()
  private guard: ChildProcess | undefined
  private readonly watch = (table: ProcessTable): void => void this.recognise(table)
  private isDead = false

  constructor(private readonly parts: Parts) {
    const { id, directory } = parts
    this.environment = {
      // Without namespaces the machine has no /var/lib, so one folder serves as the state directory of all units.
      STATE_DIRECTORY: join(directory, 'var/lib', STATE),
      HOME: join(directory, 'root'),
      TMPDIR: join(directory, 'tmp'),
      [MARKER]: id,
    }
  }

  seenAs(path: string): string {
    return join(this.parts.directory, path)
  }

  async start(): Promise<void> {
    const { directory, user, python, id } = this.parts
    const isOther = user.uid !== process.getuid!()
    if (isOther) whyNotReachable(directory)
    shareJobs(directory, (path) => isOther && chownSync(path, user.uid, user.gid))
    copyFileSync(join(__dirname, 'programs', 'reaper.py'), join(directory, REAPER))
    chmodSync(join(directory, REAPER), 0o644)
    this.guard = spawn(python, ['-IS', join(__dirname, 'programs', 'guard.py'), `${MARKER}=${id}`], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      env: { PATH: '/usr/bin:/bin' },
    })
    this.guard.stdin!.on('error', () => undefined)
    await once(this.guard, 'spawn')
    LOOKOUT.add(this.watch)
  }

  run({ argv, cwd, environment, stdout, stderr }: EnclosedCommand): EnclosedProcess {
    if (this.isDead) throw new MachineDead(this.parts.id)
    const { python, user, directory, id } = this.parts
    const reaper = join(directory, REAPER)
    const child = spawn(python, ['-IS', reaper, '-c', LAUNCH, 'launch', cwd, ...argv], {
      ...asUser(user),
      cwd: '/',
      env: { [MARKER]: id },
      stdio: ['ignore', stdout, stderr, 'pipe', 'pipe'],
      detached: true,
    })
    const pipe = child.stdio[4] as Writable
    pipe.on('error', () => undefined)
    pipe.end(JSON.stringify(environment))
    return this.follow(child)
  }

  /** The reaper outlives the command while any of its descendants is alive. */
  private follow(reaper: ChildProcess): EnclosedProcess {
    const pid = reaper.pid
    reaper.on('error', () => undefined)
    if (pid === undefined) throw new Error('this host can start no more processes')
    const gone = once(reaper, 'exit').then(() => {
      this.reapers.delete(pid)
    })
    this.reapers.set(pid, gone)
    let report = ''
    const ended = new Promise<ProcessEnd>((resolve) => {
      const pipe = reaper.stdio[3] as Readable
      pipe.on('data', (piece: Buffer) => (report += piece.toString()))
      pipe.once('close', () => resolve(endOf(report)))
    })
    const first = (): number => parseInt(report, 10)
    return { ended, find: (table) => table.processes.find((one) => one.pid === first()) }
  }

  /** The processes that a reaper has adopted belong to its command. */
  members(table: ProcessTable, isSeed: (process: HostProcess) => boolean): HostProcess[] {
    return familyOf(table, isSeed).filter(({ pid }) => !this.reapers.has(pid))
  }

  owns(pid: number): boolean {
    return lineageOf(pid).some((each) => this.reapers.has(each) || this.known.has(each))
  }

  async kill(): Promise<void> {
    this.isDead = true
    LOOKOUT.remove(this.watch)
    let left = await this.look()
    for (let round = 0; left.length > 0 && round < KILL_ROUNDS_MAX; round++) {
      // Stopped processes start no others: the second scan finds processes that were born during the first.
      signalProcesses(left, 'SIGSTOP')
      signalProcesses(await this.look(), 'SIGKILL')
      await pause(Math.min(5 * 2 ** round, KILL_PAUSE_MAX_MS))
      left = await this.look()
    }
    this.guard?.stdin?.end('off\n')
    if (left.length > 0)
      throw new Error(
        `machine ${this.parts.id}: alive after SIGKILL: ${left.map(({ pid }) => pid).join(', ')}`,
      )
    await Promise.all(this.reapers.values())
  }

  onEnd(): void {
    // There is no init process that could end.
  }

  /** Returns every living process of the machine, and remembers it. */
  private async look(): Promise<HostProcess[]> {
    return this.recognise(await readProcesses())
  }

  private recognise(table: ProcessTable): HostProcess[] {
    const mark = `${MARKER}=${this.parts.id}`
    const isSeed = (one: HostProcess): boolean =>
      this.known.get(one.pid) === one.started ||
      this.reapers.has(one.pid) ||
      (this.strangers.get(one.pid) !== one.started && table.carries(one, mark))
    const found = familyOf(table, isSeed)
    const members = new Set(found)
    const strangers = table.processes.filter((one) => !members.has(one))
    this.strangers = new Map(strangers.map(({ pid, started }) => [pid, started]))
    for (const { pid, started } of found) {
      if (this.known.get(pid) === started) continue
      this.known.set(pid, started)
      this.guard?.stdin?.write(`${pid} ${started}\n`)
    }
    return found
  }
}

/**
 * Parses the number of the command's process and, once it has ended, its exit code and signal. Without these it was killed together with
 * its reaper.
 */
function endOf(report: string): ProcessEnd {
  const [exitCode, number] = report.split('\n')[1]?.split(' ').map(Number) ?? []
  if (exitCode === undefined || number === undefined) return { exitCode: null, signal: 'SIGKILL' }
  if (number === 0) return { exitCode, signal: null }
  const [signal] = Object.entries(constants.signals).find(([, one]) => one === number) ?? ['SIGKILL']
  return { exitCode: null, signal: signal as NodeJS.Signals }
}

/** Started by root, machines run as another user, who must be able to reach their directory. */
function whyNotReachable(directory: string): void {
  for (let folder = dirname(directory); folder !== '/'; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0)
      throw new Error(
        `Machines do not run as root, and their user cannot reach ${directory}: chmod o+x ${folder}, or run the simulator as an ordinary user.`,
      )
  }
}
