import type { Sealed } from '../../core/grants'
import type { Order } from '../../core/job/plan'
import type { Moment } from './evidence'

/** The recipient of credentials. */
export type Grantee = Pick<Order, 'jobId' | 'attempt' | 'attemptId'>

/** Credentials for one machine, sealed with the key of its attempt. */
export interface SealedGrant {
  sealed: Sealed
  /** Guaranteed validity, by this process's wall clock as it was set then; `Infinity` for credentials that do not expire. */
  endsAtMs: number
}

/** Source of credentials for machines without their own, for a store that requires some. */
export interface GrantSource {
  /** Expected validity of a new grant, if it is known. */
  readonly holdsForMs: number
  /** Returns the expected validity, and requests a grant if it is unknown. Throws a `BackendError`. */
  learnHoldsForMs(grantee: Grantee): Promise<number>
  /** New credentials. Throws a `BackendError`, and logs it; soon after that it throws without a request. */
  grant(grantee: Grantee): Promise<SealedGrant>
  /** Reads what `grant` returned earlier, perhaps in another process. Throws a `SecretsError`. */
  recall(grantee: Grantee, sealed: Sealed): SealedGrant
}

/** Credentials for the next lease. */
export interface LeaseGrant {
  sealed: Sealed
  /** How long they are valid from now on; `Infinity` for credentials that do not expire. */
  leftMs: number
  isNew: boolean
}

/** The credentials in the leases of one machine. */
export class LeaseGrants {
  #present: (SealedGrant & { endsMonotonicMs: number }) | undefined
  #hasOwnRole = false

  constructor(
    private readonly source: GrantSource,
    private readonly grantee: Grantee,
    private readonly moment: () => Moment,
  ) {}

  /** Continues from the lease of an earlier watch. */
  takeUp(sealed: Sealed | undefined): void {
    // Each lease of a machine that needs grants has one; this machine was started with a role that can use the store.
    if (sealed === undefined) {
      this.#hasOwnRole = true
      return
    }
    try {
      const found = this.source.recall(this.grantee, sealed)
      // Permanent ones may have been replaced since; asking costs nothing.
      if (found.endsAtMs !== Infinity) this.#keep(found, this.moment())
    } catch {
      // With another key, their validity is unknown: treat them as missing.
    }
  }

  /** The machine was started without a grant, by a deployment that gave none: it needs none. */
  get isOptional(): boolean {
    return this.#hasOwnRole && this.#present === undefined
  }

  /**
   * Returns the grant for the next lease: a new one once half of the current one is over, and the old one until a new one is available.
   * `undefined` while the validity of the machine's first one is unknown. Never throws.
   */
  async next(): Promise<LeaseGrant | undefined> {
    const before = this.moment()
    const isDue = this.#present === undefined || this.#leftMs(this.#present) < this.source.holdsForMs / 2
    let isNew = false
    try {
      if (isDue) {
        this.#keep(await this.source.grant(this.grantee), before)
        isNew = true
      }
    } catch {
      // The source has logged it. The machine continues with its current grant while that is valid.
    }
    const present = this.#present
    return present && { sealed: present.sealed, leftMs: this.#leftMs(present), isNew }
  }

  /** No grant is valid for longer than a new one, whatever the clock says. */
  #keep(grant: SealedGrant, { monotonicMs, wallAtMs }: Moment): void {
    const leftMs = Math.min(grant.endsAtMs - wallAtMs, this.source.holdsForMs)
    this.#present = { ...grant, endsMonotonicMs: monotonicMs + leftMs }
  }

  /** The earlier of two ends: the wall clock may have been set since, and the monotonic one may have stood still in a suspended host. */
  #leftMs({ endsAtMs, endsMonotonicMs }: { endsAtMs: number; endsMonotonicMs: number }): number {
    const { monotonicMs, wallAtMs } = this.moment()
    return Math.min(endsAtMs - wallAtMs, endsMonotonicMs - monotonicMs)
  }
}
