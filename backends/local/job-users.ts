import { withoutEnd } from '../../core/trim'
import { createHash } from 'node:crypto'
import { chmod, mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { BackendError } from '../errors'
import type { UidRange } from './config'
import { messageOf } from '../../core/errors'
import { hasCode } from './errors'
import type { Host } from './host'
import { runProgram } from './programs'
import { namesIn } from './records'
import { claimUid } from './uid-claims'

/** The user for a machine's commands. */
export interface JobUser {
  /** Id of user and group. */
  uid: number
  /** See `MachineRecord.folder`; records from before an upgrade have it here. */
  folder: string
}

/**
 * Whether jobs get separate users. `off`: they run as the worker's user; `why` is missing if that is expected. `refused`: separate users
 * are required but impossible.
 */
export type JobUsers =
  | { kind: 'on'; range: UidRange; folder: string }
  | { kind: 'off'; why?: string }
  | { kind: 'refused'; why: string }

export const USERS_REMEDY =
  'Put what jobs need in a place that every user can read (not below /root), or set CRUCIBLE_LOCAL_UIDS=no to run jobs as root.'

/** Folder for the directories of jobs if other users cannot enter the root, which is usually in a closed home. */
export const ELSEWHERE = '/var/lib/crucible/jobs'
const PROBE_TIMEOUT_MS = 15_000
const OTHERS_PASS = 0o001

/**
 * Prints the paths of `python3` and `python`, their package folders, and whether the user has packages. `$1` is a folder that
 * must be reachable.
 */
const PROBE = `cd "$1" || exit 3
for name in python3 python; do
  command -v "$name" || continue
  "$name" -c 'import os, site, sys
own = site.getusersitepackages()
has_own = bool(site.ENABLE_USER_SITE and os.path.isdir(own) and os.listdir(own))
print(sys.executable, sys.prefix, "with packages in " + own if has_own else "")'
done
exit 0`

/** Whether jobs without an image can read each other, unless an operator has chosen that with `CRUCIBLE_LOCAL_UIDS=no`. */
export function isUserShared(users: JobUsers): boolean {
  return users.kind === 'off' && (users.why !== undefined || process.getuid?.() !== 0)
}

/** Checks the configuration and what this host allows. */
export async function readJobUsers(host: Host, signal: AbortSignal): Promise<JobUsers> {
  const range = host.config.uids
  if (range === undefined) return { kind: 'off' }
  const not = (why: string): JobUsers => ({ kind: range.isWanted ? 'refused' : 'off', why })
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    return range.isWanted ? not('only a root worker on Linux can change the user') : { kind: 'off' }
  }
  try {
    const folder = await jobsFolder(host.paths.root)
    const why = await whyUnlike(host, { uid: range.first, folder, signal })
    return why === undefined ? { kind: 'on', range, folder } : not(why)
  } catch (error) {
    if (error instanceof BackendError) throw error
    return not(`their directories cannot be created: ${messageOf(error)}`)
  }
}

/** The folder of jobs' directories, created if missing: others can pass through it, but not list it. */
async function jobsFolder(root: string): Promise<string> {
  const isOpen = await everyonePasses(dirname(root))
  if (isOpen) await chmod(root, (await stat(root)).mode | OTHERS_PASS)
  const folder = isOpen ? join(root, 'jobs') : ELSEWHERE
  await mkdir(folder, { recursive: true, mode: 0o711 })
  await chmod(folder, 0o711)
  if (!isOpen) await chmod(dirname(folder), 0o711)
  return folder
}

async function everyonePasses(folder: string): Promise<boolean> {
  for (let path = await realpath(folder); ; path = dirname(path)) {
    if (((await stat(path)).mode & OTHERS_PASS) === 0) return false
    if (path === dirname(path)) return true
  }
}

/** Returns how the programs of a job differ from those of root; `undefined` if they are the same. */
async function whyUnlike(
  host: Host,
  { uid, folder, signal }: { uid: number; folder: string; signal: AbortSignal },
): Promise<string | undefined> {
  const options = { timeoutMs: PROBE_TIMEOUT_MS, signal, cwd: '/' }
  const { environment } = host.config
  const run = (own: object, env: Record<string, string>): ReturnType<typeof runProgram> =>
    runProgram('sh', ['-c', PROBE, 'probe', folder], { ...options, ...own, env })
  const [ours, theirs] = await Promise.all([
    run({}, environment),
    run({ user: uid }, { ...environment, HOME: folder }),
  ])
  if (ours.kind === 'unanswered' || theirs.kind === 'unanswered') {
    throw new BackendError({ class: 'transient', message: 'finding the programs of jobs took too long' })
  }
  if (theirs.kind !== 'answered') return `a process of uid ${uid} ${theirs.message}`
  if (ours.kind !== 'answered' || ours.output === theirs.output) return undefined
  const first = (output: string): string => output.trim().split('\n')[0]!.trim() || 'none'
  const differing = ours.output.split('\n').find((line, at) => line !== theirs.output.split('\n')[at])
  return `root and other users run different Pythons: root has ${differing?.trim()}, others have ${first(theirs.output)}`
}

/**
 * The directory of a job: one path for all its attempts, because programs store absolute paths in their checkpoints. It is short, for Unix
 * sockets below it, and distinct among roots that share a folder.
 */
export function folderOf(folder: string, root: string, jobId: string): string {
  const digest = createHash('sha256').update(`${root}\0${jobId}`).digest('hex').slice(0, 8)
  return join(folder, `${withoutEnd(jobId.slice(0, 8), '-')}-${digest}`)
}

/**
 * A uid of the range without a machine of any deployment and without a process: files of an earlier job must not become the next one's.
 * It is claimed for the machine with this directory.
 */
export async function chooseUid(range: UidRange, directory: string, taken: Set<number>): Promise<number> {
  const running = await uidsRunning()
  const size = range.last - range.first + 1
  const start = createHash('sha256').update(directory).digest().readUInt32BE() % size
  for (let step = 0; step < size; step++) {
    const uid = range.first + ((start + step) % size)
    if (!taken.has(uid) && !running.has(uid) && (await claimUid(uid, directory))) return uid
  }
  throw new BackendError({
    class: 'capacity',
    message: `all ${size} uids of CRUCIBLE_LOCAL_UIDS are in use`,
  })
}

async function uidsRunning(): Promise<Set<number>> {
  const pids = (await namesIn('/proc')).filter((name) => /^\d+$/.test(name))
  const uids = await Promise.all(
    pids.map(async (pid) => {
      try {
        return (await stat(`/proc/${pid}`)).uid
      } catch (error) {
        if (hasCode(error, 'ENOENT', 'ESRCH')) return -1
        throw error
      }
    }),
  )
  return new Set(uids)
}
