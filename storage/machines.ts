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
  return readOwn<MachineHandle>(store, layout.machine(jobId, attempt))
}

/** When the billing of the attempt's machine began, for providers with queues; undefined without a record. */
export async function readBilling(
  store: ObjectStore,
  { jobId, attempt }: AttemptKey,
): Promise<Billing | undefined> {
  return readOwn<Billing>(store, layout.billing(jobId, attempt))
}

async function readOwn<T>(store: ObjectStore, key: string): Promise<T | undefined> {
  return readDocument(store, key, (text) => JSON.parse(text) as T).catch(ignoreBadDocument)
}
