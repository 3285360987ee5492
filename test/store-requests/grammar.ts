/** Draws requests to an S3 store: ordinary ones, and ones with encodings, dots, empty parts, unknown parameters and headers. */
import type { Dice } from '../kit/dice'
import type { RawRequest } from '../support/raw-s3'

/** Names that a request may contain. */
export interface Names {
  bucket: string
  otherBucket: string
  /** Beginnings of keys that the grant may write, without a slash at the end. */
  own: readonly string[]
  /** Keys that the grant may read. */
  readable: readonly string[]
  /** Keys of others. */
  foreign: readonly string[]
  /** An upload in progress of the grant's own: its key and id. */
  upload: { key: string; id: string }
  /** An upload in progress of another grant. */
  foreignUpload: { key: string; id: string }
}

const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS', 'COPY', 'MOVE'] as const
/** Parts of paths as they go over the wire. */
const PARTS = [
  '..', '.', '', '...', '%2e%2e', '%2E.', '.%2e', '..%2f..', '%2f', '%5c..', '%252e%252e', '%252f', '..%00', '%00',
  '%zz', '%', 'a%20b', '%C3%BC', 'a+b', '*', ';', 'a;b', '%3f', '%23', '~', '.sgwtmp', 'multipart', 'metadata', 'meta',
  '%0a', '%c0%ae%c0%ae', '..;', '%u002e', 'x',
] as const // prettier-ignore
const FLAGS = [
  'uploads', 'delete', 'acl', 'tagging', 'versions', 'versioning', 'policy', 'lifecycle', 'attributes', 'retention',
  'legal-hold', 'restore', 'select', 'torrent', 'location', 'cors', 'website', 'object-lock', 'renameObject', 'append',
  'encryption', 'notification', 'session', 'x-unknown',
] as const // prettier-ignore
const UPLOAD_IDS = [
  '..',
  '../..',
  '../../..',
  '../../../../../victim',
  '.',
  '',
  '%2e%2e',
  '..%2f..',
  'x',
  '*',
  '%00',
] as const
const PARAMETERS = [
  'prefix', 'delimiter', 'marker', 'start-after', 'continuation-token', 'key-marker', 'upload-id-marker', 'versionId',
  'version-id-marker', 'max-keys', 'encoding-type', 'list-type', 'partNumber', 'response-content-type', 'fetch-owner',
  'x-id', 'X-Amz-Expires', 'X-Amz-Copy-Source', 'x-amz-copy-source', 'x-amz-acl', 'uploadid', 'UploadId', 'upload%49d',
  'Prefix', 'unknown',
] as const // prettier-ignore
const VALUES = [
  '',
  '/',
  '..',
  '../',
  '../..',
  '1',
  '2',
  '10001',
  '-1',
  'url',
  'true',
  'null',
  '%2e%2e%2f',
  'public-read',
  '%00',
  'ENABLED',
] as const
const HEADERS = [
  'x-amz-acl', 'x-amz-tagging', 'x-amz-grant-read', 'x-amz-website-redirect-location', 'x-amz-storage-class',
  'x-amz-object-lock-mode', 'x-amz-rename-source', 'x-amz-metadata-directive', 'x-amz-copy-source-range',
  'x-amz-copy-source-if-match', 'x-amz-checksum-mode', 'x-amz-meta-note', 'x-amz-meta-../x', 'x-amz-unknown', 'x-amz-id-2',
  'x-amz-expected-bucket-owner', 'x-amz-write-offset-bytes', 'x-http-method-override', 'x-original-url', 'x-rewrite-url',
  'x-forwarded-host', 'x-forwarded-prefix', 'content-type', 'range', 'if-match', 'if-none-match', 'content-md5', 'cookie',
] as const // prettier-ignore

/** @returns a request that depends on the dice and the names only */
export function drawRequest(dice: Dice, names: Names): RawRequest {
  if (dice.chance(0.4)) return ordinary(dice, names)
  const method = dice.chance(0.9) ? dice.oneOf(METHODS.slice(0, 5)) : dice.oneOf(METHODS)
  const target = `${pathOf(dice, names)}${queryOf(dice, names)}`
  return { method, target, headers: headersOf(dice, names), body: bodyOf(dice, names, method) }
}

/** An operation as clients send it, whose key alone may be strange. */
function ordinary(dice: Dice, names: Names): RawRequest {
  const key = dice.chance(0.8) ? keyOf(dice, names) : wildKeyOf(dice, names)
  const target = `/${names.bucket}/${key}`
  const uploadId = dice.chance(0.5) ? names.upload.id : uploadIdOf(dice, names)
  const upload = `/${names.bucket}/${names.upload.key}?uploadId=${uploadId}`
  const job = names.own[0]!.split('/').slice(0, 3).join('/')
  return dice.oneOf<RawRequest>([
    { method: 'GET', target },
    { method: 'HEAD', target },
    { method: 'PUT', target, body: 'written' },
    {
      method: 'PUT',
      target,
      body: 'with a note',
      headers: { 'x-amz-meta-note': 'x', 'content-type': 'text/plain' },
    },
    { method: 'DELETE', target },
    { method: 'POST', target: `${target}?uploads` },
    { method: 'PUT', target: `${upload}&partNumber=${dice.between(1, 9)}`, body: 'part' },
    { method: 'GET', target: upload },
    // The holder's upload itself stays for the other requests.
    ...(uploadId === names.upload.id ? [] : [{ method: 'DELETE', target: upload }]),
    { method: 'PUT', target, headers: { 'x-amz-copy-source': sourceOf(dice, names) } },
    {
      method: 'PUT',
      target: `${upload}&partNumber=1`,
      headers: { 'x-amz-copy-source': sourceOf(dice, names) },
    },
    {
      method: 'GET',
      target: `/${names.bucket}?list-type=2&prefix=${job}/${dice.oneOf(['', 'attempts/', 'x'])}`,
    },
    { method: 'GET', target: `/${names.bucket}?list-type=2&delimiter=/&prefix=${key}` },
  ])
}

function keyOf(dice: Dice, names: Names): string {
  const roll = dice.next()
  if (roll < 0.5) return `${dice.oneOf(names.own)}/${dice.oneOf(['a', 'b', 'folder/c', 'd%20e'])}`
  if (roll < 0.6) return names.upload.key
  if (roll < 0.75) return dice.oneOf(names.readable)
  return dice.oneOf(names.foreign)
}

/** A key with foreign parts put in, or that climbs out of the grant's folder towards one of another. */
function wildKeyOf(dice: Dice, names: Names): string {
  const parts = keyOf(dice, names).split('/')
  if (dice.chance(0.4)) {
    const up = dice.oneOf(['..', '%2e%2e', '.%2E', '%252e%252e'])
    const climbing = Array.from({ length: dice.between(1, 8) }, () => up)
    return [...parts, ...climbing, dice.oneOf(names.foreign)].join(
      dice.oneOf(['/', '/', '/', '//', '%2f', '%5c']),
    )
  }
  for (let times = dice.between(1, 3); times > 0; times--)
    parts.splice(dice.between(0, parts.length), dice.between(0, 1), dice.oneOf(PARTS))
  return parts.join(dice.chance(0.9) ? '/' : '//')
}

function anyKeyOf(dice: Dice, names: Names): string {
  return dice.chance(0.55) ? keyOf(dice, names) : wildKeyOf(dice, names)
}

function pathOf(dice: Dice, names: Names): string {
  const roll = dice.next()
  if (roll < 0.02) return '/'
  if (roll < 0.12) return `/${names.bucket}${dice.chance(0.5) ? '' : '/'}`
  const bucket =
    roll < 0.94
      ? names.bucket
      : dice.oneOf([
          names.otherBucket,
          '..',
          '.',
          '',
          '%2e%2e',
          'metadata',
          '.sgwtmp',
          `${names.bucket}%2f..`,
          'A_B',
        ])
  const path = `/${bucket}/${anyKeyOf(dice, names)}`
  return dice.chance(0.01) ? `http://127.0.0.1${path}` : path
}

function queryOf(dice: Dice, names: Names): string {
  if (dice.chance(0.45)) return ''
  const parts = Array.from({ length: dice.between(1, 3) }, () => parameterOf(dice, names))
  if (dice.chance(0.15)) parts.push(`partNumber=${dice.between(0, 3)}`)
  return `?${parts.join(dice.chance(0.97) ? '&' : ';')}`
}

function parameterOf(dice: Dice, names: Names): string {
  const roll = dice.next()
  if (roll < 0.25) return `uploadId=${uploadIdOf(dice, names)}`
  if (roll < 0.45) return `${dice.oneOf(FLAGS)}${dice.oneOf(['', '', '=', '=..', '=1'])}`
  if (roll < 0.6) return `prefix=${anyKeyOf(dice, names)}${dice.oneOf(['', '/', '/..', '/../'])}`
  const value = dice.chance(0.3) ? anyKeyOf(dice, names) : dice.oneOf(VALUES)
  return `${dice.oneOf(PARAMETERS)}=${value}`
}

function uploadIdOf(dice: Dice, names: Names): string {
  const roll = dice.next()
  if (roll < 0.3) return names.upload.id
  if (roll < 0.45) return names.foreignUpload.id
  if (roll < 0.7) return dice.oneOf(UPLOAD_IDS)
  return `${dice.oneOf(['', names.upload.id])}/${'../'.repeat(dice.between(1, 7))}${dice.oneOf(names.foreign)}`
}

function headersOf(dice: Dice, names: Names): Record<string, string> {
  const headers: Record<string, string> = {}
  if (dice.chance(0.25)) headers['x-amz-copy-source'] = sourceOf(dice, names)
  for (let times = dice.chance(0.35) ? dice.between(1, 2) : 0; times > 0; times--)
    headers[dice.oneOf(HEADERS)] = dice.oneOf([
      'x',
      'COPY',
      'REPLACE',
      'ENABLED',
      'bytes=0-3',
      '*',
      '..',
      names.foreign[0]!,
    ])
  return headers
}

function sourceOf(dice: Dice, names: Names): string {
  const key = anyKeyOf(dice, names)
  const bucket = dice.chance(0.9) ? names.bucket : dice.oneOf([names.otherBucket, '..', '', 'metadata'])
  const end = dice.oneOf([
    '',
    '',
    '',
    '',
    '?versionId=null',
    '?versionId=..',
    `?/../../${names.foreign[0]!}`,
    '%3F/..',
    '?',
  ])
  return `${dice.oneOf(['', '', '/', '//'])}${bucket}/${key}${end}`
}

function bodyOf(dice: Dice, names: Names, method: string): string {
  const roll = dice.next()
  if (method === 'POST' && roll < 0.6) {
    const key = decoded(anyKeyOf(dice, names))
    return dice.chance(0.5)
      ? `<Delete><Object><Key>${key}</Key></Object></Delete>`
      : `<CompleteMultipartUpload><Part><PartNumber>${dice.oneOf(['1', '2', '../1'])}</PartNumber><ETag>${dice.oneOf(['x', '"c4ca4238a0b923820dcc509a6f75849b"'])}</ETag></Part></CompleteMultipartUpload>`
  }
  return method === 'PUT' || roll < 0.1 ? dice.oneOf(['', '1', 'forged', 'forged '.repeat(200)]) : ''
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
