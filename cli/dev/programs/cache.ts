import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { acquireLock, type Lock } from '../temporal/lock'
import type { Progress } from '../temporal/progress'
import type { Program } from './program'

/** Origin of an executable in the cache. */
export type CacheOrigin = 'release' | 'go-build'

/** `<name>.json` next to the executable: data of the installed file, to detect a damaged or replaced one. */
interface CacheRecord {
  origin: CacheOrigin
  sha256: string
  sizeBytes: number
}

export type Cached<Version> = Version & { path: string; origin: CacheOrigin }

interface Versioned {
  version: string
}

/** Longer than the longest build, so that a process does not give up while another one builds. */
const INSTALL_WAIT_MS = 40 * 60_000

/** The cache of one version of one program, shared by all checkouts of a user. */
export class ProgramCache<Version extends Versioned> {
  readonly #program: Program<Version>
  readonly #root: string

  /** @param home Crucible's home directory */
  constructor(program: Program<Version>, home: string) {
    this.#program = program
    this.#root = join(home, 'cache', program.name)
  }

  /** Path of the pinned version, if it is installed. */
  get path(): string {
    return join(this.#root, this.#program.version, this.#program.name)
  }

  get #recordPath(): string {
    return join(this.#root, this.#program.version, `${this.#program.name}.json`)
  }

  /**
   * The installed executable of the pinned version. Each start compares its digest with the record: times change when a home is
   * copied or restored, and a file may be replaced without changing them. A different file counts as absent; `remark` says so.
   */
  find(): { executable?: Cached<Version>; remark?: string } {
    const { path } = this
    if (!existsSync(path)) return {}
    try {
      const record = this.#readRecord()
      if (statSync(path).size !== record.sizeBytes || sha256OfFile(path) !== record.sha256) {
        return { remark: `${path} differs from what was installed; it will be replaced` }
      }
      const told: Partial<CacheRecord> & Versioned = { ...record }
      for (const name of ['sha256', 'sizeBytes'] as const) delete told[name]
      // The remaining fields are the program's version data and origin.
      return { executable: { ...(told as Cached<Version>), path } }
    } catch {
      return { remark: `${path} has no readable install record; it will be replaced` }
    }
  }

  /** Whether the executable is unchanged since installation; `undefined` without one. */
  isIntact(): boolean | undefined {
    return existsSync(this.path) ? this.find().executable !== undefined : undefined
  }

  /**
   * Installs the pinned version: `produce` writes the executable to a path and returns its origin. The executable enters the
   * cache completely or not at all; of several processes, one installs and the others wait.
   */
  async install(
    produce: (path: string) => Promise<CacheOrigin>,
    { progress, signal }: { progress: Progress; signal?: AbortSignal | undefined },
  ): Promise<Cached<Version>> {
    const lock = await this.#lock(progress, signal)
    // The name is fixed, so that the next installation removes the leftovers of an interrupted one.
    const staging = join(this.#root, 'installing')
    try {
      const present = this.find().executable
      if (present !== undefined) return present
      rmSync(staging, { recursive: true, force: true })
      mkdirSync(staging, { recursive: true })
      const path = join(staging, this.#program.name)
      const origin = await produce(path)
      const version = await this.#program.askVersion(path)
      const record: Version & CacheRecord = { ...version, ...describe(path, origin) }
      writeFileSync(join(staging, basename(this.#recordPath)), `${JSON.stringify(record, null, 2)}\n`)
      rmSync(dirname(this.path), { recursive: true, force: true })
      renameSync(staging, dirname(this.path))
      return { ...version, path: this.path, origin }
    } finally {
      rmSync(staging, { recursive: true, force: true })
      lock.release()
    }
  }

  #readRecord(): Version & CacheRecord {
    return JSON.parse(readFileSync(this.#recordPath, 'utf8')) as Version & CacheRecord
  }

  async #lock(progress: Progress, signal?: AbortSignal): Promise<Lock<null>> {
    const lock = await acquireLock(join(this.#root, 'lock'), {
      info: null,
      waitMs: INSTALL_WAIT_MS,
      signal,
      onWait: ({ processes }) =>
        progress.update(`Waiting for process ${processes[0]?.pid} to install the ${this.#program.title}`),
    })
    if ('heldBy' in lock) {
      throw new Error(
        `process ${lock.heldBy.processes[0]?.pid} has been installing it for too long; end that process`,
      )
    }
    return lock
  }
}

function describe(path: string, origin: CacheOrigin): CacheRecord {
  return { origin, sha256: sha256OfFile(path), sizeBytes: statSync(path).size }
}

const BLOCK_BYTES = 4 * 2 ** 20

/**
 * Computes the digest in blocks, because an executable is too large for memory, and synchronously, because nothing can continue without it.
 */
function sha256OfFile(path: string): string {
  const hash = createHash('sha256')
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  const file = openSync(path, 'r')
  try {
    for (let count = readSync(file, block); count > 0; count = readSync(file, block)) {
      hash.update(block.subarray(0, count))
    }
  } finally {
    closeSync(file)
  }
  return hash.digest('hex')
}
