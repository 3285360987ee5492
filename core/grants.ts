/**
 * Credentials that can read the job's part of the store and write the attempt's own files. The first ones reach the machine through the
 * backend's private channel; later ones come with the lease.
 */
export interface Grant {
  keyId: string
  secret: string
  /** Session token of temporary credentials; null for permanent keys that the operator made for machines. */
  sessionToken: string | null
  /** Expiry; null for keys that do not expire. */
  expiresAtMs: number | null
}

/** A text that only holders of a key can read, all but the version in Base64 (docs/reference/runner-protocol-store.md, "Secrets"). */
export interface Sealed {
  v: 1
  nonce: string
  text: string
  tag: string
}
