import { Ages } from '../../core/time/ages'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type { Order } from '../../core/job/plan'
import type { Ec2Api } from './sdk/api'
import { cached, type Cached } from '../calls'
import type { Ec2Config } from './config'
import { inGroups } from './gathering'
import { createLimiter, paced } from './limiter'
import { createMarket, type Market } from './market/market'
import { createMemory, type Memory } from './launch/memory'
import { createPlaces, type Places } from './launch/places'
import { createReservations, type Reservations } from './market/reservations'
import type { PriceHistories } from './market/prices'
import { readUserData, type TemplateCommon } from './launch/template'

/** Dependencies that the caller provides. */
export interface Ec2Deps {
  /** Milliseconds since 1970. */
  clock(): number
  /** Milliseconds by a clock that never steps, for durations; `clock` if missing. */
  monotonic?(): number
  /** Deployment whose machines may be found and ended; every deployment's if missing. */
  deployment?: string
  /** The attempt's key for its sealed secrets, 64 hex digits; missing without secrets. */
  secretKeyOf?(attemptId: string): string
  /** Credentials for the store, as the text of a file for the runner; missing for a store without credentials. */
  grantFile?(order: Order): Promise<string>
  /** When the sign-in of this process ends at the latest; missing or `undefined` if no person must renew it. */
  signInEndMs?(): Promise<number | undefined>
  /** A URL from which a machine can download the runner program with this digest within the next minutes. */
  runnerUrl(sha256: string): Promise<string>
  /** The object store, if it can be checked from here. */
  storeUrl?: string
}

/** The account and the Region as the verbs see them. */
export interface Host {
  config: Ec2Config
  deps: Ec2Deps
  api: Ec2Api
  market: Market
  places: Places
  reservations: Reservations
  memory: Memory
  /** How long ago machines were launched. */
  ages: Ages
  common: TemplateCommon
  histories: PriceHistories
  /** The id of the account. */
  account(signal: AbortSignal): Promise<string>
  /** Value of a quota by its code; the last known one, or nothing, if it cannot be read. */
  quota(code: string, signal: AbortSignal): Promise<number | undefined>
}

/** Validity of the identity: credentials belong to one account, unless a person replaces them. */
const IDENTITY_FRESH_MS = 10 * MINUTE_MS
/** A person raises a quota rarely, and then wants to use it the same day. */
const QUOTA_FRESH_MS = 10 * MINUTE_MS
/** How long a plan waits for an optional figure. */
const PATIENCE_MS = 6_000

export function createHost(config: Ec2Config, deps: Ec2Deps, unpaced: Ec2Api): Host {
  const quotas = new Map<string, Cached<number>>()
  const clock = (): number => deps.clock()
  const monotonicMs = (): number => deps.monotonic?.() ?? clock()
  const api = inGroups(paced(unpaced, createLimiter(monotonicMs)))
  const identity = cached({
    freshForMs: IDENTITY_FRESH_MS,
    clock,
    read: (signal: AbortSignal) => api.account.identity(signal),
  })
  return {
    config,
    deps,
    api,
    market: createMarket({ config, api, clock }),
    places: createPlaces({ config, api, clock }),
    reservations: createReservations({ config, deployment: deps.deployment, api, clock }),
    memory: createMemory(monotonicMs),
    ages: new Ages({ now: clock, monotonicMs }),
    histories: new Map(),
    common: { deployment: deps.deployment ?? '', userData: readUserData() },
    account: async (signal) => (await identity.get(signal)).value.account,
    quota: async (code, signal) => {
      const known =
        quotas.get(code) ??
        cached({ freshForMs: QUOTA_FRESH_MS, clock, read: (within) => api.account.quota(code, within) })
      quotas.set(code, known)
      return (await known.soon(PATIENCE_MS, signal))?.value
    },
  }
}

/** How long a pool without capacity is avoided, by its answer. */
export const LEFT_ALONE_MS: Readonly<Record<'capacity' | 'quota' | 'never', number>> = {
  // Stock changes within minutes; other large users of spot use the same figure.
  capacity: 3 * MINUTE_MS,
  quota: 3 * MINUTE_MS,
  never: 6 * HOUR_MS,
}
