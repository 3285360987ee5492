import type { Logger } from 'pino'
import type { Grantee, GrantSource, SealedGrant } from '../activities/watch/grants'
import { BackendError } from '../backends/errors'
import type { Grant, Sealed } from '../core/grants'
import type { BackendName } from '../core/offer'
import { CLOCK_SLACK_MS, SECOND_MS } from '../core/time/time'
import { stoppingMs, type Timing } from '../core/time/timing'
import { leaseMsWithin } from '../planner/policy/liveness'
import { openGrant, sealGrant, type Granter } from '../storage/grants'
import { openGranter, tryGrant } from '../storage/open-granter'
import { StoreError, type ObjectStore } from '../storage/store'
import type { WorkerConfig } from './config'
import type { SecretIssuer } from './secrets'

/** Pause after a refusal, as a share of a grant's validity: hundreds of tries fit, and none of them delays a watch. */
const ASK_AGAIN_PART = 1 / 200
const ASK_AGAIN_MS_MAX = 10 * SECOND_MS
/** Largest share of a grant's validity that is reserved for clock skew and for delivery to the machine. */
const SLACK_PART = 1 / 10

export interface GrantsDeps {
  granter: Granter
  keys: Pick<SecretIssuer, 'keyOf'>
  timing: Timing
  now: () => number
  /** For durations: it never steps. */
  monotonicMs: () => number
  logger: Pick<Logger, 'warn' | 'info'>
}

/** The credentials of machines for the store, from the granter to each attempt, sealed with its key. */
export class GrantIssuer implements GrantSource {
  /** The token service's last answer. */
  #heldForMs: number | undefined
  #trouble: BackendError | undefined
  /** Monotonic. */
  #askAgainMs = -Infinity

  constructor(private readonly deps: GrantsDeps) {}

  get holdsForMs(): number {
    const { durationMsMax } = this.deps.granter
    return withoutSlack(this.#heldForMs ?? Math.min(wishMs(this.deps.timing), durationMsMax))
  }

  async learnHoldsForMs(grantee: Grantee): Promise<number> {
    if (this.#heldForMs === undefined) await this.#ask(grantee)
    return this.holdsForMs
  }

  async grant(grantee: Grantee): Promise<SealedGrant> {
    const grant = await this.#ask(grantee)
    const endsAtMs = this.deps.now() + this.holdsForMs
    return { sealed: sealGrant(this.#keyOf(grantee), grant), endsAtMs }
  }

  /** The text of the file that a machine starts with. */
  async grantFile(grantee: Grantee): Promise<string> {
    return `${JSON.stringify((await this.grant(grantee)).sealed)}\n`
  }

  recall(grantee: Grantee, sealed: Sealed): SealedGrant {
    return { sealed, endsAtMs: this.#endOf(openGrant(this.#keyOf(grantee), sealed)) }
  }

  async #ask({ jobId, attempt }: Grantee): Promise<Grant> {
    const { granter, monotonicMs, logger } = this.deps
    if (this.#trouble !== undefined && monotonicMs() < this.#askAgainMs) throw this.#trouble
    try {
      const grant = await granter.grant({ jobId, attempt, durationMs: wishMs(this.deps.timing) })
      this.#heldForMs = grant.expiresAtMs === null ? Infinity : this.#durationOf(grant.expiresAtMs)
      if (this.#trouble !== undefined) logger.info('machines get credentials for the store again')
      this.#trouble = undefined
      return grant
    } catch (error) {
      const pauseMs = Math.min(ASK_AGAIN_MS_MAX, this.holdsForMs * ASK_AGAIN_PART)
      this.#askAgainMs = monotonicMs() + pauseMs
      const trouble = troubleOf(error)
      if (this.#trouble?.message !== trouble.message)
        logger.warn(
          { error: trouble.message },
          'machines get no new credentials for the store; they continue with their current ones',
        )
      throw (this.#trouble = trouble)
    }
  }

  /** Returns the validity of a new grant. One that seems over, or longer than any, was measured with a wrong clock. */
  #durationOf(expiresAtMs: number): number {
    const { granter, now, timing } = this.deps
    const leftMs = expiresAtMs - (now() + (granter.clockOffsetMs ?? 0))
    const longestMs = Math.min(wishMs(timing), granter.durationMsMax)
    return leftMs > 0 ? Math.min(leftMs, longestMs) : longestMs
  }

  #endOf({ expiresAtMs }: Grant): number {
    if (expiresAtMs === null) return Infinity
    const heldForMs = this.#heldForMs ?? wishMs(this.deps.timing)
    return expiresAtMs - (this.deps.granter.clockOffsetMs ?? 0) - (heldForMs - withoutSlack(heldForMs))
  }

  #keyOf({ attemptId }: Grantee): Buffer {
    return Buffer.from(this.deps.keys.keyOf(attemptId), 'hex')
  }
}

/**
 * Requested validity: twice the time that a machine may continue alone, so that a whole lease still fits when a grant is renewed halfway.
 */
function wishMs(timing: Timing): number {
  return 2 * (timing.leaseMs + stoppingMs(timing) + CLOCK_SLACK_MS)
}

function withoutSlack(heldForMs: number): number {
  return heldForMs - Math.min(CLOCK_SLACK_MS, heldForMs * SLACK_PART)
}

/** A failure of the store, or of its token service, as a backend reports it. */
export function troubleOf(error: unknown): BackendError {
  const { message } = error as Error
  const isTransient = error instanceof StoreError && error.isTransient
  return new BackendError({ class: isTransient ? 'transient' : 'auth', message }, { cause: error })
}

/** Returns the source of credentials for a backend's machines; undefined if the store needs none, or the machines have their own. */
export function granterFor(config: WorkerConfig, name: BackendName, store: ObjectStore): Granter | undefined {
  return config.backends.get(name)?.needsGrants === true ? openGranter(store, config.grants) : undefined
}

/** An id that belongs to no job. */
const PROBE = { jobId: 'job-probe', attempt: 1 }

/**
 * Gets credentials as a machine would and reads the store with them: how long they are valid, and the lease that this allows.
 * Undefined if no machine of the deployment needs any. Throws a `StoreError`.
 */
export async function tryGrants(
  config: WorkerConfig,
  store: ObjectStore,
): Promise<{ holdForMs: number; leaseMs: number } | undefined> {
  const [granter] = [...config.backends.keys()].flatMap((name) => granterFor(config, name, store) ?? [])
  if (granter === undefined) return undefined
  const { timing } = config
  const { expiresAtMs } = await tryGrant(store, granter, { ...PROBE, durationMs: wishMs(timing) })
  const holdForMs =
    expiresAtMs === null ? Infinity : withoutSlack(expiresAtMs - (Date.now() + (granter.clockOffsetMs ?? 0)))
  return { holdForMs, leaseMs: leaseMsWithin(timing, holdForMs) }
}
