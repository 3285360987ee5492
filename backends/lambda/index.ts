import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Backend, Capabilities } from '../backend'
import { runVerb } from '../calls'
import type { createApi } from './api'
import { check } from './check'
import type { LambdaConfig } from './config'
import { lambdaError } from './errors'
import { createHost, type LambdaDeps } from './host'
import { launch } from './launch'
import { BACKEND, find, list, observe, terminate } from './machines'
import { offers } from './offers'

/** Part of the account's requests that is left for other calls. */
const REQUESTS_BETWEEN_LOOKS = 4
const GONE_CONFIRM_MS = 30 * SECOND_MS
const BOOT = {
  lowMs: 3 * MINUTE_MS,
  middleMs: 5 * MINUTE_MS,
  highMs: 15 * MINUTE_MS,
  source: 'reports of users about Lambda, 3 to 5 minutes and up to 15 with eight GPUs, read November 2026',
}

/** Virtual machines of Lambda Cloud. */
export async function createLambdaBackend(config: LambdaConfig, deps: LambdaDeps): Promise<Backend> {
  // Loaded here, so that only users of Lambda wait for its HTTP client.
  const api = require('./api') as { createApi: typeof createApi }
  return createBackendOver(api.createApi, config, deps)
}

/** Creates the backend over any implementation of the API. */
export function createBackendOver(
  openApi: typeof createApi,
  config: LambdaConfig,
  deps: LambdaDeps,
): Backend {
  const host = createHost(config, deps, openApi)
  const verb = <T>(ctx: { signal: AbortSignal }, task: () => Promise<T>): Promise<T> =>
    runVerb(ctx, task, lambdaError)
  return {
    name: BACKEND,
    capabilities: capabilitiesOf(config),
    check: (ctx) => verb(ctx, () => check(host, ctx)),
    offers: (request, ctx) => verb(ctx, () => offers(host, request, ctx)),
    launch: (order, ctx) => verb(ctx, () => launch(host, order, ctx)),
    find: (attemptId, ctx) => verb(ctx, () => find(host, attemptId, ctx)),
    observe: (handles, ctx) => verb(ctx, () => observe(host, handles, ctx)),
    terminate: (resource, ctx) => verb(ctx, () => terminate(host, resource, ctx)),
    list: (deployment, ctx) => verb(ctx, () => list(host, deployment, ctx)),
  }
}

export function capabilitiesOf({
  requestsPerSecond,
  launchesPerMinute,
  staleForMs,
}: LambdaConfig): Capabilities {
  return {
    capacityTypes: ['on-demand'],
    // Docker is part of Lambda Stack, the image of all machines.
    imageRunner: 'runner',
    runnerStart: 'with-launch',
    idempotency: 'tag',
    // A machine cannot learn its id, because no metadata service exists.
    claimsBy: 'send',
    billsUntil: 'terminate',
    boot: BOOT,
    offersPerOrder: 'one',
    pace: {
      observeMs: Math.ceil((REQUESTS_BETWEEN_LOOKS * SECOND_MS) / requestsPerSecond),
      goneConfirmMs: Math.min(GONE_CONFIRM_MS, staleForMs),
      launchesPerMinute,
    },
    price: 'live',
    ignores: ['disk_throughput', 'disk_iops', 'tags'],
  }
}
