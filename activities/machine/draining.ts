import { isGrpcServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { Backend } from '../../backends/backend'
import { GRPC } from '../../core/grpc'
import type { OrchestratorActivities } from '../../core/activities'
import type { Beat } from '../../core/documents'
import type { DrainMachineInput, DrainRequest } from '../../core/job/drain'
import { DRAIN_SIGNAL } from '../../core/messages'
import { attemptWorkflowId } from '../../core/queues'
import type { AttemptKey } from '../../storage/machines'
import type { ObjectStore } from '../../storage/store'
import { AttemptDocuments } from '../documents'
import { allBeating, pause } from '../heartbeat'

type DrainingActivities = Pick<OrchestratorActivities, 'stopAttempt' | 'drain' | 'extend'>

/** Asks an attempt to save and stop; false if its workflow has ended, or does not exist. */
export async function cancelAttempt(client: Client, { jobId, attempt }: AttemptKey): Promise<boolean> {
  try {
    await client.workflow.getHandle(attemptWorkflowId(jobId, attempt)).cancel()
    return true
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false
    throw error
  }
}

/** Passes requests of a job's owner and limits to its attempt, and from there to the attempt's machine through its documents. */
export function createDrainingActivities({
  client,
  store,
  now,
}: {
  client: Client
  store: ObjectStore
  now: () => number
}): DrainingActivities {
  const documentsOf = (at: { jobId: string; attempt: number }): AttemptDocuments =>
    new AttemptDocuments(store, at, now)
  return allBeating<DrainingActivities>({
    // Through the client: that costs the job's history one event, while a workflow signal costs five.
    stopAttempt: async ({ jobId, attempt, request }) => {
      const handle = client.workflow.getHandle(attemptWorkflowId(jobId, attempt))
      await handle.signal<[DrainRequest]>(DRAIN_SIGNAL, request).catch((error: Error): unknown => {
        // The attempt's result, or its loss, is on the way to the job.
        if (error instanceof WorkflowNotFoundError) return undefined
        // The server limits the signals of a workflow, which anybody who reaches it can send. A cancellation means the same to an attempt.
        if (isSignalLimit(error)) return handle.cancel()
        throw error
      })
    },
    drain: async ({ drain, isNext, ...at }) => {
      if (isNext === true) await documentsOf(at).shortenDrain(drain)
      else await documentsOf(at).putDrain(drain)
    },
    extend: async ({ limits, ...at }) => documentsOf(at).putLimits(limits),
  })
}

function isSignalLimit({ cause }: { cause?: unknown }): boolean {
  return (
    isGrpcServiceError(cause) && Number(cause.code) === GRPC.invalidArgument && /signal/.test(cause.details)
  )
}

interface Deps {
  backend: Backend
  store: ObjectStore
  now: () => number
  monotonicMs: () => number
}

const LOOK_MS = 500

/**
 * Writes `drain.json` and checks that the machine obeys. A machine that does not in time, or cannot have read it, gets the request through
 * the provider. The drain window bounds the outcome. Returns false if the document could not be written.
 */
export async function drainMachine(
  { backend, store, now, monotonicMs }: Deps,
  { order, handle, drain, patienceMs }: DrainMachineInput,
  signal: AbortSignal,
): Promise<{ isOnRecord: boolean }> {
  const documents = new AttemptDocuments(store, order, now)
  const before = await beatOf(documents)
  const windowEndMs = monotonicMs() + drain.windowMs
  const isOnRecord = await documents.putDrain(drain).then(
    () => true,
    () => false,
  )
  const untilMs = isOnRecord ? monotonicMs() + patienceMs : -Infinity
  // Whether the runner has the request. A draining runner does not report a shorter window, but one that still beats still reads the store.
  const isHeard = ({ seq }: Beat): boolean => (drain.seq ?? 1) === 1 || seq !== before?.seq
  while (!(await isObeyed(documents, isHeard))) {
    if (monotonicMs() < untilMs) {
      await pause(LOOK_MS, signal)
      continue
    }
    // The machine is ended when the window that began with the document is over, however late the request arrives.
    const windowMs = Math.max(0, windowEndMs - monotonicMs())
    await backend
      .drain?.(handle, { ...drain, windowMs, requestedAtMs: now() }, { signal })
      .catch(() => undefined)
    break
  }
  return { isOnRecord }
}

/** Whether the runner has obeyed, according to the store; false if the store does not answer. */
async function isObeyed(documents: AttemptDocuments, isHeard: (beat: Beat) => boolean): Promise<boolean> {
  const beat = await beatOf(documents)
  return (beat?.phase === 'draining' || beat?.phase === 'finishing') && isHeard(beat)
}

function beatOf(documents: AttemptDocuments): Promise<Beat | undefined> {
  return documents.readBeat().catch(() => undefined)
}
