import { readSignInEnd } from '../../network/sign-in'
import type { Backend, Capabilities } from '../backend'
import type { Ec2Api } from './sdk/api'
import { verb } from './calls'
import { check } from './check/index'
import type { Ec2Config } from './config'
import { createHost, type Ec2Deps } from './host'
import { drain } from './machine/drain'
import { launch } from './launch/launch'
import { logs } from './machine/logs'
import { leftovers } from './machine/leftovers'
import { find, list, observe } from './machine/observe'
import { BACKEND, CAPACITY_TYPES, offers } from './market/offers'
import { prices } from './market/prices'
import { createTransfers } from './market/transfer'
import { acrossRegions } from './regions'
import { createReserving } from './reserving'
import type * as Sdk from './sdk/index'
import { REGISTERS_SOON_GIB, start } from './machine/start'
import { createStoreRegion } from './store-region'
import { endMachine, terminate } from './machine/terminate'
import { MINUTE_MS } from '../../core/time/time'

const BOOT = {
  lowMs: MINUTE_MS,
  middleMs: 1.75 * MINUTE_MS,
  highMs: 4 * MINUTE_MS,
  // 2 TiB register after five to fifteen minutes.
  perGiB: { aboveGiB: REGISTERS_SOON_GIB, lowMs: 130, middleMs: 250, highMs: 370 },
  source: 'general experience with EC2, 1 to 3 minutes until the agent answers, November 2026',
}

/** EC2 machines, on demand, spot and reserved, in the Regions of one account. */
export async function createEc2Backend(config: Ec2Config, deps: Ec2Deps): Promise<Backend> {
  // The SDK is loaded here, so that users without EC2 do not wait for it.
  const { createSdkApi } = require('./sdk/index') as typeof Sdk
  const { endpoint, buyerRole } = config
  const apiOf = (region: string): Ec2Api => createSdkApi({ region, endpoint, buyerRole })
  const signInEndMs = (): Promise<number | undefined> => readSignInEnd(deps.clock())
  return createBackendAcross(apiOf, config, { ...deps, signInEndMs })
}

/** Creates the backend over any implementation of the API, for each Region. */
export function createBackendAcross(
  apiOf: (region: string) => Ec2Api,
  config: Ec2Config,
  deps: Ec2Deps,
): Backend {
  const { region, regions, endpoint } = config
  const clock = (): number => deps.clock()
  const { account, market } = apiOf(region)
  return acrossRegions({
    regions,
    open: (one) => createBackendOver(apiOf(one), { ...config, region: one }, deps),
    storeRegion: createStoreRegion({
      storeUrl: deps.storeUrl,
      account,
      endpoint,
      clock,
    }),
    transferBetween: createTransfers({ market, clock }),
  })
}

/** Creates the backend of one Region over any implementation of the API. */
export function createBackendOver(api: Ec2Api, config: Ec2Config, deps: Ec2Deps): Backend {
  const host = createHost(config, deps, api)
  return {
    name: BACKEND,
    places: [config.region],
    capabilities: capabilitiesOf(config),
    check: (ctx) => verb(ctx, () => check(host, ctx)),
    offers: (request, ctx, pins) => verb(ctx, () => offers(host, { request, pins }, ctx)),
    launch: (order, ctx) => verb(ctx, () => launch(host, order, ctx)),
    find: (attemptId, ctx) => verb(ctx, () => find(host, attemptId, ctx)),
    start: (handle, order, ctx) => verb(ctx, () => start(host, { handle, order }, ctx)),
    drain: (handle, order, ctx) => verb(ctx, () => drain(host, { handle, drain: order }, ctx)),
    observe: (handles, ctx) => verb(ctx, () => observe(host, handles, ctx)),
    terminate: (resource, ctx) => verb(ctx, () => terminate(host, resource, ctx)),
    endAbruptly: (handle, ctx) => verb(ctx, () => endMachine(host, handle, { ...ctx, isAbrupt: true })),
    prices: (handle, time, ctx) => verb(ctx, () => prices(host, handle, { time, ctx })),
    list: (deployment, ctx) => verb(ctx, () => list(host, deployment, ctx)),
    leftovers: (deployment, ctx) => verb(ctx, () => leftovers(host, deployment, ctx)),
    logs: (handle, _cursor, ctx) => verb(ctx, () => logs(host, handle, ctx)),
    reserving: config.reservations !== 'none' ? createReserving(host) : undefined,
  }
}

export function capabilitiesOf({
  hasSpot,
  reservations,
}: Pick<Ec2Config, 'hasSpot' | 'reservations'>): Capabilities {
  return {
    capacityTypes: [
      ...CAPACITY_TYPES.filter((one) => one === 'on-demand' || hasSpot),
      ...(reservations === 'none' ? [] : (['reserved'] as const)),
    ],
    imageRunner: 'runner',
    runnerStart: 'after-launch',
    notice: { kind: 'instance-metadata' },
    idempotency: 'token',
    billsUntil: 'exit',
    boot: BOOT,
    price: 'live',
  }
}
