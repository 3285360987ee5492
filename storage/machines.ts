/** The documents about the machine of an attempt that only the control plane writes, so that their form is trusted. */
import type { Billing } from '../core/documents'
import type { MachineHandle } from '../core/handle'
import { ignoreBadDocument, readDocument } from './json'
import { layout } from './layout'
import type { ObjectStore } from './store'

/** The attempt of a document. */
export interface AttemptKey {
  jobId: string
  attempt: number
}

/** The machine of the attempt's launch; undefined without one on record. */
export async function readMachine(
  store: ObjectStore,
  { jobId, attempt }: AttemptKey,
): Promise<MachineHandle | undefined> {
  const key = layout.machine(jobId, attempt)
  return readDocument(store, key, (text) => JSON.parse(text) as MachineHandle).catch(ignoreBadDocument)
}

/** When the billing of the attempt's machine began, for providers with queues; undefined without a record. */
export async function readBilling(
  store: ObjectStore,
  { jobId, attempt }: AttemptKey,
): Promise<Billing | undefined> {
  const key = layout.billing(jobId, attempt)
  return readDocument(store, key, (text) => JSON.parse(text) as Billing).catch(ignoreBadDocument)
}
