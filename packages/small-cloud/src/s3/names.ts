/** The names of buckets, keys and uploads that the front accepts. */
import { StoreProblem } from './problems'

const BUCKET = /^[a-z0-9](?:[a-z0-9-]|\.(?=[a-z0-9])){1,61}[a-z0-9]$/
const KEY_BYTES_MAX = 1024
/** An id of an upload names a folder of some servers. */
const UPLOAD_ID = /^[0-9A-Za-z_-]{8,256}$/
/** A text that a server which decodes twice would take for another path. */
const DECODES_AGAIN = /%(?:2e|2f|5c|00)/i
/** The folder in which the server behind the front keeps parts of uploads. */
const RESERVED = '.sgwtmp'

/** Throws `StoreProblem`. */
export function checkBucket(name: string): void {
  if (!BUCKET.test(name)) throw new StoreProblem('InvalidBucketName', 400, 'The bucket name is not valid.')
}

/**
 * Refuses keys that are ordinary names in S3, but for a server with folders lead elsewhere, or are the same as another key.
 * Throws `StoreProblem`.
 */
export function checkKey(key: string): void {
  if (Buffer.byteLength(key) > KEY_BYTES_MAX)
    throw new StoreProblem('KeyTooLongError', 400, 'Your key is too long.')
  const parts = key.split('/')
  if (parts.includes('')) throw unsupported('empty parts between slashes')
  checkParts(parts, key)
}

/** Checks the beginning of keys, which may end in the middle of a part. Throws `StoreProblem`. */
export function checkBeginning(text: string): void {
  const parts = text.split('/')
  if (parts.slice(0, -1).includes('')) throw unsupported('empty parts between slashes')
  checkParts(parts, text)
}

/** Throws `StoreProblem`. */
export function checkUploadId(id: string): void {
  if (!UPLOAD_ID.test(id))
    throw new StoreProblem('NoSuchUpload', 404, 'The specified multipart upload does not exist.')
}

function checkParts(parts: readonly string[], text: string): void {
  if (parts.some((part) => part === '.' || part === '..')) throw unsupported('. or .. between slashes')
  if (parts[0] === RESERVED) throw unsupported(`the first part ${RESERVED}`)
  if (DECODES_AGAIN.test(text)) throw unsupported('encoded dots, slashes, backslashes or zeros in their text')
  if (hasControl(text)) throw unsupported('control characters')
}

function hasControl(text: string): boolean {
  return [...text].some((character) => character < ' ' || character === '\x7f')
}

function unsupported(what: string): StoreProblem {
  return new StoreProblem('NotImplemented', 501, `This small cloud has no keys with ${what}.`)
}
