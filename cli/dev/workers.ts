import { CrucibleError } from '../../client/errors'
import { Monitor, type MonitorAddress } from '../../workers/monitor'
import { runWorkers, type RunOptions } from '../../workers/run'
import { version } from '../kit/package'

/** Workers that poll, in this process. */
export interface RunningWorkers {
  /** Rejects when one of the workers cannot continue; resolves after `stop`. */
  ended: Promise<void>
  /** Stops gracefully: work in progress is finished or handed over. May be called more than once. */
  stop(): Promise<void>
}

/** Starts workers and resolves when all of them poll. Rejects if one cannot start, or when `signal` aborts first. */
export async function startWorkers(
  options: Omit<RunOptions, 'onReady' | 'version'>,
): Promise<RunningWorkers> {
  const stopping = new AbortController()
  const { signal, ...rest } = options
  let isReady = (): void => {}
  const ready = new Promise<void>((resolve) => (isReady = resolve))
  const ended = runWorkers({
    ...rest,
    version: version(),
    signal: stopping.signal,
    onReady: isReady,
  }).catch((error: unknown) => {
    // The worker was stopped while it was still connecting.
    if (!stopping.signal.aborted) throw error
  })
  const stop = async (): Promise<void> => {
    stopping.abort()
    await ended
  }
  const onAbort = (): void => stopping.abort()
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  await Promise.race([ready, ended])
  signal.removeEventListener('abort', onAbort)
  if (signal.aborted) {
    await stop()
    signal.throwIfAborted()
  }
  return { ended, stop }
}

/** The monitor of this process; undefined without an address. Throws `usage` when the address cannot be used. */
export async function openMonitor(address: MonitorAddress | undefined): Promise<Monitor | undefined> {
  if (address === undefined) return undefined
  try {
    return await Monitor.open(address)
  } catch (error) {
    throw new CrucibleError('usage', `CRUCIBLE_METRICS cannot be served: ${(error as Error).message}.`, {
      hint: 'Choose a free port of this machine.',
      cause: error,
    })
  }
}
