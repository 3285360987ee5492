/** Claims of users for jobs, which all deployments of this host share. */
import { access, lstat, mkdir, readlink, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from './errors'
import { namesIn } from './records'

/** Each claim is a link with the uid as its name and the directory of the machine as its target. */
const FOLDER = '/var/lib/crucible/uids'

/**
 * Claims a uid for a machine, whose directory may not exist yet. False if another machine holds it. Where claims cannot be written, a uid
 * is only protected by the processes that run as it.
 */
export async function claimUid(uid: number, directory: string, folder = FOLDER): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await symlink(directory, join(folder, String(uid)))
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return (await holderOf(uid, folder)) === directory
    if (hasCode(error, 'EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT')) return true
    throw error
  }
}

/** Gives a uid back, if this machine holds it. */
export async function releaseUid(uid: number, directory: string, folder = FOLDER): Promise<void> {
  if ((await holderOf(uid, folder)) === directory) await remove(uid, folder)
}

/** The claims from before a time whose machines do not exist: a younger one may be of a machine that is being made. */
export async function unusedUids(beforeMs: number, folder = FOLDER): Promise<string[]> {
  const unused: string[] = []
  for (const name of await namesIn(folder)) {
    const holder = await holderOf(Number(name), folder)
    if (holder === undefined || (await access(holder).then(() => true, isThere))) continue
    const { mtimeMs } = await lstat(join(folder, name))
    if (mtimeMs < beforeMs) unused.push(join(folder, name))
  }
  return unused
}

/** Only a certain absence proves that a machine does not exist. */
function isThere(error: unknown): boolean {
  return !hasCode(error, 'ENOENT')
}

async function holderOf(uid: number, folder: string): Promise<string | undefined> {
  try {
    return await readlink(join(folder, String(uid)))
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EACCES', 'EINVAL')) return undefined
    throw error
  }
}

async function remove(uid: number, folder: string): Promise<void> {
  await unlink(join(folder, String(uid))).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error
  })
}
