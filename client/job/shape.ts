import { chmod, lstat, utimes } from 'node:fs/promises'
import type { TreeEntry } from '../../core/job/checkpoint'
import { SECOND_MS } from '../../core/time/time'

const PERMISSIONS = 0o777
const NS_PER_SECOND = 1e9
/** Folders stay open for their owner, who may download into them again. */
const OWNER_PASSES = 0o700

/** Gives a downloaded file or folder its permissions and time. Links and absent files stay as they are. */
export async function shape(path: string, { mode, modifiedAtMs, modifiedNs = 0 }: TreeEntry): Promise<void> {
  const status = await lstat(path).catch(() => undefined)
  if (status === undefined || status.isSymbolicLink()) return
  await chmod(path, (mode & PERMISSIONS) | (status.isDirectory() ? OWNER_PASSES : 0))
  if (modifiedAtMs === undefined) return
  const seconds = modifiedAtMs / SECOND_MS + modifiedNs / NS_PER_SECOND
  await utimes(path, seconds, seconds)
}
