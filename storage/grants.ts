import { randomBytes } from 'node:crypto'
import type { Grant, Sealed } from '../core/grants'
import { openSecrets, seal } from './secrets'

/** What a machine may be allowed to do in the store, and for how long. */
export interface GrantWish {
  jobId: string
  attempt: number
  /** How long it should hold; it may hold for less (`Granter.durationMsMax`). */
  durationMs: number
}

/** Gives machines without credentials of their own a right to their job's part of the store. */
export interface Granter {
  /** As far as it is known: the longest that a grant holds. A lease must end a drain before its grant does. */
  readonly durationMsMax: number
  /** Throws a `StoreError`. */
  grant(wish: GrantWish): Promise<Grant>
}

/** A grant as it travels in `lease.json`. */
export function sealGrant(attemptKey: Buffer, grant: Grant): Sealed {
  return seal(attemptKey, { grant: JSON.stringify(grant) }, randomBytes(16))
}

/** What `sealGrant` made. Throws a `SecretsError` when it was made with another key. */
export function openGrant(attemptKey: Buffer, sealed: Sealed): Grant {
  return JSON.parse(openSecrets(attemptKey, JSON.stringify(sealed))['grant'] ?? 'null') as Grant
}
