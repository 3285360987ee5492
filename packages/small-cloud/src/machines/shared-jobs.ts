/**
 * The directories of jobs on machines that see the folders of this host. Programs store absolute paths in their checkpoints, so a job needs one
 * path on all machines: they share the folder, in which each directory `NAME` belongs to the machine that `NAME.lock` names.
 */
import { chmodSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The folder of a machine that has the directories of its attempts and a link to the shared folder. */
const STATE = 'var/lib/crucible'
const JOBS = 'jobs'
const LOCK = '.lock'

/** Links the shared folder into a machine's disk; `own` gives a new file to the user of machines. */
export function shareJobs(directory: string, own: (path: string) => void): void {
  const shared = join(dirname(directory), JOBS)
  if (!existsSync(shared)) {
    mkdirSync(shared)
    chmodSync(shared, 0o700)
    own(shared)
  }
  const link = join(directory, STATE, JOBS)
  if (!existsSync(link)) symlinkSync(shared, link)
}

/** Removes the directories that still belong to a machine whose disk is about to be deleted. */
export async function removeJobsOf(directory: string): Promise<void> {
  const shared = join(dirname(directory), JOBS)
  const entries = await readdir(shared).catch(() => [])
  const attempts = await readdir(join(directory, STATE)).catch(() => [])
  for (const lock of entries.filter((name) => name.endsWith(LOCK))) {
    const owner = await readFile(join(shared, lock), 'utf8').catch(() => '')
    if (!attempts.some((attempt) => owner.startsWith(`${attempt}.`))) continue
    await rm(join(shared, lock.slice(0, -LOCK.length)), { recursive: true, force: true })
    await rm(join(shared, lock), { force: true })
  }
}
