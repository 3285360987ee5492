import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from './file-errors'
import { compareKeys } from './keys'
import type { StoredObject } from './store'

/** Where files are written before they get their place; never listed. */
export const TEMPORARY_FOLDER = '.tmp'

/** The part of a prefix that names a folder (with its slash, or empty), and the beginning of a name after it. */
export function splitPrefix(prefix: string): { folder: string; begin: string } {
  const at = prefix.lastIndexOf('/') + 1
  return { folder: prefix.slice(0, at), begin: prefix.slice(at) }
}

/** What lies directly in a folder of the store, in the order of keys; nothing when the folder is not there. */
export async function readFolder(root: string, folder: string): Promise<Dirent[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  })
  // A folder's keys go on with a slash, which comes after some characters (`-`, `.`) that a name may go on with.
  const sortKey = (entry: Dirent): string => (entry.isDirectory() ? `${entry.name}/` : entry.name)
  return entries
    .filter((entry) => folder !== '' || entry.name !== TEMPORARY_FOLDER)
    .sort((a, b) => compareKeys(sortKey(a), sortKey(b)))
}

/** Every object under a prefix, in the order of keys, one folder at a time; what vanishes meanwhile is left out. */
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

/** The file's data, or `undefined` when no file is there. */
export async function statOf(path: string): Promise<Stats | undefined> {
  try {
    const stats = await stat(path)
    return stats.isFile() ? stats : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}
