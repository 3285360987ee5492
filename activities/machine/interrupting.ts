import type { Backend } from '../../backends/backend'
import { BackendError } from '../../backends/errors'
import { interruptionInWords, type InterruptInput } from '../../core/job/interruption'
import { putRecord } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { AttemptDocuments } from '../documents'

interface Deps {
  backend: Backend
  store: ObjectStore
  now: () => number
}

/**
 * Interrupts the machine of a rehearsal's attempt. For a provider without that feature, an interruption without notice terminates the
 * machine; with notice, its runner gets an equivalent order and powers off.
 */
export async function interruptMachine(
  { backend, store, now }: Deps,
  { jobId, attempt, noticeMs, recordSeq }: InterruptInput,
  signal: AbortSignal,
): Promise<void> {
  const documents = new AttemptDocuments(store, { jobId, attempt }, now)
  const handle = await documents.readMachine()
  if (handle === undefined)
    throw new BackendError({ class: 'invalid', message: `Attempt ${attempt} of ${jobId} has no machine.` })
  await putRecord(store, jobId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'interrupted',
    attempt,
    summary: `Rehearsal: the machine ${handle.id} ${interruptionInWords(noticeMs)}`,
    data: { noticeMs, machine: handle },
  })
  if (backend.interrupt !== undefined) return backend.interrupt(handle, { noticeMs }, { signal })
  if (noticeMs !== null) {
    await documents.putDrain({ reason: 'interrupted', windowMs: noticeMs })
    return
  }
  if (backend.endAbruptly !== undefined) return backend.endAbruptly(handle, { signal })
  return backend.terminate(handle, { signal })
}
