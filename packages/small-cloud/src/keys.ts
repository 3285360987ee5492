/** The cloud's own keys: drawn at its start, never from the world's seed, so that no other program can know or repeat them. */
import { randomBytes, timingSafeEqual } from 'node:crypto'

export interface CloudKeys {
  /** Of the user `test`, which may do everything, unless the world has its own user `test`. */
  user: { accessKeyId: string; secretAccessKey: string }
  /** Of the operator: for requests below `/_sim/`, and for Modal's control plane. */
  control: string
  /** Of Lambda Cloud, unless the world has its own. */
  lambda: string
  /** Modal's proxy token. */
  modal: { key: string; secret: string }
}

export function drawKeys(): CloudKeys {
  return {
    user: { accessKeyId: drawKeyId('AKIA'), secretAccessKey: drawSecret() },
    control: drawSecret(),
    lambda: `secret_small-cloud_${randomBytes(20).toString('hex')}`,
    modal: { key: `wk-${randomBytes(8).toString('hex')}`, secret: `ws-${randomBytes(20).toString('hex')}` },
  }
}

/** Makes a key id of AWS: `AKIA` for users, `ASIA` for sessions. */
export function drawKeyId(prefix: 'AKIA' | 'ASIA'): string {
  return prefix + randomBytes(8).toString('hex').toUpperCase()
}

export function drawSecret(bytes = 30): string {
  return randomBytes(bytes).toString('base64url')
}

/** Compares secrets in a time that does not depend on where they differ. */
export function isSameSecret(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Returns whether a request's `authorization` header has a key. */
export function hasBearer(header: string | undefined, key: string): boolean {
  return isSameSecret(header ?? '', `Bearer ${key}`)
}
