/** Signature Version 4 on the server side: reads a request's signature and verifies it. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { IdentityProblem } from './errors'

export interface SignedRequest {
  method: string
  /** Path and query as received. */
  url: string
  headers: IncomingHttpHeaders
  /** SHA-256 of the body in hex, or the value of the header `x-amz-content-sha256`. */
  payloadHash: string
}

/** The content of the `Authorization` header, or of a presigned URL's query. */
export interface Signature {
  accessKeyId: string
  sessionToken?: string
  /** The day, region and service of the key's scope. */
  day: string
  region: string
  service: string
  signedHeaders: string[]
  value: string
  /** `20261120T101500Z` */
  timestamp: string
  signedAtMs: number
  /** The validity of a presigned URL; missing for signed headers. */
  validForMs?: number
}

/** Maximum clock skew of client and server: S3 accepts more than other services. */
const CLOCK_SKEW_MS_MAX = 5 * 60_000
const CLOCK_SKEW_OF_S3_MS_MAX = 15 * 60_000
const ALGORITHM = 'AWS4-HMAC-SHA256'

/** Reads the signer of a request; `undefined` for an unsigned one. Throws `IdentityProblem` when the signature is unreadable. */
export function readSignature(request: SignedRequest): Signature | undefined {
  const header = request.headers.authorization
  if (header !== undefined) return fromHeader(request, header)
  const query = new URL(request.url, 'http://any').searchParams
  return query.has('X-Amz-Signature') ? fromQuery(query) : undefined
}

function fromHeader({ headers }: SignedRequest, header: string): Signature {
  const [algorithm, rest = ''] = splitOnce(header.trim(), ' ')
  if (algorithm !== ALGORITHM) throw new IdentityProblem('incomplete')
  const fields = new Map(
    rest
      .split(',')
      .map((part) => splitOnce(part.trim(), '='))
      .map(([name, value = '']) => [name, value] as const),
  )
  const timestamp = single(headers['x-amz-date'])
  const token = single(headers['x-amz-security-token'])
  return assemble({
    credential: fields.get('Credential'),
    signedHeaders: fields.get('SignedHeaders'),
    value: fields.get('Signature'),
    timestamp,
    ...(token === undefined ? {} : { token }),
  })
}

function fromQuery(query: URLSearchParams): Signature {
  if (query.get('X-Amz-Algorithm') !== ALGORITHM) throw new IdentityProblem('incomplete')
  const token = query.get('X-Amz-Security-Token')
  const signature = assemble({
    credential: query.get('X-Amz-Credential') ?? undefined,
    signedHeaders: query.get('X-Amz-SignedHeaders') ?? undefined,
    value: query.get('X-Amz-Signature') ?? undefined,
    timestamp: query.get('X-Amz-Date') ?? undefined,
    ...(token === null ? {} : { token }),
  })
  return { ...signature, validForMs: Number(query.get('X-Amz-Expires') ?? '0') * 1000 }
}

interface Parts {
  credential: string | undefined
  signedHeaders: string | undefined
  value: string | undefined
  timestamp: string | undefined
  token?: string
}

function assemble({ credential, signedHeaders, value, timestamp, token }: Parts): Signature {
  const scope = credential?.split('/') ?? []
  const [accessKeyId, day, region, service, end] = scope.slice(-5)
  const instant = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(timestamp ?? '')
  const isWhole =
    accessKeyId && day && region && service && end === 'aws4_request' && signedHeaders && value && instant
  if (!isWhole || !timestamp?.startsWith(day)) throw new IdentityProblem('incomplete')
  const [, year, month, date, hour, minute, second] = instant.map(Number)
  return {
    accessKeyId,
    day,
    region,
    service,
    signedHeaders: signedHeaders.split(';'),
    value,
    timestamp,
    signedAtMs: Date.UTC(year!, month! - 1, date, hour, minute, second),
    ...(token === undefined ? {} : { sessionToken: token }),
  }
}

/** Throws `IdentityProblem` unless the request was signed with this secret, recently enough. */
export function checkSignature(
  request: SignedRequest,
  signature: Signature,
  { secretAccessKey, nowMs }: { secretAccessKey: string; nowMs: number },
): void {
  const aheadMs = signature.signedAtMs - nowMs
  const ageMs = -aheadMs
  const skewMs = signature.service === 's3' ? CLOCK_SKEW_OF_S3_MS_MAX : CLOCK_SKEW_MS_MAX
  const oldestMs = signature.validForMs ?? skewMs
  if (aheadMs > skewMs || ageMs > oldestMs) throw new IdentityProblem('clock-skew')
  const expected = Buffer.from(signatureOf(request, signature, secretAccessKey))
  const given = Buffer.from(signature.value)
  if (expected.length !== given.length || !timingSafeEqual(expected, given))
    throw new IdentityProblem('wrong-signature')
}

function signatureOf(request: SignedRequest, signature: Signature, secret: string): string {
  const { day, region, service, timestamp } = signature
  const scope = `${day}/${region}/${service}/aws4_request`
  const text = [ALGORITHM, timestamp, scope, sha256(canonicalRequest(request, signature))].join('\n')
  const key = [day, region, service, 'aws4_request'].reduce<Buffer>(
    (signing, part) => createHmac('sha256', signing).update(part).digest(),
    Buffer.from(`AWS4${secret}`),
  )
  return createHmac('sha256', key).update(text).digest('hex')
}

function canonicalRequest(
  { method, url, headers, payloadHash }: SignedRequest,
  signature: Signature,
): string {
  const [path, query = ''] = splitOnce(url, '?')
  // S3 signs the path as sent; every other service encodes it once more.
  const canonicalPath = signature.service === 's3' ? path : path.split('/').map(encode).join('/')
  const parameters = query
    .split('&')
    .filter((part) => part !== '' && !part.startsWith('X-Amz-Signature='))
    .map((part) => splitOnce(part, '='))
    .map(([name, value = '']) => [recode(name), recode(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? compare(x, y) : compare(a, b)))
    .map(([name, value]) => `${name}=${value}`)
  const lines = signature.signedHeaders.map(
    (name) => `${name}:${(single(headers[name]) ?? '').trim().replace(/ +/g, ' ')}\n`,
  )
  const hash =
    signature.validForMs !== undefined && signature.service === 's3' ? 'UNSIGNED-PAYLOAD' : payloadHash
  return [
    method,
    canonicalPath || '/',
    parameters.join('&'),
    lines.join(''),
    signature.signedHeaders.join(';'),
    hash,
  ].join('\n')
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)]
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}

function recode(text: string): string {
  try {
    return encode(decodeURIComponent(text))
  } catch {
    return encode(text)
  }
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function sha256(body: Buffer | string): string {
  return createHash('sha256').update(body).digest('hex')
}
