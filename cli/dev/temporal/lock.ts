import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { identify, isAlive, type ProcessIdentity } from './process-identity'

/** What an owner of a lock says about itself. */
export interface LockEntry<Info> {
  /** The lock is held as long as any of these lives. The first is the owner. */
  processes: ProcessIdentity[]
  info: Info
}

export interface Lock<Info> {
  /** Says something else about the owner, and names a process that keeps the lock held even when the owner is gone. */
  update(info: Info, sharedWithPid?: number): void
  release(): void
}

export interface LockOptions<Info> {
  info: Info
  /** How long to wait for the holder; 0 answers at once, but for a short while in which two that came together part. */
  waitMs: number
  onWait?: (holder: LockEntry<Info>) => void
  signal?: AbortSignal | undefined
}

/** Two that came together both step back; they must be given time to miss each other the next time. */
const PARTING_MS = 1_000
const LOOK_EVERY_MS = 50

/** Tells the tries of one process apart; processes are told apart by their numbers. */
let tries = 0

/**
 * A lock among processes of one machine, as a directory with one file for each that wants it. Whoever sees another's living
 * file after writing its own steps back; so never two hold it, and a dead owner's file can be removed by anyone without the
 * danger of removing a living one's. Gives the holder when it was not to be had.
 */
export async function acquireLock<Info>(
  directory: string,
  options: LockOptions<Info>,
): Promise<Lock<Info> | { heldBy: LockEntry<Info> }> {
  const name = `${process.pid}-${(tries += 1)}.json`
  const path = join(directory, name)
  const entry: LockEntry<Info> = { processes: [self()], info: options.info }
  const started = performance.now()
  mkdirSync(directory, { recursive: true })
  for (;;) {
    write(path, entry)
    const holder = otherHolder<Info>(directory, name)
    if (holder === undefined) return lockAt<Info>(path, entry.processes[0]!)
    rmSync(path, { force: true })
    const waitedMs = performance.now() - started
    if (waitedMs >= Math.max(options.waitMs, PARTING_MS)) return { heldBy: holder }
    if (waitedMs >= PARTING_MS) options.onWait?.(holder)
    // Unequal steps, or two that came together would meet for ever.
    await sleep(LOOK_EVERY_MS * (1 + (process.pid % 17) / 17), undefined, { signal: options.signal })
  }
}

function lockAt<Info>(path: string, owner: ProcessIdentity): Lock<Info> {
  return {
    update(info, sharedWithPid) {
      const shared = sharedWithPid === undefined ? undefined : identify(sharedWithPid)
      write(path, { processes: shared === undefined ? [owner] : [owner, shared], info })
    },
    release() {
      rmSync(path, { force: true })
    },
  }
}

function self(): ProcessIdentity {
  return identify(process.pid) ?? { pid: process.pid, started: '' }
}

function otherHolder<Info>(directory: string, own: string): LockEntry<Info> | undefined {
  for (const name of readdirSync(directory)) {
    if (name === own || !name.endsWith('.json')) continue
    const path = join(directory, name)
    const entry = read<Info>(path)
    if (entry?.processes.some(isAlive) === true) return entry
    rmSync(path, { force: true })
  }
  return undefined
}

/** Written aside and renamed, so that nobody reads half of it. */
function write(path: string, entry: LockEntry<unknown>): void {
  writeFileSync(`${path}.new`, JSON.stringify(entry))
  renameSync(`${path}.new`, path)
}

/** The entry, or `undefined` when its owner took it away meanwhile or a power cut left it empty. */
function read<Info>(path: string): LockEntry<Info> | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as LockEntry<Info>
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
