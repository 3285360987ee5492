import type { Sealed } from '../../core/grants'
import type { Order } from '../../core/job/plan'

/** The recipient of credentials. */
export type Grantee = Pick<Order, 'jobId' | 'attempt' | 'attemptId'>

/** Credentials for one machine, sealed with the key of its attempt. */
export interface SealedGrant {
  sealed: Sealed
  /** Guaranteed validity; `Infinity` for credentials that do not expire. */
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

/** The credentials in the leases of one machine. */
export class LeaseGrants {
  #present: SealedGrant | undefined
  #hasOwnRole = false

  constructor(
    private readonly source: GrantSource,
    private readonly grantee: Grantee,
    private readonly now: () => number,
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
      if (found.endsAtMs !== Infinity) this.#present = found
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
  async next(): Promise<(SealedGrant & { isNew: boolean }) | undefined> {
    const present = this.#present
    const isDue = present === undefined || present.endsAtMs - this.now() < this.source.holdsForMs / 2
    try {
      if (isDue) return { ...(this.#present = await this.source.grant(this.grantee)), isNew: true }
    } catch {
      // The source has logged it. The machine continues with its current grant while that is valid.
    }
    return present && { ...present, isNew: false }
  }
}
