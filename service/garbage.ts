import { endExpired } from '../activities/garbage/expired'
import { limitedTo } from '../backends/calls'
import { failureOf } from '../backends/errors'
import { inWords } from '../core/failure'
import type { GarbageVerdict } from '../core/messages'
import type { BackendName } from '../core/offer'
import { MINUTE_MS } from '../core/time/time'
import { readDeployment } from '../storage/deployment'
import { storeTimeMs } from '../storage/probe'
import { StoreError, type ObjectStore } from '../storage/store'
import type { WorkerConfig } from './config'
import { ConfigError } from './config-error'
import { makeBackend } from './make-backend'

/** A provider that takes longer is reported as not answering; the next run asks it again. */
const BACKEND_LIMIT_MS = 10 * MINUTE_MS

/** The result of one run without a Temporal server. @experimental */
export interface ExpiredRun {
  deployment: string
  verdicts: GarbageVerdict[]
  /** How far the clock of this host is ahead of the store's, which counts. */
  clockAheadMs: number
}

/**
 * Ends the machines of the store's deployment whose lease has certainly expired, at all configured backends. Needs neither a Temporal server
 * nor a worker. Throws, and ends nothing, when the store does not answer or belongs to no deployment.
 */
export async function endExpiredMachines(
  config: WorkerConfig,
  { store, isDryRun, signal }: { store: ObjectStore; isDryRun: boolean; signal: AbortSignal },
): Promise<ExpiredRun> {
  const deployment = await readDeployment(store)
  if (deployment === undefined)
    throw new ConfigError([
      `${store.url} belongs to no deployment, so nothing was ended: check CRUCIBLE_STORE`,
    ])
  const storeAtMs = await storeTimeMs(store)
  const [wallAtMs, measuredAtMs] = [Date.now(), performance.now()]
  const storeNow = (): number => storeAtMs + performance.now() - measuredAtMs
  const runs = [...config.backends.keys()].map((name) =>
    orUnasked(name, async () => {
      const backend = await makeBackend(config, name, { store, deployment })
      const within = limitedTo(BACKEND_LIMIT_MS, signal)
      return endExpired({ backend, store, storeNow }, { deployment, isDryRun }, within)
    }),
  )
  return {
    deployment,
    verdicts: (await Promise.all(runs)).flat(),
    clockAheadMs: wallAtMs - storeAtMs,
  }
}

/** A provider that does not answer must not keep the machines of others running. */
async function orUnasked(
  backend: BackendName,
  run: () => Promise<GarbageVerdict[]>,
): Promise<GarbageVerdict[]> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof StoreError) throw error
    const facts = { backend, kind: 'backend', id: '', owner: '', description: 'did not answer' }
    return [{ ...facts, action: 'failed', reason: inWords(failureOf(error)) }]
  }
}
