import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { hostPath } from './config'
import { BLOCK_DEVICES } from './local-disks'
import {
  LAUNCH,
  MACHINE_FOLDERS,
  type EnclosedCommand,
  type EnclosedProcess,
  type Enclosure,
  type ProcessEnd,
} from './enclosure'
import { MachineDead } from './errors'
import { asUser, findPrograms, probe, type MachineUser } from './host'
import {
  familyOf,
  lineageOf,
  readProcesses,
  signalPid,
  type HostProcess,
  type ProcessTable,
} from './processes'

const UNSHARE = [
  '--user',
  '--map-root-user',
  '--mount',
  '--uts',
  '--ipc',
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
]

/**
 * The first process of a machine, which collects orphans. It ends, and all others with it, when the other end of its standard input is
 * closed. Its working directory is the machine's; the arguments are folders of the host that stay visible. It uses no absolute paths,
 * because its user may lack search permission for a parent of the directory. The first argument is the hostname, empty for this host's.
 */
const INIT = `
set -e
if [ -n "$1" ]; then hostname "$1"; fi
shift
for kept in "$@"; do mkdir -p ".$kept"; mount -c --rbind "$kept" ".$kept"; done
for place in ${MACHINE_FOLDERS.join(' ')}; do mount -c --rbind ".$place" "$place"; done
mount -t tmpfs -o mode=1777 tmpfs /dev/shm || :
if [ -d ${BLOCK_DEVICES} ]; then mount --bind ${BLOCK_DEVICES} /sys/block; fi
cd /
exec 3<&0 </dev/null
echo ready
until cat <&3 >/dev/null 2>&1 & wait $!; do :; done
`

/** The folders of the host that a machine does not see. */
const HIDDEN = [...MACHINE_FOLDERS, '/dev/shm']

const PROBE = 'mount -t tmpfs tmpfs /tmp && test $$ = 1 && test -d /proc/1'

let tools: Promise<Tools | undefined> | undefined

interface Tools {
  unshare: string
  nsenter: string
  setsid: string
  shell: string
}

/** Returns the required programs if this host lets its user create namespaces. Checked once. */
function findTools(): Promise<Tools | undefined> {
  return (tools ??= lookForTools())
}

async function lookForTools(): Promise<Tools | undefined> {
  if (process.platform !== 'linux') return undefined
  const [unshare, nsenter, setsid, shell, mount] = ['unshare', 'nsenter', 'setsid', 'sh', 'mount'].map(
    (name) => findPrograms(name, HIDDEN)[0],
  )
  if (!unshare || !nsenter || !setsid || !shell || !mount) return undefined
  const answer = await probe(unshare, [...UNSHARE, shell, '-c', PROBE])
  return answer === undefined ? undefined : { unshare, nsenter, setsid, shell }
}

export async function namespacesFor(plan: Plan): Promise<Enclosure | undefined> {
  const found = await findTools()
  return found && new Namespaces({ ...plan, tools: found })
}

interface Plan {
  id: string
  directory: string
  user: MachineUser
  hostname?: string | undefined
}

interface Parts extends Plan {
  tools: Tools
}

/**
 * User, mount, UTS, PID and IPC namespaces: the machine sees its own /var, /run, /root, /tmp and processes, and is root only inside. The kernel
 * ends all processes in the namespaces with the first one.
 */
class Namespaces implements Enclosure {
  readonly kind = 'namespaces'
  readonly hidden = [...HIDDEN]
  readonly environment = {}
  private holder: ChildProcess | undefined
  private holderEnded: Promise<unknown> = Promise.resolve()
  private init: number | undefined
  private isKilled = false
  private isOver = false
  private readonly launchers = new Map<number, Promise<ProcessEnd>>()
  private readonly listeners: (() => void)[] = []

  constructor(private readonly parts: Parts) {}

  seenAs(path: string): string {
    return path
  }

  async start(): Promise<void> {
    const { tools, directory, user, hostname = '' } = this.parts
    const args = [...UNSHARE, tools.shell, '-c', INIT, 'init', hostname, ...visibleFolders()]
    const holder = spawn(tools.unshare, args, {
      ...asUser(user),
      cwd: directory,
      env: { PATH: hostPath() },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    })
    this.holder = holder
    let words = ''
    holder.stderr.on('data', (piece: Buffer) => (words += piece.toString()))
    holder.stdin.on('error', () => undefined)
    this.holderEnded = once(holder, 'exit').then(
      () => this.end(),
      () => this.end(),
    )
    await Promise.race([once(holder.stdout, 'data'), this.holderEnded])
    if (this.isKilled) throw new MachineDead(this.parts.id)
    const table = await readProcesses()
    this.init = table.processes.find(({ parent }) => parent === holder.pid)?.pid
    if (this.init === undefined) throw new Error(`machine ${this.parts.id} has not begun: ${words.trim()}`)
  }

  run({ argv, cwd, environment, stdout, stderr }: EnclosedCommand): EnclosedProcess {
    const pid = this.holder?.pid
    if (this.isKilled || this.isOver || pid === undefined) throw new MachineDead(this.parts.id)
    const { tools, user } = this.parts
    const at = (name: string): string => `/proc/${pid}/ns/${name}`
    const places = ['user', 'mount', 'uts', 'ipc'].map(
      (name) => `--${name}=${at(name === 'mount' ? 'mnt' : name)}`,
    )
    const enter = [...places, `--pid=${at('pid_for_children')}`, '--preserve-credentials', '--']
    const launch = [tools.setsid, tools.shell, '-c', LAUNCH, 'launch', cwd, ...argv]
    const launcher = spawn(tools.nsenter, [...enter, ...launch], {
      ...asUser(user),
      cwd: '/',
      env: environment,
      stdio: ['ignore', stdout, stderr],
      detached: true,
    })
    return this.follow(launcher)
  }

  /** The launcher stays outside the machine and ends with the status of the process inside. */
  private follow(launcher: ChildProcess): EnclosedProcess {
    const pid = launcher.pid
    launcher.on('error', () => undefined)
    if (pid === undefined) throw new Error('this host can start no more processes')
    const ended = once(launcher, 'exit').then((end: unknown[]): ProcessEnd => {
      this.launchers.delete(pid)
      return { exitCode: end[0] as number | null, signal: end[1] as NodeJS.Signals | null }
    })
    this.launchers.set(pid, ended)
    return { ended, find: (table) => table.processes.find(({ parent }) => parent === pid) }
  }

  members(table: ProcessTable, isSeed: (process: HostProcess) => boolean): HostProcess[] {
    const isLauncher = ({ pid }: HostProcess): boolean => this.launchers.has(pid)
    return familyOf(table, (one) => !isLauncher(one) && isSeed(one)).filter((one) => !isLauncher(one))
  }

  owns(pid: number): boolean {
    return lineageOf(pid).some((each) => each === this.init || this.launchers.has(each))
  }

  async kill(): Promise<void> {
    this.isKilled = true
    if (this.init !== undefined) signalPid(this.init, 'SIGKILL')
    else if (this.holder?.pid !== undefined) signalPid(this.holder.pid, 'SIGKILL')
    await this.holderEnded
    await Promise.all(this.launchers.values())
  }

  onEnd(listener: () => void): void {
    this.listeners.push(listener)
  }

  private end(): void {
    this.isOver = true
    if (this.isKilled || this.init === undefined) return
    for (const listener of this.listeners) listener()
  }
}

/** Returns the visible folders. Name resolution uses this file, which may be a link into a folder that machines replace with their own. */
function visibleFolders(): string[] {
  try {
    const folder = dirname(realpathSync('/etc/resolv.conf'))
    return folder.startsWith('/run/') ? [folder] : []
  } catch {
    return []
  }
}
