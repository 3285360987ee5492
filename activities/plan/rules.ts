import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folders whose code decides: the planner, and the figures and words that it uses. */
const DECIDING = ['planner', 'core']

let known: string | undefined

/** A digest of the code that decides. Two equal digests decide alike; different ones may not. */
export function rulesDigest(): string {
  known ??= digestOf(DECIDING.map((folder) => join(__dirname, '..', '..', folder)))
  return known
}

function digestOf(folders: readonly string[]): string {
  const hash = createHash('sha256')
  for (const folder of folders)
    for (const name of readdirSync(folder, { encoding: 'utf8', recursive: true }).sort())
      if (/(?<!\.d)\.[jt]s$/.test(name)) hash.update(name).update(readFileSync(join(folder, name)))
  return hash.digest('hex')
}
