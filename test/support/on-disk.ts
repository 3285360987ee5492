import { lchownSync, lstatSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Writes a file, and the folders on the way, as the owner of the folder in which they begin, who may be the user of a server. */
export function putOnDisk(path: string, content: string): void {
  const made = mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  const first = made ?? path
  const { uid, gid } = lstatSync(dirname(first))
  for (let at = path; at.length >= first.length; at = dirname(at)) lchownSync(at, uid, gid)
}
