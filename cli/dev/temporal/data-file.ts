import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, TemporalServerError } from './errors'
import { GRACE_SECONDS } from './leash'
import { acquireLock, type Lock, type LockEntry } from './lock'
import { isAlive } from '../../../service/process-identity'
import { versionNumbers, type TemporalVersion } from './version'

/** Facts that the owner of a data file publishes for later processes; empty until it knows its ports. */
interface DataFileInfo {
  address?: string
  uiUrl?: string
}

export type DataFileLock = Lock<DataFileInfo>

/** The server of a dead owner ends within its grace period; a few seconds more for a busy machine. */
const ORPHAN_WAIT_MS = (GRACE_SECONDS + 5) * 1_000

function versionPath(path: string): string {
  return `${path}.version.json`
}

/** Takes the data file for one dev server, or throws `in-use` with the current owner. */
export async function lockDataFile(path: string, signal?: AbortSignal): Promise<DataFileLock> {
  const acquire = (waitMs: number): ReturnType<typeof acquireLock<DataFileInfo>> =>
    acquireLock<DataFileInfo>(`${path}.lock`, { info: {}, waitMs, signal }).catch((error: unknown) => {
      throw notWritable(path, error)
    })
  const first = await acquire(0)
  const lock =
    'heldBy' in first && !isAlive(first.heldBy.processes[0]!) ? await acquire(ORPHAN_WAIT_MS) : first
  if ('heldBy' in lock) throw inUse(path, lock.heldBy)
  return lock
}

function notWritable(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (!['EACCES', 'EROFS', 'EPERM', 'ENOSPC', 'ENOTDIR'].includes(code ?? '')) return error
  return new TemporalServerError(
    'data-file',
    `The Temporal server cannot keep its data in ${dirname(path)}: ${messageOf(error)}. ` +
      'Make that directory writable, free some space, or choose another home with CRUCIBLE_HOME.',
    { cause: error },
  )
}

function inUse(path: string, { processes, info }: LockEntry<DataFileInfo>): TemporalServerError {
  const { pid } = processes.find(isAlive) ?? processes[0]!
  const [where, use] =
    info.address === undefined
      ? ['it is still starting', 'Wait for it']
      : [
          `it answers at ${info.address}, its Web UI is ${info.uiUrl}`,
          `Use it (TEMPORAL_ADDRESS=${info.address})`,
        ]
  return new TemporalServerError(
    'in-use',
    `Another Temporal dev server (process ${pid}) has ${path} open: ${where}. ` +
      `${use}, stop it (kill ${pid}), or choose another home with CRUCIBLE_HOME.`,
  )
}

/**
 * Throws `data-file` when a server of another minor version wrote the file: a dev server neither migrates its file nor notices
 * the difference.
 */
export function checkDataFileVersion(path: string, current: TemporalVersion): void {
  const wrote = existsSync(path) ? readVersion(path) : undefined
  if (wrote === undefined) return
  const [major, minor] = versionNumbers(wrote.serverVersion)
  const [currentMajor, currentMinor] = versionNumbers(current.serverVersion)
  if (major === currentMajor && minor === currentMinor) return
  throw new TemporalServerError(
    'data-file',
    `${path} was written by Temporal server ${wrote.serverVersion} (CLI ${wrote.version}); this one is ${current.serverVersion} ` +
      `(CLI ${current.version}), and a dev server cannot take over the file of another version. To keep using it, name a CLI ` +
      `with server ${major}.${minor} in CRUCIBLE_TEMPORAL_CLI. ${startAfresh(path)}`,
  )
}

/** Explains how to replace an unusable data file, and the data that this loses. */
export function startAfresh(path: string): string {
  return (
    `To start over, move ${path} and the files that share its prefix elsewhere: running jobs lose their ` +
    'workflow; records, logs, checkpoints and artifacts stay in the object store.'
  )
}

/** Records which version wrote the file, after its first successful use. */
export function recordDataFileVersion(path: string, { version, serverVersion }: TemporalVersion): void {
  writeFileSync(versionPath(path), `${JSON.stringify({ version, serverVersion })}\n`)
}

function readVersion(path: string): TemporalVersion | undefined {
  try {
    return JSON.parse(readFileSync(versionPath(path), 'utf8')) as TemporalVersion
  } catch {
    return undefined
  }
}
