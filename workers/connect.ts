import { setTimeout as sleep } from 'node:timers/promises'
import { NativeConnection } from '@temporalio/worker'
import type { Logger } from 'pino'
import type { WorkerConfig } from './config'

const RETRY_FIRST_MS = 250
const RETRY_MAX_MS = 10_000
/** Said again after this long, so that a log does not fill up while a server is down for a night. */
const SAID_AGAIN_MS = 60_000

/** Connects to Temporal however long that takes; a worker that starts before its server waits for it. */
export async function connect(
  { connection }: WorkerConfig['temporal'],
  { logger, signal }: { logger: Logger; signal: AbortSignal },
): Promise<NativeConnection> {
  let waitMs = RETRY_FIRST_MS
  let saidAtMs = -Infinity
  for (;;) {
    signal.throwIfAborted()
    try {
      return await NativeConnection.connect(connection)
    } catch (error) {
      if (performance.now() - saidAtMs > SAID_AGAIN_MS) {
        saidAtMs = performance.now()
        logger.warn(
          { address: connection.address, error: (error as Error).message },
          'no Temporal server yet; trying on',
        )
      }
    }
    await sleep(waitMs, undefined, { signal })
    waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)
  }
}
