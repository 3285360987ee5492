import { randomUUID } from 'node:crypto'
import { access, link, open, readFile, readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineHandle, OwnerTags, RealisedOffer } from '../../core/handle'
import { BackendError } from '../errors'
import { hasCode, invalid } from './errors'
import type { JobUser } from './job-users'
import type { MachineMarks, ProcessIdentity } from './processes'

/** `machine.json`: identity and owner of a machine. Written before its directory gets its name. */
export interface MachineRecord {
  owner: OwnerTags
  realised: RealisedOffer
  launchedAtMs: number
  /** Number of used slots. */
  slots: number
  gpus: number[]
  /** The container image of its workload: ending the machine also ends its container. */
  image: string | null
  attempt: number
  storeUrl: string
  runnerSha256: string
  /** The job's directory, which its later attempts on this host use too; missing if the machine's directory holds the job's files. */
  folder?: string
  /** The user of its commands; missing for the worker's user. */
  user?: JobUser
  /** Its name on this host; missing for a runner that knows only the attempt's id. */
  name?: string
}

/** `ending.json`: the machine is being ended; written before the first process is killed. The first one counts. */
export interface EndingRecord {
  cause: 'interrupted' | 'ended'
  requestedAtMs: number
}

/** `ended.json`: nothing of the machine runs. The first process that saw this writes it. */
export interface EndedRecord {
  cause: 'interrupted' | 'ended'
  endedAtMs: number
}

/** `notice.json`: when the machine will be interrupted; the runner reads it too. */
interface NoticeRecord {
  terminateAtMs: number
}

/** Record of a machine whose directory is gone, so that its order, sent again, does not start it again. */
export interface Tombstone {
  machine: MachineRecord
  ended: EndedRecord
}

/** Files in a machine's directory in addition to the runner's. */
export const FILES = {
  machine: 'machine.json',
  process: 'process.json',
  ending: 'ending.json',
  ended: 'ended.json',
  notice: 'notice.json',
  runner: 'runner.pyz',
  secretKey: 'secret.key',
  grant: 'grant.json',
  /** The runner reads it and claims the attempt with its content. */
  machineId: 'machine-id',
  console: 'console.log',
  /** The runner writes it when the job's program has ended: from then on it only uploads. */
  programEnded: 'program-ended',
} as const

export interface Paths {
  root: string
  machines: string
  staging: string
  /** Directories of jobs that run as the worker's user. */
  jobs: string
  tombstones: string
  machine(attemptId: string): string
  tombstone(attemptId: string): string
}

export function createPaths(root: string): Paths {
  const machines = join(root, 'machines')
  const tombstones = join(root, 'ended')
  return {
    root,
    machines,
    tombstones,
    staging: join(root, 'staging'),
    jobs: join(root, 'jobs'),
    machine: (attemptId) => join(machines, attemptId),
    tombstone: (attemptId) => join(tombstones, `${attemptId}.json`),
  }
}

/** True for a valid machine name: an id from outside must never lead out of the root. */
export function isMachineId(id: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(id)
}

export function handleOf({ owner, realised, launchedAtMs }: MachineRecord): MachineHandle {
  const { attemptId } = owner
  return { backend: 'local', kind: 'machine', id: attemptId, attemptId, realised, launchedAtMs }
}

/** The directory with the files that the job's commands may reach, if it is not the machine's own. */
export function jobFolder({ folder, user }: MachineRecord): string | undefined {
  return folder ?? user?.folder
}

/** The machine's name on this host, in the environment of its processes and in the names of its control group and its container. */
export function nameOf({ name, owner }: MachineRecord): string {
  return name ?? owner.attemptId
}

/** The marks of the machine's processes. */
export function marksOf(paths: Paths, machine: MachineRecord): MachineMarks {
  if (machine.name !== undefined) return { name: machine.name }
  const folder = jobFolder(machine)
  const own = paths.machine(machine.owner.attemptId)
  return { name: nameOf(machine), folders: folder === undefined ? [own] : [own, folder] }
}

/** All records of one machine with a directory. */
export interface MachineFiles {
  machine: MachineRecord
  process?: ProcessIdentity
  ending?: EndingRecord
  ended?: EndedRecord
  notice?: NoticeRecord
  /** The program has ended: its slots and GPUs are free. Missing like false. */
  hasProgramEnded?: boolean
}

/** `undefined` without such a machine. */
export async function readMachine(paths: Paths, id: string): Promise<MachineFiles | undefined> {
  const at = (name: string): string => join(paths.machine(id), name)
  const machine = await readJson<MachineRecord>(at(FILES.machine))
  if (machine === undefined) return undefined
  const [process, ending, ended, notice, hasProgramEnded] = await Promise.all([
    readJson<ProcessIdentity>(at(FILES.process)),
    readJson<EndingRecord>(at(FILES.ending)),
    readJson<EndedRecord>(at(FILES.ended)),
    readJson<NoticeRecord>(at(FILES.notice)),
    isThere(at(FILES.programEnded)),
  ])
  return {
    machine,
    process,
    ending,
    ended,
    notice,
    hasProgramEnded,
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

export function readTombstone(paths: Paths, id: string): Promise<Tombstone | undefined> {
  return readJson<Tombstone>(paths.tombstone(id))
}

/** Names in a folder; empty if it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/**
 * Throws `invalid` for a file that is not JSON: files are renamed or linked into place complete, so a person or a broken disk
 * changed it.
 */
async function readJson<T extends object>(path: string): Promise<T | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
  try {
    return JSON.parse(text) as T
  } catch {
    throw invalid(
      `${path} is damaged`,
      'End its remaining processes by hand, then remove that file or its directory.',
    )
  }
}

/** Writes a file completely or not at all, and flushes it to disk: it must survive a power failure. */
export async function writeJson(path: string, value: object): Promise<void> {
  await rename(await writeTemporary(path, value), path)
}

/** Writes like `writeJson`, unless the file exists. Returns false, with nothing changed, if it does. */
export async function writeJsonOnce(path: string, value: object): Promise<boolean> {
  const temporary = await writeTemporary(path, value)
  try {
    await link(temporary, path)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  } finally {
    await unlink(temporary)
  }
}

async function writeTemporary(path: string, value: object): Promise<string> {
  const temporary = `${path}.${randomUUID()}.tmp`
  const file = await open(temporary, 'wx')
  try {
    await file.writeFile(JSON.stringify(value))
    await file.sync()
    return temporary
  } catch (error) {
    await unlink(temporary)
    throw error
  } finally {
    await file.close()
  }
}

/** Refuses to touch what another deployment created. */
export function assertOwned(machine: MachineRecord, deployment: string | undefined): void {
  if (deployment === undefined || machine.owner.deployment === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `machine ${machine.owner.attemptId} belongs to deployment ${machine.owner.deployment}, not to ${deployment}`,
    hint: 'Give each deployment a separate root (CRUCIBLE_LOCAL_ROOT).',
  })
}
