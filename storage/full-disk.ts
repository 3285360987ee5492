import { statfsSync } from 'node:fs'

/** Databases and logs cannot be written with less free space than this. */
const FULL_BELOW_BYTES = 4 * 1024 * 1024

/** Says that the disk of a folder is full, and what to do; `undefined` if it is not, or if the file system does not answer. */
export function fullDiskInWords(folder: string): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < FULL_BELOW_BYTES ? `The disk of ${folder} is full: free some space.` : undefined
  } catch {
    // A folder that is missing or refused is reported by its own readers.
    return undefined
  }
}
