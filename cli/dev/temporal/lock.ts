import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { identify, isAlive, type ProcessIdentity } from '../../../service/process-identity'

/** The data that the owner of a lock publishes. */
export interface LockEntry<Info> {
  /** The lock is held while any of these processes lives. The first is the owner. */
  processes: ProcessIdentity[]
  info: Info
}

export interface Lock<Info> {
  /** Updates the published data, and adds a process that keeps the lock held after the owner is gone. */
  update(info: Info, sharedWithPid?: number): void
  release(): void
}

export interface LockOptions<Info> {
  info: Info
  /** Time to wait for the holder. With 0, it only waits the short time that two simultaneous claims need to separate. */
  waitMs: number
  onWait?: (holder: LockEntry<Info>) => void
  signal?: AbortSignal | undefined
}

/** Range of the random wait after two simultaneous claims both back off, so that they do not collide again. */
const PARTING_MS = 1_000
const LOOK_EVERY_MS = 50

/** Distinguishes the claims of one process; processes are distinguished by their ids. */
let tries = 0

/**
 * A lock among processes of one machine: a directory with one file per claim. A claimant that sees another's live file after writing its
 * own backs off. Therefore two never hold it, and any process can remove a dead owner's file without the risk of removing a live one.
 * Returns the holder if the lock is taken.
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
    // Random intervals, because two simultaneous claims would otherwise collide forever.
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

/** Writes a temporary file and renames it, so that a reader never sees half of it. */
function write(path: string, entry: LockEntry<unknown>): void {
  writeFileSync(`${path}.new`, JSON.stringify(entry))
  renameSync(`${path}.new`, path)
}

/** The entry, or `undefined` if its owner has removed it or a power failure left it empty. */
function read<Info>(path: string): LockEntry<Info> | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as LockEntry<Info>
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
