import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CodedError } from '../core/errors'
import type { Sealed } from '../core/grants'
import { storeErrorOf } from './file-errors'
import { statOf } from './file-walk'
import { placeIfAbsent } from './place'

/** Secret values by name, for the workload's environment. */
export type SecretValues = Readonly<Record<string, string>>

const KEY_BYTES = 32
const NONCE_BYTES = 16
const KEY_PATTERN = /^[0-9a-f]{64}\n?$/

/** A problem with sealed secrets or with a key; the message never contains any of their content. */
export class SecretsError extends CodedError<'secrets'> {
  constructor(message: string, options?: { cause?: unknown }) {
    super('secrets', message, options)
  }
}

/**
 * Seals secret values with a key, as a document to put.
 *
 * @param nonce 16 random bytes, never used twice with the same key
 */
export function sealSecrets(key: Buffer, values: SecretValues, nonce: Buffer): string {
  return `${JSON.stringify(seal(key, values, nonce))}\n`
}

/** Seals values like `sealSecrets`, as a part of another document. */
export function seal(key: Buffer, values: SecretValues, nonce: Buffer): Sealed {
  checkLength('key', key, KEY_BYTES)
  checkLength('nonce', nonce, NONCE_BYTES)
  const text = xorStream(key, nonce, Buffer.from(JSON.stringify(values), 'utf8'))
  return {
    v: 1,
    nonce: nonce.toString('base64'),
    text: text.toString('base64'),
    tag: tagOf(key, nonce, text).toString('base64'),
  }
}

/** Opens the result of `sealSecrets`. Throws a `SecretsError` when it was sealed with another key or was changed since. */
export function openSecrets(key: Buffer, document: string): SecretValues {
  checkLength('key', key, KEY_BYTES)
  const { nonce, text, tag } = parseSealed(document)
  const expected = tagOf(key, nonce, text)
  if (tag.length !== expected.length || !timingSafeEqual(tag, expected)) {
    throw new SecretsError('The sealed secrets were made with another key, or modified since.')
  }
  return JSON.parse(xorStream(key, nonce, text).toString('utf8')) as SecretValues
}

/** Derives the key of one attempt: its machine can open only its own secrets. */
export function attemptKey(deploymentKey: Buffer, attemptId: string): Buffer {
  checkLength('key', deploymentKey, KEY_BYTES)
  return hmac(deploymentKey, Buffer.from(`attempt:${attemptId}`, 'utf8'))
}

/** Derives the key for the secrets of a schedule; each of its jobs gets a copy under its own key. */
export function scheduleKey(deploymentKey: Buffer, name: string): Buffer {
  checkLength('key', deploymentKey, KEY_BYTES)
  return hmac(deploymentKey, Buffer.from(`schedule:${name}`, 'utf8'))
}

/** Derives the key of the webhook of a reservation. */
export function reservationKey(deploymentKey: Buffer, id: string): Buffer {
  checkLength('key', deploymentKey, KEY_BYTES)
  return hmac(deploymentKey, Buffer.from(`reservation:${id}`, 'utf8'))
}

/** Derives the key of the hand-over of one send, which opens nothing else. */
export function handOverKey(deploymentKey: Buffer, send: string): Buffer {
  checkLength('key', deploymentKey, KEY_BYTES)
  return hmac(deploymentKey, Buffer.from(`hand-over:${send}`, 'utf8'))
}

/** Formats a key for files: 64 hex digits. */
export function formatKey(key: Buffer): string {
  return `${key.toString('hex')}\n`
}

/**
 * Returns the deployment's key from its file, which is created with a new random key when it is missing. All processes of a deployment
 * share the file. Throws a `SecretsError` when other users could read it, or it holds no key.
 */
export async function ensureDeploymentKey(path: string): Promise<Buffer> {
  try {
    return (await readKeyFile(path)) ?? (await makeKeyFile(path))
  } catch (error) {
    if (error instanceof SecretsError) throw error
    throw new SecretsError(storeErrorOf(error, `use the key file ${path}`).message, { cause: error })
  }
}

/** Returns the deployment's key, or `undefined` without a key file. Throws like `ensureDeploymentKey`. */
export async function readDeploymentKey(path: string): Promise<Buffer | undefined> {
  try {
    return await readKeyFile(path)
  } catch (error) {
    if (error instanceof SecretsError) throw error
    throw new SecretsError(storeErrorOf(error, `use the key file ${path}`).message, { cause: error })
  }
}

/** Creates the key file, or reads the one that another process created at the same moment. */
async function makeKeyFile(path: string): Promise<Buffer> {
  const key = randomBytes(KEY_BYTES)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // The key is written to a temporary file first, so that concurrent readers find all of it or nothing.
  const temporary = `${path}.${randomUUID()}`
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(formatKey(key))
      await file.sync()
    } finally {
      await file.close()
    }
    if (await placeIfAbsent(temporary, path, `${path}.claim`)) return key
  } finally {
    await rm(temporary, { force: true })
  }
  return (await readKeyFile(path)) ?? makeKeyFile(path)
}

/** Returns the key in a file, or `undefined` when there is no file. */
async function readKeyFile(path: string): Promise<Buffer | undefined> {
  const stats = await statOf(path)
  if (stats === undefined) return undefined
  if ((stats.mode & 0o077) !== 0) {
    throw new SecretsError(
      `The key file ${path} can be read by others (mode ${(stats.mode & 0o777).toString(8)}): run "chmod 600 ${path}".`,
    )
  }
  const text = await readFile(path, 'utf8')
  if (!KEY_PATTERN.test(text)) {
    throw new SecretsError(
      `The key file ${path} does not hold 64 hex digits: restore it from a backup; without it no stored secret can be opened.`,
    )
  }
  return Buffer.from(text.trim(), 'hex')
}

function parseSealed(document: string): { nonce: Buffer; text: Buffer; tag: Buffer } {
  let sealed: Partial<Sealed> | null
  try {
    sealed = JSON.parse(document) as Partial<Sealed> | null
  } catch (error) {
    throw new SecretsError('The sealed secrets are not JSON.', { cause: error })
  }
  if (sealed?.v !== 1) throw new SecretsError('The sealed secrets have an unknown version.')
  const [nonce, text, tag] = [sealed.nonce, sealed.text, sealed.tag].map((field) =>
    Buffer.from(typeof field === 'string' ? field : '', 'base64'),
  )
  return { nonce: nonce!, text: text!, tag: tag! }
}

/** XORs the text with the key stream: block i is HMAC(HMAC(key, "encrypt"), nonce ‖ i). Applying it twice restores the text. */
function xorStream(key: Buffer, nonce: Buffer, text: Buffer): Buffer {
  const streamKey = hmac(key, Buffer.from('encrypt'))
  const result = Buffer.from(text)
  const counter = Buffer.alloc(8)
  let block: Buffer = Buffer.alloc(0)
  for (let at = 0; at < result.length; at++) {
    const inBlock = at % 32
    if (inBlock === 0) {
      counter.writeBigUInt64BE(BigInt(at / 32))
      block = hmac(streamKey, nonce, counter)
    }
    result[at]! ^= block[inBlock]!
  }
  return result
}

function tagOf(key: Buffer, nonce: Buffer, text: Buffer): Buffer {
  return hmac(hmac(key, Buffer.from('authenticate')), nonce, text)
}

function hmac(key: Buffer, ...parts: Buffer[]): Buffer {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

function checkLength(what: string, bytes: Buffer, length: number): void {
  if (bytes.length !== length)
    throw new SecretsError(`The ${what} has ${bytes.length} bytes instead of ${length}.`)
}
