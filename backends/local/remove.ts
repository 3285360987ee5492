import { randomUUID } from 'node:crypto'
import { chmod, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { hasCode } from './errors'
import { ELSEWHERE } from './job-users'
import type { Host } from './host'
import { FILES, jobFolder, nameOf, namesIn, type MachineRecord } from './records'
import { releaseUid, unusedUids } from './uid-claims'

/** Long after the last repetition of an order, which Temporal and the job's deadline limit. */
const TOMBSTONE_KEPT_MS = 30 * DAY_MS
/** A launch that needs longer than this to download its runner is dead. */
const STAGING_KEPT_MS = HOUR_MS
const SWEEP_EVERY_MS = HOUR_MS
/** The runner's lock of a job's directory is next to it and holds the name of the machine. */
const LOCK = '.lock'

/** Removes a machine's directory. It is renamed first, so that no reader sees half of it. */
export async function removeDirectory(host: Host, machine: MachineRecord): Promise<void> {
  const { paths } = host
  const { attemptId } = machine.owner
  await removeJobFolder(machine)
  if (machine.user !== undefined) await releaseUid(machine.user.uid, paths.machine(attemptId))
  try {
    await rename(paths.machine(attemptId), join(paths.staging, `${attemptId}.${randomUUID()}`))
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  const remains = (await namesIn(paths.staging)).filter((name) => name.startsWith(`${attemptId}.`))
  for (const name of remains) await removeTree(join(paths.staging, name))
}

/** Removes the files of the runner and its workload from a machine's directory; our own few files stay. */
export async function emptyDirectory(host: Host, machine: MachineRecord): Promise<void> {
  const directory = host.paths.machine(machine.owner.attemptId)
  await removeJobFolder(machine)
  const ours: string[] = Object.values(FILES)
  for (const name of await namesIn(directory)) {
    if (!ours.includes(name)) await removeTree(join(directory, name))
  }
}

/** Removes the job's directory, unless a later attempt of the job has taken it (`runner/crucible_runner/process/job_root.py`). */
async function removeJobFolder(machine: MachineRecord): Promise<void> {
  const folder = jobFolder(machine)
  if (folder === undefined) return
  const takenBy = await readFile(`${folder}${LOCK}`, 'utf8').catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error
  })
  if (takenBy !== undefined && takenBy !== nameOf(machine)) return
  await removeTree(folder)
  // A runner that waits for this file notices that it is another one.
  if (takenBy !== undefined) await rm(`${folder}${LOCK}`, { force: true })
}

/**
 * Removes leftovers of failed launches and expired tombstones, at most once an hour. A clock that is set ahead makes everything look old, a
 * launch in progress too: what this sweep finds old is removed by the next one.
 */
export async function sweep(host: Host): Promise<void> {
  const { paths, sweeps } = host
  const atMs = host.monotonicMs()
  if (atMs - sweeps.atMs < SWEEP_EVERY_MS) return
  sweeps.atMs = atMs
  const nowMs = host.deps.clock()
  const old = await Promise.all([
    olderThan(paths.tombstones, nowMs - TOMBSTONE_KEPT_MS),
    olderThan(paths.staging, nowMs - STAGING_KEPT_MS),
    unusedUids(nowMs - STAGING_KEPT_MS),
    ...[paths.jobs, ELSEWHERE].map((folder) => unusedLocks(folder, nowMs - TOMBSTONE_KEPT_MS)),
  ])
  const before = sweeps.old
  sweeps.old = new Set(old.flat())
  for (const path of sweeps.old) if (before.has(path)) await removeTree(path)
}

/** The locks of jobs that have had no directory on this host for long. */
async function unusedLocks(folder: string, beforeMs: number): Promise<string[]> {
  const names = new Set(await namesIn(folder))
  const old = await olderThan(folder, beforeMs)
  return old.filter((path) => path.endsWith(LOCK) && !names.has(basename(path, LOCK)))
}

async function olderThan(folder: string, beforeMs: number): Promise<string[]> {
  const paths = (await namesIn(folder)).map((name) => join(folder, name))
  const isOld = await Promise.all(
    paths.map(async (path) => {
      try {
        return (await stat(path)).mtimeMs < beforeMs
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return false
        throw error
      }
    }),
  )
  return paths.filter((_, at) => isOld[at])
}

/** `rm -r`, also through folders that a workload made read-only, such as package caches. */
async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) throw error
    await openFolders(path)
    await rm(path, { recursive: true, force: true })
  }
}

async function openFolders(path: string): Promise<void> {
  await chmod(path, 0o700)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(join(path, entry.name))
  }
}
