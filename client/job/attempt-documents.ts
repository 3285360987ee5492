/** The documents of an attempt that is not settled. */
import type { Beat, EndedMachine } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { attemptIdOf } from '../../core/queues'
import type * as documents from '../../intake/documents'
import { Gaps, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readBillingStrictly, readMachineStrictly } from '../../storage/machines'
import type { ObjectStore } from '../../storage/store'
import type { AttemptDocumentsRead } from './view'

/** Beat and machine of one attempt, as far as they exist and are readable. */
export async function readAttempt(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<AttemptDocumentsRead> {
  const { parseBeat, parseLease } = require('../../intake/documents') as typeof documents
  const gaps = new Gaps()
  const at = { jobId, attempt }
  const ofAttempt = (text: string): Beat => {
    const beat = parseBeat(text)
    if (beat.attemptId !== attemptIdOf(jobId, attempt)) throw new Error('it belongs to another attempt')
    return beat
  }
  const [beat, machine, lease] = await Promise.all([
    gaps.read('beat.json', () => readDocument(store, layout.beat(jobId, attempt), ofAttempt)),
    gaps.read('machine.json', () => readMachineStrictly(store, at)),
    gaps.read('lease.json', () => readDocument(store, layout.lease(jobId, attempt), parseLease)),
  ])
  const metered = lease?.metered
  // The reports of the watch begin with the billing, so the document is only needed before them.
  const billing =
    machine !== undefined && metered === undefined
      ? await gaps.read('billing.json', () => readBillingStrictly(store, at))
      : undefined
  const base = { attempt, beat, machine, metered, billing, leaseMs: lease?.ttlMs }
  return gaps.isEmpty ? base : { ...base, unreadable: gaps.names }
}

/** When garbage collection, or an earlier settlement, ended the machine of an attempt; `undefined` if nothing did. */
export async function readEndOf(
  store: ObjectStore,
  { jobId, attempt, machine }: { jobId: string; attempt: number; machine: MachineHandle },
): Promise<number | undefined> {
  const key = layout.endedMachine(jobId, attempt, machine.id)
  const parse = (text: string): Partial<EndedMachine> => JSON.parse(text) as Partial<EndedMachine>
  const ended = await new Gaps().read('', () => readDocument(store, key, parse))
  return typeof ended?.endedAtMs === 'number' ? ended.endedAtMs : undefined
}
