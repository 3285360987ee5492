/**
 * Credentials that read the job's part of the store and write what the attempt itself puts there. The first ones reach the machine through
 * the backend's private channel; later ones come with the lease.
 */
export interface Grant {
  keyId: string
  secret: string
  /** For temporary credentials; null for those of an account that the operator made for machines. */
  sessionToken: string | null
  /** Null if they do not expire. */
  expiresAtMs: number | null
}

/** A text that only holders of a key can read, all but the version in Base64 (docs/reference/runner-protocol-store.md, "Secrets"). */
export interface Sealed {
  v: 1
  nonce: string
  text: string
  tag: string
}
