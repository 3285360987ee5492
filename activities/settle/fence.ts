import { BackendError } from '../../backends/errors'
import type { SettleInput } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import { formatInstant } from '../../core/time/time'
import { leaseOverAtMs } from '../../planner/policy/liveness'
import type { AttemptDocuments } from '../documents'
import type { SendingDeps } from '../machine/sending'
import { readResult } from './end-machines'

/**
 * Asserts that a machine is over. If the provider only confirms that an end was requested, the machine may still run: throws `transient`
 * until its runner's result exists or its lease has certainly expired. Only a runner that has claimed the attempt matters: with
 * `drain.json` on record, one that claims it later does not start the workload.
 */
export async function assertOver(
  { backend, now }: SendingDeps,
  input: SettleInput,
  { documents, handle }: { documents: AttemptDocuments; handle: MachineHandle | undefined },
): Promise<void> {
  if (backend.capabilities.ends !== 'requested') return
  if ((await readResult(documents)) !== undefined || !(await documents.isClaimed())) return
  const atMs = await fencedAtMs(documents, input, handle)
  if (now() > atMs) return
  throw new BackendError({
    class: 'transient',
    message: `${backend.name} does not confirm that the machine has stopped. The job continues when its result exists, at the latest at ${formatInstant(atMs)}, when its lease has expired.`,
  })
}

/** Returns when the lease of an attempt has certainly expired. */
export async function fencedAtMs(
  documents: AttemptDocuments,
  { timing, order }: SettleInput,
  handle: MachineHandle | undefined,
): Promise<number> {
  const lease = await documents.readLease()
  const orderedAtMs = handle?.launchedAtMs ?? (await documents.readOrder())?.issuedAtMs
  const renewedAtMs = lease?.renewedAtMs ?? orderedAtMs ?? 0
  const { queueMs } = order.runner
  return leaseOverAtMs({ timing, renewedAtMs, isLeaseFirst: lease === undefined, queueMs })
}
