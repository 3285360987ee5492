import { CODES } from '../core/errors'
import { StoreError } from './store'

/** S3's limit for a key; every store observes it, so that a job can change stores. */
const KEY_BYTES_MAX = 1024

/** Throws unless the key is a relative path of plain segments: none empty, none `.` or `..`, no NUL. */
export function checkKey(key: string): void {
  const fault = faultOf(key, key.split('/'))
  if (fault !== undefined) throw badKey('key', key, fault)
}

/** Throws unless some key could begin with the prefix. */
export function checkPrefix(prefix: string): void {
  const folders = prefix.split('/').slice(0, -1)
  const fault = folders.length === 0 ? undefined : faultOf(prefix, folders)
  if (fault !== undefined) throw badKey('prefix', prefix, fault)
}

function faultOf(text: string, segments: string[]): string | undefined {
  if (Buffer.byteLength(text) > KEY_BYTES_MAX) return `is longer than ${KEY_BYTES_MAX} bytes`
  if (text.includes('\0')) return 'has a NUL character'
  if (text.startsWith('/')) return 'is absolute'
  if (segments.includes('')) return 'has an empty segment'
  if (segments.includes('.') || segments.includes('..')) return 'has a segment "." or ".."'
  return undefined
}

function badKey(what: string, text: string, fault: string): StoreError {
  return new StoreError(
    `The ${what} ${JSON.stringify(text)} ${fault}; keys are relative paths such as "jobs/a/b".`,
    {
      isTransient: false,
      code: CODES.badKey,
    },
  )
}

/** Compares keys by their UTF-8 bytes, the order in which S3 lists them. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
