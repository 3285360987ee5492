import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { JobSpec } from '../core/job'
import type { Home } from '../storage/home'

/** What the last rehearsal of a command on this machine has taught; `plan` and `submit` go by it. */
export interface Rehearsed {
  version: 1
  /** Of the job, for people who look into the folder. */
  name: string
  atMs: number
  survives: boolean
  /** One sentence. */
  summary: string
  /** Of a checkpoint; missing where none was seen. */
  totalBytes?: number
  /** How long the program takes to write one. */
  saveMs?: number
}

/** Keeps what a rehearsal has taught, in the place of what an earlier one of the same command had. */
export function keepRehearsed(home: Home, spec: JobSpec, rehearsed: Rehearsed): void {
  const path = pathOf(home, spec)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.${process.pid}.tmp`, `${JSON.stringify(rehearsed, null, 2)}\n`)
  renameSync(`${path}.${process.pid}.tmp`, path)
}

/** `undefined` where the command has never been rehearsed on this machine, or what was kept cannot be read. */
export function rehearsedBefore(home: Home, spec: JobSpec): Rehearsed | undefined {
  try {
    const found = JSON.parse(readFileSync(pathOf(home, spec), 'utf8')) as Partial<Rehearsed>
    return found.version === 1 && typeof found.survives === 'boolean' ? (found as Rehearsed) : undefined
  } catch {
    return undefined
  }
}

/** Jobs that run the same command and save in the same way share what was learned, whatever machine they ask for. */
function pathOf({ directory }: Home, { name, run, checkpoint }: JobSpec): string {
  const { directory: where = null, complete = [], include = [], exclude = [] } = checkpoint
  const words = JSON.stringify([name, run, where, complete, include, exclude])
  const key = createHash('sha256').update(words).digest('hex')
  return join(directory, 'rehearsals', `${key}.json`)
}
