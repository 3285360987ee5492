import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from './file-errors'
import { compareKeys } from './keys'
import type { StoredObject } from './store'

/** Folder for files that are being written; never listed. */
export const TEMPORARY_FOLDER = '.tmp'

/** Splits a prefix into a folder (with its slash, or empty) and the beginning of a name in it. */
export function splitPrefix(prefix: string): { folder: string; begin: string } {
  const at = prefix.lastIndexOf('/') + 1
  return { folder: prefix.slice(0, at), begin: prefix.slice(at) }
}

/** Returns the direct entries of a folder in the store, in key order; none when the folder is missing. */
export async function readFolder(root: string, folder: string): Promise<Dirent[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  })
  // A folder's keys continue with a slash, which sorts after some characters (`-`, `.`) that may continue a name.
  const sortKey = (entry: Dirent): string => (entry.isDirectory() ? `${entry.name}/` : entry.name)
  return entries
    .filter((entry) => folder !== '' || entry.name !== TEMPORARY_FOLDER)
    .sort((a, b) => compareKeys(sortKey(a), sortKey(b)))
}

/** Yields every object under a prefix, in key order, one folder at a time; files that vanish meanwhile are left out. */
export async function* walk(root: string, prefix: string): AsyncGenerator<StoredObject> {
  const { folder, begin } = splitPrefix(prefix)
  for (const entry of await readFolder(root, folder)) {
    if (!entry.name.startsWith(begin)) continue
    const key = `${folder}${entry.name}`
    if (entry.isDirectory()) yield* walk(root, `${key}/`)
    if (!entry.isFile()) continue
    const stats = await statOf(join(root, key))
    if (stats !== undefined) yield { key, sizeBytes: stats.size, modifiedAtMs: Math.floor(stats.mtimeMs) }
  }
}

/** Returns the file's data, or `undefined` when there is no file. */
export async function statOf(path: string): Promise<Stats | undefined> {
  try {
    const stats = await stat(path)
    return stats.isFile() ? stats : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}
