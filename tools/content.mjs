// Tracks files by content: work on unchanged files is not repeated.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
/** The cache between runs; removed with node_modules. */
export const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible')

/** Returns the files below some paths, relative to the root with `/`, in order. A path may itself be a file; caches are left out. */
export function filesOf(...paths) {
  const files = []
  const visit = (path) => {
    if (!statSync(join(ROOT, path)).isDirectory()) return files.push(path)
    for (const entry of readdirSync(join(ROOT, path), { withFileTypes: true })) {
      if (entry.name.startsWith('.') || entry.name === '__pycache__') continue
      if (entry.isDirectory()) visit(`${path}/${entry.name}`)
      else files.push(`${path}/${entry.name}`)
    }
  }
  paths.filter((path) => existsSync(join(ROOT, path))).forEach(visit)
  return files.sort()
}

/** Returns a hash of the names and contents of files. */
export function hashOf(files) {
  const hash = createHash('sha256')
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(ROOT, file)))
      .update('\0')
  return hash.digest('hex')
}
