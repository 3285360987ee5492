import { randomBytes } from 'node:crypto'
import type { Grant, Sealed } from '../core/grants'
import { openSecrets, seal } from './secrets'

/** Requested store permissions for a machine, and their duration. */
export interface GrantRequest {
  jobId: string
  attempt: number
  /** The requested duration; the grant may be shorter (`Granter.durationMsMax`). */
  durationMs: number
}

/** Issues store credentials to machines without their own, limited to their job's part of the store. */
export interface Granter {
  /** Longest duration of a grant, as far as it is known. A lease must end a drain before its grant expires. */
  readonly durationMsMax: number
  /** How far the clock of the token service is ahead of this computer's, by its last answer; missing if unknown. */
  readonly clockOffsetMs?: number | undefined
  /** Throws a `StoreError`. */
  grant(wish: GrantRequest): Promise<Grant>
}

/** Seals a grant for `lease.json`. */
export function sealGrant(attemptKey: Buffer, grant: Grant): Sealed {
  return seal(attemptKey, { grant: JSON.stringify(grant) }, randomBytes(16))
}

/** Opens the result of `sealGrant`. Throws a `SecretsError` when it was sealed with another key. */
export function openGrant(attemptKey: Buffer, sealed: Sealed): Grant {
  return JSON.parse(openSecrets(attemptKey, JSON.stringify(sealed))['grant'] ?? 'null') as Grant
}
