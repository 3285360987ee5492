import { join } from 'node:path'
import type { MachineHandle, ResourceHandle } from '../../core/handle'
import type { CallContext } from '../backend'
import { assertOfAttempt, BackendError } from '../errors'
import { endProcesses } from './end-processes'
import { hasCode, invalid, localError } from './errors'
import type { Host } from './host'
import { scan, recordEnd, type MachineView } from './scan'
import {
  assertOwned,
  FILES,
  readMachine,
  writeJsonOnce,
  type EndedRecord,
  type EndingRecord,
} from './records'
import { emptyDirectory, removeDirectory } from './remove'

/** Ends a machine with everything that runs on it, and removes its directory. A tombstone remains for a month. */
export async function terminate(host: Host, resource: ResourceHandle, ctx: CallContext): Promise<void> {
  const { kind, id } = resource
  if (kind !== 'machine') return
  await host
    .exclusive(id, ctx.signal, async () => {
      const [view] = await scan(host, [id])
      if (view === undefined) return
      assertOwned(view.machine, host.deps.deployment)
      assertOfAttempt(resource, view.machine.owner.attemptId)
      if (view.hasDirectory) {
        const ended = await end(host, view, 'ended')
        // First, because the tombstone must fit even if the job filled the disk.
        await emptyDirectory(host, view.machine)
        await writeJsonOnce(host.paths.tombstone(id), { machine: view.machine, ended })
      }
      // The directory is removed even if a tombstone exists: an earlier call may have died between the two.
      await removeDirectory(host, view.machine)
    })
    .catch(delayed)
}

/** A full disk refuses a new machine, but only delays the end of one. */
function delayed(error: unknown): never {
  const { failure } = localError(error)
  if (failure.class !== 'capacity') throw error
  throw new BackendError({ ...failure, class: 'transient' }, { cause: error })
}

/** Interrupts a spot machine now, or when its notice expires, which the machine's own guard enforces. */
export async function interrupt(
  host: Host,
  { handle, noticeMs }: { handle: MachineHandle; noticeMs: number | null },
  ctx: CallContext,
): Promise<void> {
  const { id } = handle
  await host.exclusive(id, ctx.signal, async () => {
    const [view] = await scan(host, [id])
    if (view === undefined || view.state === 'gone') return
    assertOwned(view.machine, host.deps.deployment)
    if (view.machine.realised.capacityType !== 'spot') {
      throw invalid(
        `machine ${id} is ${view.machine.realised.capacityType}`,
        'Only spot machines can be interrupted.',
      )
    }
    if (noticeMs === null) {
      await end(host, view, 'interrupted')
    } else {
      const terminateAtMs = host.deps.clock() + noticeMs
      await writeJsonOnce(join(host.paths.machine(id), FILES.notice), { terminateAtMs })
    }
  })
}

/** Ends the processes of a machine. The reason is recorded first, so that a launch in another process leaves the machine alone. */
async function end(
  host: Host,
  { machine, ...view }: MachineView,
  cause: EndingRecord['cause'],
): Promise<EndedRecord> {
  const id = machine.owner.attemptId
  if (view.state !== 'gone') {
    const ending: EndingRecord = { cause, requestedAtMs: host.deps.clock() }
    await writeJsonOnce(join(host.paths.machine(id), FILES.ending), ending).catch(unlessFull)
  }
  await endProcesses(host, machine)
  if (view.ended !== undefined) return view.ended
  const files = await readMachine(host.paths, id)
  return recordEnd(host, id, files ?? { machine })
}

/** A machine on a full disk must be endable, because that frees the disk. */
function unlessFull(error: unknown): void {
  if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error
}
