import { BackendError } from '../../backends/errors'
import type { SettleInput } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import { formatInstant } from '../../core/time/time'
import { leaseOverAtMs } from '../../planner/policy/liveness'
import { ignoreBadDocument } from '../../storage/json'
import type { AttemptDocuments } from '../documents'
import { pause } from '../heartbeat'
import type { DiagnosisDeps } from './diagnosis'
import { readResult } from './end-machines'

/** Beats that a beating machine may miss. */
const BEATS_MISSED = 3
const LOOK_MS = 500

/**
 * Asserts that a machine is over. If the provider only confirms that an end was requested, the machine may still run: throws `transient`
 * until its runner's result exists or its lease has certainly expired. Only a runner that has claimed the attempt matters: with
 * `drain.json` on record, one that claims it later does not start the workload.
 */
export async function assertOver(
  deps: DiagnosisDeps,
  input: SettleInput,
  {
    documents,
    handle,
    signal,
  }: { documents: AttemptDocuments; handle: MachineHandle | undefined; signal: AbortSignal },
): Promise<void> {
  const { backend } = deps
  if (backend.capabilities.ends !== 'requested') return
  if ((await readResult(documents)) !== undefined || !(await documents.isClaimed())) return
  const { isFenced, atMs } = await fence(deps, input, { documents, handle, signal })
  if (isFenced) return
  throw new BackendError({
    class: 'transient',
    message: `${backend.name} does not confirm that the machine has stopped. The job continues when its result exists, at the latest at ${formatInstant(atMs)}, when its lease has expired.`,
  })
}

/**
 * Whether the lease of an attempt has certainly expired, and when. The dates were written by other clocks, and ours may have been set: a
 * machine that still beats is not over.
 */
export async function fence(
  { now, monotonicMs, ages }: Pick<DiagnosisDeps, 'now' | 'monotonicMs' | 'ages'>,
  input: SettleInput,
  {
    documents,
    handle,
    signal,
  }: { documents: AttemptDocuments; handle: MachineHandle | undefined; signal: AbortSignal },
): Promise<{ isFenced: boolean; atMs: number }> {
  const { renewedAtMs, overAtMs } = await leaseOf(documents, input, handle)
  const leftMs = overAtMs - renewedAtMs - ages.of(`lease of ${input.order.attemptId}`, renewedAtMs)
  const atMs = now() + leftMs
  if (leftMs >= 0) return { isFenced: false, atMs }
  const first = await seqOf(documents)
  if (first === undefined) return { isFenced: true, atMs }
  const untilMs = monotonicMs() + BEATS_MISSED * input.timing.beatMs
  while (monotonicMs() < untilMs) {
    await pause(Math.min(LOOK_MS, input.timing.beatMs), signal)
    if ((await seqOf(documents)) !== first) return { isFenced: false, atMs }
  }
  return { isFenced: true, atMs }
}

/** The number of the newest beat; undefined without a readable one. */
async function seqOf(documents: AttemptDocuments): Promise<number | undefined> {
  return (await documents.readBeat().catch(ignoreBadDocument))?.seq
}

async function leaseOf(
  documents: AttemptDocuments,
  { timing, order }: SettleInput,
  handle: MachineHandle | undefined,
): Promise<{ renewedAtMs: number; overAtMs: number }> {
  const lease = await documents.readLease()
  const orderedAtMs = handle?.launchedAtMs ?? (await documents.orderedAtMs())
  const renewedAtMs = lease?.renewedAtMs ?? orderedAtMs ?? 0
  const { queueMs } = order.runner
  const overAtMs = leaseOverAtMs({ timing, renewedAtMs, isLeaseFirst: lease === undefined, queueMs })
  return { renewedAtMs, overAtMs }
}
