import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, link, open, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from './file-errors'
import { statOf } from './file-walk'

/** The error codes of file systems without hard links. */
const LINKLESS_CODES = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

/** A claim is held for one check and one rename; a claim that is unchanged for this long belongs to a killed process. */
const CLAIM_PATIENCE_MS = 5_000
const CLAIM_PAUSE_MS = 20

/** A new name next to a file, until that is complete: not longer for a long name, which the file system would refuse. */
export function partialOf(path: string): string {
  return join(dirname(path), `${randomUUID()}.part`)
}

/** Writes a new file that survives a power failure. */
export async function writeSynced(path: string, body: Buffer | string): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(body)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Copies a file and syncs it. */
export async function copySynced(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  const file = await open(to, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/**
 * Removes an empty folder, which holds no object, from the place of a file. False for a file; throws for a folder with content, in which a
 * caller would look in vain for the document that has its key.
 */
export async function removeEmptyFolder(path: string): Promise<boolean> {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOTDIR')) return false
    // It was removed, or replaced by a file, meanwhile.
    if (hasCode(error, 'ENOENT')) return true
    throw error
  }
}

/**
 * Moves a complete file to its place in one step unless the place is taken. Otherwise returns false and changes nothing; the file itself
 * may stay where it was.
 * @param claim path of a file for use on file systems without hard links (exFAT, some network mounts): the process that creates it checks
 * and renames, the others wait
 */
export async function placeIfAbsent(from: string, to: string, claim: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return (await removeEmptyFolder(to)) && placeIfAbsent(from, to, claim)
    if (!hasCode(error, ...LINKLESS_CODES)) throw error
  }
  await takeClaim(claim)
  try {
    if ((await statOf(to)) !== undefined) return false
    await rename(from, to)
    return true
  } finally {
    await rm(claim, { force: true })
  }
}

async function takeClaim(claim: string): Promise<void> {
  let seen: string | undefined
  let patienceMs = CLAIM_PATIENCE_MS
  for (;;) {
    try {
      await (await open(claim, 'wx')).close()
      return
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    }
    const stats = await statOf(claim)
    const now = stats === undefined ? undefined : `${stats.ino} ${stats.ctimeMs}`
    patienceMs = now === seen ? patienceMs - CLAIM_PAUSE_MS : CLAIM_PATIENCE_MS
    seen = now
    if (patienceMs <= 0) await breakClaim(claim)
    await sleep(CLAIM_PAUSE_MS)
  }
}

async function breakClaim(claim: string): Promise<void> {
  const aside = `${claim}-${randomUUID()}`
  await rename(claim, aside).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error
  })
  await rm(aside, { force: true })
}
