import { setTimeout as sleep } from 'node:timers/promises'
import { TransportError, NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import type { WorkerConfig } from '../service/config'

const RETRY_FIRST_MS = 250
const RETRY_MAX_MS = 10_000
/** Repeated after this long, so that a log does not fill up while a server is down for a night. */
const SAID_AGAIN_MS = 60_000

interface Patience {
  logger: Logger
  signal: AbortSignal
}

/** Connects to Temporal without a time limit; a worker that starts before its server waits for it. */
export async function connect(
  { connection }: WorkerConfig['temporal'],
  { logger, signal }: Patience,
): Promise<NativeConnection> {
  const patience = { logger: logger.child({ address: connection.address }), signal }
  return tryOn(() => NativeConnection.connect(connection), { ...patience, isWorthIt: () => true })
}

/** Retries a call until the server answers: it may disappear between connecting and polling. */
export async function untilAnswered<T>(work: () => Promise<T>, patience: Patience): Promise<T> {
  return tryOn(work, { ...patience, isWorthIt: isUnanswered })
}

async function tryOn<T>(
  work: () => Promise<T>,
  { logger, signal, isWorthIt }: Patience & { isWorthIt: (error: unknown) => boolean },
): Promise<T> {
  let waitMs = RETRY_FIRST_MS
  let saidAtMs = -Infinity
  for (;;) {
    signal.throwIfAborted()
    try {
      return await work()
    } catch (error) {
      if (!isWorthIt(error)) throw error
      if (performance.now() - saidAtMs > SAID_AGAIN_MS) {
        saidAtMs = performance.now()
        logger.warn({ error: (error as Error).message }, 'the Temporal server does not answer yet; retrying')
      }
    }
    await sleep(waitMs, undefined, { signal })
    waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)
  }
}

/** gRPC's `DEADLINE_EXCEEDED` and `UNAVAILABLE`. */
const UNANSWERED_CODES: readonly unknown[] = [4, 14]

/**
 * Whether an error means that the server did not answer. The client's errors carry a gRPC code; those of a new worker only have a message.
 */
function isUnanswered(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (UNANSWERED_CODES.includes(code) || error instanceof TransportError) return true
  return /\bUnavailable\b|connect error|transport error/.test(error.message) || isUnanswered(cause)
}
