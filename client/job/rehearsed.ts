import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { JobSpec } from '../../core/job/job'
import type { Home } from '../../storage/home'

/** Findings of the last rehearsal of a command on this machine; `plan` and `submit` use them. */
export interface Rehearsed {
  version: 1
  /** Name of the job, for people who read the folder. */
  name: string
  atMs: number
  survives: boolean
  /** Summary in one sentence. */
  summary: string
  /** Size of a checkpoint; missing if none was seen. */
  totalBytes?: number
  /** Time that the program takes to write one. */
  saveMs?: number
}

/** Saves the findings of a rehearsal, replacing those of an earlier one of the same command. */
export function keepRehearsed(home: Home, spec: JobSpec, rehearsed: Rehearsed): void {
  const path = pathOf(home, spec)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.${process.pid}.tmp`, `${JSON.stringify(rehearsed, null, 2)}\n`)
  renameSync(`${path}.${process.pid}.tmp`, path)
}

/** `undefined` if the command was never rehearsed on this machine, or the findings are unreadable. */
export function rehearsedBefore(home: Home, spec: JobSpec): Rehearsed | undefined {
  try {
    const found = JSON.parse(readFileSync(pathOf(home, spec), 'utf8')) as Partial<Rehearsed>
    return found.version === 1 && typeof found.survives === 'boolean' ? (found as Rehearsed) : undefined
  } catch {
    return undefined
  }
}

/** Jobs with the same command and checkpoint settings share findings, whatever machine they request. */
function pathOf({ directory }: Home, { name, run, checkpoint }: JobSpec): string {
  const { directory: where = null, complete = [], include = [], exclude = [] } = checkpoint
  const words = JSON.stringify([name, run, where, complete, include, exclude])
  const key = createHash('sha256').update(words).digest('hex')
  return join(directory, 'rehearsals', `${key}.json`)
}
