/** The documents about the machine of an attempt that only the control plane writes, so that their form is trusted. */
import { isAmount, isInstant } from '../core/figures'
import type { Billing } from '../core/documents'
import type { MachineHandle } from '../core/handle'
import { attemptIdOf } from '../core/queues'
import { ignoreBadDocument, parserOf, readDocument } from './json'
import { layout } from './layout'
import type { ObjectStore } from './store'

/** The attempt of a document. */
export interface AttemptKey {
  jobId: string
  attempt: number
}

/** The machine of the attempt's launch; undefined without one on record, or if its document is unreadable. */
export async function readMachine(store: ObjectStore, at: AttemptKey): Promise<MachineHandle | undefined> {
  return readMachineStrictly(store, at).catch(ignoreBadDocument)
}

/** Like `readMachine`, but throws a `StoreError` for an unreadable document. */
export async function readMachineStrictly(
  store: ObjectStore,
  { jobId, attempt }: AttemptKey,
): Promise<MachineHandle | undefined> {
  return readDocument(store, layout.machine(jobId, attempt), (text) => {
    const machine = parseMachine(text)
    if (machine.attemptId !== attemptIdOf(jobId, attempt)) throw new Error('it belongs to another attempt')
    return machine
  })
}

/** When the billing of the attempt's machine began, for providers with queues; undefined without a readable record. */
export async function readBilling(store: ObjectStore, at: AttemptKey): Promise<Billing | undefined> {
  return readBillingStrictly(store, at).catch(ignoreBadDocument)
}

/** Like `readBilling`, but throws a `StoreError` for an unreadable document. */
export async function readBillingStrictly(
  store: ObjectStore,
  { jobId, attempt }: AttemptKey,
): Promise<Billing | undefined> {
  return readDocument(store, layout.billing(jobId, attempt), parseBilling)
}

/** Whether a recorded handle is that of a machine, with what its bill needs. */
export function isMachineRecord({ kind, id, launchedAtMs, realised }: Partial<MachineHandle>): boolean {
  const isMachine = kind === 'machine' && typeof id === 'string'
  return isMachine && isInstant(launchedAtMs) && isAmount(realised?.priceMicroUsdPerHour)
}

const parseMachine = parserOf<MachineHandle>('the record of a machine', isMachineRecord)
const parseBilling = parserOf<Billing>(
  'the record of a billing',
  ({ fromAtMs }) => fromAtMs === null || isInstant(fromAtMs),
)
