import type { Backend, Capabilities } from '../backend'
import { runVerb } from '../calls'
import type { createApi } from './api'
import { cacheLeftovers } from './cache'
import { check } from './check'
import type { ModalConfig } from './config'
import { modalError } from './errors'
import { createHost, type ModalDeps } from './host'
import { launch } from './launch'
import { find, list, logs, observe, terminate } from './machines'
import { BACKEND, offers } from './offers'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'

/** Containers of Modal, through a gateway in the user's workspace. */
export async function createModalBackend(config: ModalConfig, deps: ModalDeps): Promise<Backend> {
  // Loaded here, so that only users of Modal wait for its HTTP client.
  const api = require('./api') as { createApi: typeof createApi }
  return createBackendOver(api.createApi, config, deps)
}

export const CAPABILITIES: Capabilities = {
  capacityTypes: ['on-demand'],
  imageRunner: 'provider',
  runnerStart: 'with-launch',
  // The gateway starts one machine for each key, from any sender.
  idempotency: 'token',
  billsUntil: 'exit',
  // A container starts within a second; the first one with an image waits for its pull.
  boot: {
    lowMs: 3 * SECOND_MS,
    middleMs: 20 * SECOND_MS,
    highMs: 5 * MINUTE_MS,
    source: 'reports of users about Modal, read November 2026',
  },
  offersPerOrder: 'one',
  queues: true,
  price: 'live',
  ignores: ['disk_throughput', 'disk_iops', 'shm', 'tags'],
}

/** Creates the backend over any implementation of the gateway. */
export function createBackendOver(openApi: typeof createApi, config: ModalConfig, deps: ModalDeps): Backend {
  const host = createHost(config, deps, openApi)
  const verb = <T>(ctx: { signal: AbortSignal }, task: () => Promise<T>): Promise<T> =>
    runVerb(ctx, task, modalError)
  return {
    name: BACKEND,
    capabilities: CAPABILITIES,
    check: (ctx) => verb(ctx, () => check(host, ctx)),
    offers: (request, ctx) => verb(ctx, () => offers(host, request, ctx)),
    launch: (order, ctx) => verb(ctx, () => launch(host, order, ctx)),
    find: (attemptId, ctx) => verb(ctx, () => find(host, attemptId, ctx)),
    observe: (handles, ctx) => verb(ctx, () => observe(host, handles, ctx)),
    terminate: (resource, ctx) => verb(ctx, () => terminate(host, resource, ctx)),
    list: (deployment, ctx) => verb(ctx, () => list(host, deployment, ctx)),
    leftovers: (deployment, ctx) => verb(ctx, () => cacheLeftovers(host, deployment, ctx.signal)),
    logs: (handle, _cursor, ctx) => verb(ctx, () => logs(host, handle, ctx)),
  }
}
