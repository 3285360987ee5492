/**
 * Credentials that read the job's part of the store and write what the attempt itself puts there. The first reaches the machine by
 * the backend's private way; the others come with the lease.
 */
export interface Grant {
  keyId: string
  secret: string
  /** Of credentials that were made for a while; null for those of an account that the operator made for machines. */
  sessionToken: string | null
  /** Null where they do not end. */
  expiresAtMs: number | null
}

/** A text that only holders of a key can read, all but the version in Base64 (docs/reference/runner-protocol-store.md, "Secrets"). */
export interface Sealed {
  v: 1
  nonce: string
  text: string
  tag: string
}
