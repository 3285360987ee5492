import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { BackendError } from '../errors'
import { hasCode } from './errors'
import type { Host } from './host'
import type { ProcessScan } from './processes'
import {
  FILES,
  isMachineId,
  marksOf,
  namesIn,
  readMachine,
  readTombstone,
  writeJsonOnce,
  type EndedRecord,
  type MachineFiles,
  type MachineRecord,
  type Paths,
} from './records'

/**
 * State of a machine. `unstarted`: its directory exists, but its launch has not started the runner yet, or died before; the same
 * order, sent again, continues from there.
 */
export interface MachineView {
  machine: MachineRecord
  state: 'unstarted' | 'running' | 'stopping' | 'gone'
  hasDirectory: boolean
  /** The runner still uploads, but the program has ended and needs no slot or GPU. */
  hasProgramEnded: boolean
  noticeAtMs?: number
  /** End of the machine, for `gone`. */
  ended?: EndedRecord
}

/** Returns one view per id, in order; `undefined` for an unknown id, or one that was forgotten long ago. */
export function scan(host: Host, ids: string[]): Promise<(MachineView | undefined)[]> {
  const processes = host.processes()
  return inTurn(ids, async (id) => (isMachineId(id) ? viewOf(host, id, processes) : undefined))
}

/** Scans like `scan`, with `damaged` for a machine whose record is unreadable, so that it does not hide all others. */
export function scanLeniently(host: Host, ids: string[]): Promise<(MachineView | 'damaged' | undefined)[]> {
  const processes = host.processes()
  return inTurn(ids, async (id) => {
    try {
      return isMachineId(id) ? await viewOf(host, id, processes) : undefined
    } catch (error) {
      if (error instanceof BackendError && error.class === 'invalid') return 'damaged'
      throw error
    }
  })
}

/** Returns every machine with a directory and a record; `check` reports the others. */
export async function scanAll(host: Host): Promise<MachineView[]> {
  const ids = await namesIn(host.paths.machines)
  if (ids.length === 0) await assertFolders(host)
  const views = await scanLeniently(host, ids)
  return views.flatMap((view) =>
    view !== undefined && view !== 'damaged' && view.hasDirectory ? [view] : [],
  )
}

/** Machines read at a time: each needs some open files, and systems allow as few as 256. */
const AT_A_TIME = 32

async function inTurn<T>(ids: string[], read: (id: string) => Promise<T>): Promise<T[]> {
  const all: T[] = []
  for (let at = 0; at < ids.length; at += AT_A_TIME) {
    all.push(...(await Promise.all(ids.slice(at, at + AT_A_TIME).map(read))))
  }
  return all
}

async function viewOf(host: Host, id: string, processes: ProcessScan): Promise<MachineView | undefined> {
  const files = await readMachine(host.paths, id)
  if (files === undefined) {
    const buried = await buriedView(host, id)
    if (buried === undefined) await assertFolders(host)
    return buried
  }
  const { machine, notice } = files
  const view = {
    machine,
    hasDirectory: true,
    hasProgramEnded: files.hasProgramEnded === true,
    noticeAtMs: notice ? notice.terminateAtMs : undefined,
  }
  if (files.ended !== undefined) return { ...view, state: 'gone', ended: files.ended }
  if (await hasProcesses(host.paths, files, processes)) {
    return { ...view, state: files.ending === undefined ? 'running' : 'stopping' }
  }
  // The files may have vanished with the whole directory during the read.
  const buried = await buriedView(host, id)
  if (buried !== undefined) return buried
  if (files.process === undefined && files.ending === undefined) return { ...view, state: 'unstarted' }
  // The write is permanent, and this scan's list of processes may be older than the machine, so processes are checked again.
  if (await hasProcesses(host.paths, files, host.processes())) return { ...view, state: 'running' }
  return { ...view, state: 'gone', ended: await recordEnd(host, id, files) }
}

/**
 * Asserts that the whole folder exists. If it is missing, absence proves nothing, because its disk may be unmounted while healthy machines
 * run.
 */
async function assertFolders({ paths }: Host): Promise<void> {
  try {
    await access(paths.machines)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    throw new BackendError({
      class: 'transient',
      message: `${paths.machines} is missing, so the state of machines is unknown`,
      hint: 'Mount its disk, or restart the worker to begin with an empty folder.',
    })
  }
}

async function buriedView(host: Host, id: string): Promise<MachineView | undefined> {
  const tombstone = await readTombstone(host.paths, id)
  return tombstone && { ...tombstone, state: 'gone', hasDirectory: false, hasProgramEnded: true }
}

/** Checks the first process if it lives, which costs one small read; otherwise scans all processes. */
async function hasProcesses(
  paths: Paths,
  { machine, process }: MachineFiles,
  processes: ProcessScan,
): Promise<boolean> {
  if (process !== undefined && (await processes.isAlive(process))) return true
  return (await processes.ofMachine(marksOf(paths, machine), process)).length > 0
}

/**
 * Records once that nothing of a machine runs, and returns the recorded end. The time is that of the first scan: process ends are not
 * observed, so the true time is earlier if nothing scanned then.
 */
export async function recordEnd(host: Host, id: string, files: MachineFiles): Promise<EndedRecord> {
  const ended: EndedRecord = { cause: causeOf(files), endedAtMs: host.deps.clock() }
  const path = join(host.paths.machine(id), FILES.ended)
  try {
    if (await writeJsonOnce(path, ended)) return ended
  } catch (error) {
    // The directory was removed meanwhile, or the disk is full; the observation is still true.
    if (hasCode(error, 'ENOENT', 'ENOSPC', 'EDQUOT')) return ended
    throw error
  }
  return (await readMachine(host.paths, id))?.ended ?? ended
}

/** Returns the cause of an end. A machine that got its notice counts as interrupted even if it ended earlier, unless we ended it first. */
function causeOf({ ending, notice }: MachineFiles): EndedRecord['cause'] {
  if (ending !== undefined) return ending.cause
  return notice === undefined ? 'ended' : 'interrupted'
}
