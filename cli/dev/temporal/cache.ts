import { createHash } from 'node:crypto'
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { acquireLock, type Lock } from './lock'
import type { Progress } from './progress'
import { askVersion, TEMPORAL_CLI_VERSION, type TemporalVersion } from './version'

/** How an executable came into the cache. */
export type CacheOrigin = 'release' | 'go-build'

/** `temporal.json` beside the executable: what was installed, so that a damaged or exchanged file is noticed. */
interface CacheRecord extends TemporalVersion {
  origin: CacheOrigin
  sha256: string
  sizeBytes: number
  modifiedAtMs: number
}

export interface CachedExecutable extends TemporalVersion {
  path: string
  origin: CacheOrigin
}

/** Longer than the longest build: who waits for another's build must not give up first. */
const INSTALL_WAIT_MS = 40 * 60_000

function root(home: string): string {
  return join(home, 'cache', 'temporal')
}

/** Where the pinned version lies once it is installed. */
export function cachedPath(home: string): string {
  return join(root(home), TEMPORAL_CLI_VERSION, 'temporal')
}

function recordPath(home: string): string {
  return join(root(home), TEMPORAL_CLI_VERSION, 'temporal.json')
}

/**
 * The installed executable of the pinned version. A look at size and modification time on each start; what differs counts as
 * absent and is said in `remark`.
 */
export function findCached(home: string): { executable?: CachedExecutable; remark?: string } {
  const path = cachedPath(home)
  if (!existsSync(path)) return {}
  try {
    const record = JSON.parse(readFileSync(recordPath(home), 'utf8')) as CacheRecord
    const { size, mtimeMs } = statSync(path)
    if (size !== record.sizeBytes || mtimeMs !== record.modifiedAtMs) {
      return { remark: `${path} is not what was installed there; it will be replaced` }
    }
    const { version, serverVersion, origin } = record
    return { executable: { path, version, serverVersion, origin } }
  } catch {
    return { remark: `${path} has no readable record of what was installed; it will be replaced` }
  }
}

/** Reads the whole executable and compares its digest with the record: true, false, or `undefined` when none is installed. */
export async function isCacheIntact(home: string): Promise<boolean | undefined> {
  if (findCached(home).executable === undefined) return existsSync(cachedPath(home)) ? false : undefined
  const record = JSON.parse(readFileSync(recordPath(home), 'utf8')) as CacheRecord
  return (await sha256OfFile(cachedPath(home))) === record.sha256
}

/**
 * Installs the pinned version: `produce` puts the executable at the path it is given, and gives its origin. It comes into the
 * cache whole or not at all; of several processes one installs and the others wait for it.
 */
export async function installIntoCache(
  home: string,
  produce: (path: string) => Promise<CacheOrigin>,
  { progress, signal }: { progress: Progress; signal?: AbortSignal | undefined },
): Promise<CachedExecutable> {
  const lock = await lockCache(home, progress, signal)
  // One name for all: what an interrupted installation left there is taken away by the next.
  const staging = join(root(home), 'installing')
  try {
    const present = findCached(home).executable
    if (present !== undefined) return present
    rmSync(staging, { recursive: true, force: true })
    mkdirSync(staging, { recursive: true })
    const path = join(staging, 'temporal')
    const origin = await produce(path)
    const record = await describe(path, origin)
    writeFileSync(join(staging, 'temporal.json'), `${JSON.stringify(record, null, 2)}\n`)
    rmSync(join(root(home), TEMPORAL_CLI_VERSION), { recursive: true, force: true })
    renameSync(staging, join(root(home), TEMPORAL_CLI_VERSION))
    return { path: cachedPath(home), origin, version: record.version, serverVersion: record.serverVersion }
  } finally {
    rmSync(staging, { recursive: true, force: true })
    lock.release()
  }
}

async function describe(path: string, origin: CacheOrigin): Promise<CacheRecord> {
  const version = await askVersion(path)
  const { size, mtimeMs } = statSync(path)
  return { ...version, origin, sha256: await sha256OfFile(path), sizeBytes: size, modifiedAtMs: mtimeMs }
}

async function lockCache(home: string, progress: Progress, signal?: AbortSignal): Promise<Lock<null>> {
  const lock = await acquireLock(join(root(home), 'lock'), {
    info: null,
    waitMs: INSTALL_WAIT_MS,
    signal,
    onWait: ({ processes }) =>
      progress.update(`Waiting for process ${processes[0]?.pid} to install the Temporal server`),
  })
  if ('heldBy' in lock) {
    throw new Error(
      `process ${lock.heldBy.processes[0]?.pid} has been installing it for too long; end that process`,
    )
  }
  return lock
}

async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
