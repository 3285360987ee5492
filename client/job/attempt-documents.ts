/** The documents of an attempt that is not settled. */
import type { EndedMachine } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import type * as documents from '../../intake/documents'
import { ignoreBadDocument, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readBilling, readMachine } from '../../storage/machines'
import type { ObjectStore } from '../../storage/store'
import type { AttemptDocumentsRead } from './view'

/** Beat and machine of one attempt, as far as they exist and are readable. */
export async function readAttempt(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<AttemptDocumentsRead> {
  const { parseBeat, parseLease } = require('../../intake/documents') as typeof documents
  const [beat, machine, lease] = await Promise.all([
    readDocument(store, layout.beat(jobId, attempt), parseBeat).catch(ignoreBadDocument),
    readMachine(store, { jobId, attempt }),
    readDocument(store, layout.lease(jobId, attempt), parseLease).catch(ignoreBadDocument),
  ])
  const metered = lease?.metered
  // The reports of the watch begin with the billing, so the document is only needed before them.
  const billing =
    machine !== undefined && metered === undefined ? await readBilling(store, { jobId, attempt }) : undefined
  return { attempt, beat, machine, metered, billing, leaseMs: lease?.ttlMs }
}

/** When garbage collection, or an earlier settlement, ended the machine of an attempt; `undefined` if nothing did. */
export async function readEndOf(
  store: ObjectStore,
  { jobId, attempt, machine }: { jobId: string; attempt: number; machine: MachineHandle },
): Promise<number | undefined> {
  const key = layout.endedMachine(jobId, attempt, machine.id)
  const parse = (text: string): Partial<EndedMachine> => JSON.parse(text) as Partial<EndedMachine>
  const ended = await readDocument(store, key, parse).catch(ignoreBadDocument)
  return typeof ended?.endedAtMs === 'number' ? ended.endedAtMs : undefined
}
