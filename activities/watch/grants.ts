import type { Sealed } from '../../core/grants'
import type { Order } from '../../core/plan'

/** Whom credentials are for. */
export type Grantee = Pick<Order, 'jobId' | 'attempt' | 'attemptId'>

/** Credentials for one machine, sealed with the key of its attempt. */
export interface SealedGrant {
  sealed: Sealed
  /** Until when they can be counted on; `Infinity` for those that do not end. */
  endsAtMs: number
}

/** Where the credentials come from of machines that have none of their own, for a store that asks for some. */
export interface GrantSource {
  /** For how long a new grant can be counted on, as far as it is known. */
  readonly holdsForMs: number
  /** The same, asked for where it is not known yet. Throws a `BackendError`. */
  learnHoldsForMs(grantee: Grantee): Promise<number>
  /** New credentials. Throws a `BackendError`, and tells the log; soon after that it throws without asking. */
  grant(grantee: Grantee): Promise<SealedGrant>
  /** What `grant` gave some time ago, perhaps to another process. Throws a `SecretsError`. */
  recall(grantee: Grantee, sealed: Sealed): SealedGrant
}

/** The credentials that the leases of one machine carry. */
export class LeaseGrants {
  #present: SealedGrant | undefined
  #hasOwnRole = false

  constructor(
    private readonly source: GrantSource,
    private readonly grantee: Grantee,
    private readonly now: () => number,
  ) {}

  /** Goes on from the lease that an earlier watch left. */
  takeUp(sealed: Sealed | undefined): void {
    // Each lease of a machine that needs grants has one: this machine was started with a role that may use the store.
    if (sealed === undefined) {
      this.#hasOwnRole = true
      return
    }
    try {
      const found = this.source.recall(this.grantee, sealed)
      // Those that do not end may have been exchanged since; they cost nothing to ask for.
      if (found.endsAtMs !== Infinity) this.#present = found
    } catch {
      // With another key nobody can tell how long they hold: as good as none.
    }
  }

  /** The machine was started without a grant, by a deployment that did not give any: it can do without. */
  get isOptional(): boolean {
    return this.#hasOwnRole && this.#present === undefined
  }

  /**
   * What the next lease carries: a new grant once half of the present one is over, and the old one for as long as there is no new
   * one. `undefined` while it is not known how long the machine's own first one holds. Never throws.
   */
  async next(): Promise<(SealedGrant & { isNew: boolean }) | undefined> {
    const present = this.#present
    const isDue = present === undefined || present.endsAtMs - this.now() < this.source.holdsForMs / 2
    try {
      if (isDue) return { ...(this.#present = await this.source.grant(this.grantee)), isNew: true }
    } catch {
      // The source has told the log. The machine goes on with what it has, as far as that reaches.
    }
    return present && { ...present, isNew: false }
  }
}
