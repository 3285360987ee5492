import type { Backend } from '../backends/backend'
import type { DrainMachineInput } from '../core/drain-input'
import type { ObjectStore } from '../storage/store'
import type { Beat } from '../core/documents'
import { AttemptDocuments } from './documents'
import { pause } from './heartbeat'

interface Deps {
  backend: Backend
  store: ObjectStore
  now: () => number
}

const LOOK_MS = 500

/**
 * Puts `drain.json` and sees that the machine obeys; one that has not after its patience, or cannot have read it, is told by the
 * provider's own way. What comes of that its window tells. False where the document could not be put.
 */
export async function drainMachine(
  { backend, store, now }: Deps,
  { order, handle, drain, patienceMs }: DrainMachineInput,
  signal: AbortSignal,
): Promise<{ isOnRecord: boolean }> {
  const documents = new AttemptDocuments(store, order, now)
  const before = await beatOf(documents)
  const windowEndMs = now() + drain.windowMs
  const isOnRecord = await documents.putDrain(drain).then(
    () => true,
    () => false,
  )
  const untilMs = isOnRecord ? now() + patienceMs : 0
  // A runner that drains already says nothing of a shorter window: one that still beats still reads the store.
  const isHeard = ({ seq }: Beat): boolean => (drain.seq ?? 1) === 1 || seq !== before?.seq
  while (!(await isObeyed(documents, isHeard))) {
    if (now() < untilMs) {
      await pause(LOOK_MS, signal)
      continue
    }
    // Its machine is ended when the window is over that began with the document, whenever it was told.
    const windowMs = Math.max(0, windowEndMs - now())
    await backend
      .drain?.(handle, { ...drain, windowMs, requestedAtMs: now() }, { signal })
      .catch(() => undefined)
    break
  }
  return { isOnRecord }
}

/** As far as the store tells; one that does not answer tells nothing. */
async function isObeyed(documents: AttemptDocuments, isHeard: (beat: Beat) => boolean): Promise<boolean> {
  const beat = await beatOf(documents)
  return (beat?.phase === 'draining' || beat?.phase === 'finishing') && isHeard(beat)
}

function beatOf(documents: AttemptDocuments): Promise<Beat | undefined> {
  return documents.readBeat().catch(() => undefined)
}
