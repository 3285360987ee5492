import { Ages } from '../../core/time/ages'
import { MINUTE_MS } from '../../core/time/time'
import { unlessAborted } from '../calls'
import { createLimiter } from '../limiter'
import type { BackendDeps } from '../registry'
import { createApi, type LambdaApi, type LambdaInstance } from './api'
import type { LambdaConfig } from './config'
import { createMarketMemory, type MarketMemory } from './market-memory'

/** Dependencies of the backend on the process that composes it. */
export type LambdaDeps = Pick<BackendDeps, 'clock' | 'monotonic' | 'deployment' | 'handOver' | 'storeUrl'>

/** The account as the verbs see it. */
export interface Host {
  config: LambdaConfig
  deps: LambdaDeps
  api: LambdaApi
  seen: MarketMemory
  /** How long ago machines were launched. */
  ages: Ages
  /** Returns all instances of the account, by a request that is sent after this call; calls that wait for their turn share it. */
  instances(signal: AbortSignal): Promise<{ instances: LambdaInstance[]; askedAtMs: number }>
}

export function createHost(
  config: LambdaConfig,
  deps: LambdaDeps,
  openApi: typeof createApi = createApi,
): Host {
  const clock = (): number => deps.clock()
  const monotonicMs = (): number => deps.monotonic?.() ?? clock()
  const { endpoint, apiKey, requestsPerSecond: perSecond, launchesPerMinute } = config
  // Workers take turns before they send (`LaunchPace`); what each does then takes a varying time.
  const launches = { size: 1, perSecond: launchesPerMinute / 60 / LAUNCH_MARGIN_FACTOR }
  const limiter = createLimiter({ size: 1, perSecond }, monotonicMs, launches)
  const api = openApi({ endpoint, apiKey, limiter })
  const seen = createMarketMemory(monotonicMs)
  const ages = new Ages({ now: clock, monotonicMs })
  return { config, deps, api, seen, ages, instances: sharedList(api, clock) }
}

/** Requests take a varying time to arrive. Smaller than the margin of turns, so that launches do not pile up here. */
const LAUNCH_MARGIN_FACTOR = 1.02

/** A read continues when the caller who began it leaves: others wait for it. */
const READ_LIMIT_MS = 2 * MINUTE_MS

function sharedList(api: LambdaApi, clock: () => number): Host['instances'] {
  let waiting: ReturnType<Host['instances']> | undefined
  const ask = (): ReturnType<Host['instances']> => {
    let askedAtMs = clock()
    const read = api
      .instances(AbortSignal.timeout(READ_LIMIT_MS), () => {
        askedAtMs = clock()
        // Later calls want a list that was read after them.
        if (waiting === read) waiting = undefined
      })
      .then((instances) => ({ instances, askedAtMs }))
      .finally(() => {
        if (waiting === read) waiting = undefined
      })
    return read
  }
  return (signal) => unlessAborted(signal, (waiting ??= ask()))
}
