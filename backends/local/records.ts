import { randomUUID } from 'node:crypto'
import { link, open, readFile, readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineHandle, OwnerTags, RealisedOffer } from '../../core/handle'
import { BackendError } from '../errors'
import { hasCode, invalid } from './errors'
import type { JobUser } from './job-users'
import type { ProcessIdentity } from './processes'

/** `machine.json`: what a machine is and whose. Lies in the directory before the directory has its name. */
export interface MachineRecord {
  owner: OwnerTags
  realised: RealisedOffer
  launchedAtMs: number
  /** What it takes of this host. */
  slots: number
  gpus: number[]
  /** The container image of its workload: ending the machine then also ends its container. */
  image: string | null
  attempt: number
  storeUrl: string
  runnerSha256: string
  /** What its commands run as; missing where that is the worker's user. */
  user?: JobUser
}

/** `ending.json`: somebody is ending the machine, put before the first process is killed. The first one counts. */
export interface EndingRecord {
  cause: 'interrupted' | 'ended'
  requestedAtMs: number
}

/** `ended.json`: nothing of the machine runs any more; the first who saw it wrote it. */
export interface EndedRecord {
  cause: 'interrupted' | 'ended'
  endedAtMs: number
}

/** `notice.json`: when the machine will be taken back; also what the runner reads. */
export interface NoticeRecord {
  terminateAtMs: number
}

/** What is kept of a machine whose directory is gone, so that its order, sent again, does not start it again. */
export interface Tombstone {
  machine: MachineRecord
  ended: EndedRecord
}

/** Files of a machine's directory beside the runner's own. */
export const FILES = {
  machine: 'machine.json',
  process: 'process.json',
  ending: 'ending.json',
  ended: 'ended.json',
  notice: 'notice.json',
  runner: 'runner.pyz',
  secretKey: 'secret.key',
  grant: 'grant.json',
  /** Read by the runner, which claims the attempt by what stands there. */
  machineId: 'machine-id',
  console: 'console.log',
} as const

export interface Paths {
  root: string
  machines: string
  staging: string
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
    machine: (attemptId) => join(machines, attemptId),
    tombstone: (attemptId) => join(tombstones, `${attemptId}.json`),
  }
}

/** True for what can be a machine's name: an id from elsewhere must never lead out of the root. */
export function isMachineId(id: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,62}$/.test(id)
}

export function handleOf({ owner, realised, launchedAtMs }: MachineRecord): MachineHandle {
  const { attemptId } = owner
  return { backend: 'local', kind: 'machine', id: attemptId, attemptId, realised, launchedAtMs }
}

/** Everything that is written down about one machine that has a directory. */
export interface MachineFiles {
  machine: MachineRecord
  process?: ProcessIdentity
  ending?: EndingRecord
  ended?: EndedRecord
  notice?: NoticeRecord
}

/** `undefined` when there is no such machine. */
export async function readMachine(paths: Paths, id: string): Promise<MachineFiles | undefined> {
  const at = (name: string): string => join(paths.machine(id), name)
  const machine = await readJson<MachineRecord>(at(FILES.machine))
  if (machine === undefined) return undefined
  const [process, ending, ended, notice] = await Promise.all([
    readJson<ProcessIdentity>(at(FILES.process)),
    readJson<EndingRecord>(at(FILES.ending)),
    readJson<EndedRecord>(at(FILES.ended)),
    readJson<NoticeRecord>(at(FILES.notice)),
  ])
  return {
    machine,
    ...(process && { process }),
    ...(ending && { ending }),
    ...(ended && { ended }),
    ...(notice && { notice }),
  }
}

export function readTombstone(paths: Paths, id: string): Promise<Tombstone | undefined> {
  return readJson<Tombstone>(paths.tombstone(id))
}

/** Names in a folder; none when it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/** Throws `invalid` for a file that is no JSON: all are renamed or linked into place whole, so a person or a broken disk did it. */
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
      'End what still runs there by hand, then remove that file or its directory.',
    )
  }
}

/** Writes a file whole, or not at all, and through to the disk: what stands here must outlive a power cut. */
export async function writeJson(path: string, value: object): Promise<void> {
  await rename(await writeTemporary(path, value), path)
}

/** As `writeJson`, unless the file exists. False, and nothing changed, when it does. */
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

/** Refuses to touch what another deployment made. */
export function assertOwned(machine: MachineRecord, deployment: string | undefined): void {
  if (deployment === undefined || machine.owner.deployment === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `machine ${machine.owner.attemptId} belongs to deployment ${machine.owner.deployment}, not to ${deployment}`,
    hint: 'Give each deployment a root of its own (CRUCIBLE_LOCAL_ROOT).',
  })
}
