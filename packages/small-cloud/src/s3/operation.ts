/**
 * A request to the object store, parsed once. Whether it is allowed is decided by the parsed operation, and the request to the server
 * behind the front is built from it alone, so that judge and server see the same. Whatever the parser does not know is refused.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { AuthorizationRequest } from '../identity/policy'
import { checkBeginning, checkBucket, checkKey, checkUploadId } from './names'
import { CONDITIONS, OPERATIONS, type OperationKind, type Place } from './operations'
import { StoreProblem } from './problems'

export interface ObjectName {
  bucket: string
  key: string
}

export interface Operation {
  kind: OperationKind
  /** S3's name: `PutObject`. */
  name: string
  method: string
  /** Empty for a request without a bucket. */
  bucket: string
  /** Empty for a request on the bucket itself. */
  key: string
  /** Every query parameter that has an effect, decoded. */
  parameters: Readonly<Record<string, string>>
  /** Every header that has an effect. */
  headers: Readonly<Record<string, string>>
  /** The object that a copy is made from. */
  source: ObjectName | undefined
  isMutating: boolean
}

/** A request as it arrived. */
export interface RawRequest {
  method?: string | undefined
  url?: string | undefined
  headers: IncomingHttpHeaders
}

/** Parameters of signatures and of SDKs, which have no effect on the operation. */
const WITHOUT_EFFECT = new Set([
  'X-Amz-Algorithm',
  'X-Amz-Credential',
  'X-Amz-Date',
  'X-Amz-Expires',
  'X-Amz-SignedHeaders',
  'X-Amz-Signature',
  'X-Amz-Security-Token',
  'X-Amz-Content-Sha256',
  'x-amz-user-agent',
  'x-id',
])
/** Headers of signatures and of SDKs; other headers than those of Amazon have no effect either, unless an operation lists them. */
const SIGNING = ['x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token', 'x-amz-user-agent']
const COPY_SOURCE = 'x-amz-copy-source'
const METADATA = /^x-amz-meta-[a-z0-9_.-]{1,128}$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** A header that a presigned URL may have as a parameter. */
const HOISTED = 'x-amz-checksum-mode'

const NUMBER = /^\d{1,10}$/
/** The form of each parameter. */
const FORMS: Readonly<Record<string, RegExp | ((value: string) => void)>> = {
  uploadId: checkUploadId,
  'upload-id-marker': checkUploadId,
  partNumber: NUMBER,
  'part-number-marker': NUMBER,
  'max-parts': NUMBER,
  'max-keys': NUMBER,
  'max-uploads': NUMBER,
  'max-buckets': NUMBER,
  'list-type': /^2$/,
  'encoding-type': /^url$/,
  'fetch-owner': /^(?:true|false)$/,
  delimiter: /^\/$/,
  prefix: checkBeginning,
  marker: checkBeginning,
  'key-marker': checkBeginning,
  'start-after': checkBeginning,
  'continuation-token': checkBeginning,
  [HOISTED]: /^ENABLED$/,
}

/** Throws `StoreProblem` for a request that contains anything unknown. */
export function operationOf({ method = 'GET', url = '/', headers }: RawRequest): Operation {
  const { path, query } = splitTarget(url)
  const { bucket, key } = nameIn(path)
  const place: Place = bucket === '' ? 'account' : key === '' ? 'bucket' : 'object'
  const given = parametersOf(query)
  const source = sourceOf(headers)
  const kind = OPERATIONS.find((each) =>
    isMeant(each, { method, place, given, copies: source !== undefined }),
  )
  if (kind === undefined)
    throw new StoreProblem('NotImplemented', 501, `This small cloud has no such operation on the ${place}.`)
  return {
    kind,
    name: kind.name,
    method,
    bucket,
    key,
    source,
    parameters: known(kind, given),
    headers: { ...hoisted(kind, given), ...effectiveHeaders(kind, headers) },
    isMutating: !['GET', 'HEAD'].includes(method),
  }
}

function splitTarget(url: string): { path: string; query: string } {
  if (!url.startsWith('/')) throw malformed()
  const at = url.indexOf('?')
  return at < 0 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) }
}

/** The name in a path: the bucket, and the key's parts. An encoded slash or dot is refused, because no client sends it. */
function nameIn(path: string): ObjectName {
  if (/%(?:2e|2f|5c)|\\|#/i.test(path)) throw malformed()
  const [, bucket = '', ...rest] = path.split('/')
  const name = { bucket: decode(bucket), key: rest.map(decode).join('/') }
  if (bucket === '' && rest.length > 0) throw malformed()
  if (bucket !== '') checkBucket(name.bucket)
  if (name.key !== '') checkKey(name.key)
  return name
}

/** The source of a copy: a bucket and a key. A version, which follows a question mark, does not exist here. */
function sourceOf(headers: IncomingHttpHeaders): ObjectName | undefined {
  const [source] = [headers[COPY_SOURCE]].flat()
  if (source === undefined) return undefined
  if (source.includes('?'))
    throw new StoreProblem('NotImplemented', 501, 'This small cloud has no versions of objects.')
  // Some clients encode the slashes of a source.
  const decoded = decode(source)
  const at = decoded.indexOf('/', 1)
  if (at < 0) throw malformed()
  const bucket = decoded.slice(decoded.startsWith('/') ? 1 : 0, at)
  const name = { bucket, key: decoded.slice(at + 1) }
  checkBucket(bucket)
  checkKey(name.key)
  return name
}

/** Throws `StoreProblem` for a parameter that is given twice. */
function parametersOf(query: string): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  for (const part of query.split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
    const decoded = decode(name)
    if (given.has(decoded)) throw invalid(`The parameter ${decoded} is given twice.`)
    if (!WITHOUT_EFFECT.has(decoded)) given.set(decoded, decode(value))
  }
  return given
}

interface Asked {
  method: string
  place: Place
  given: ReadonlyMap<string, string>
  copies: boolean
}

function isMeant(kind: OperationKind, { method, place, given, copies }: Asked): boolean {
  const { flag, needs = [], may = [], headers = [] } = kind
  const isKnown = (name: string): boolean =>
    name === flag ||
    needs.includes(name) ||
    may.includes(name) ||
    (name === HOISTED && headers.includes(name))
  return (
    kind.method === method &&
    kind.place === place &&
    (kind.copies === true) === copies &&
    (flag === undefined || given.has(flag)) &&
    needs.every((name) => given.has(name)) &&
    [...given.keys()].every(isKnown)
  )
}

/** The checked parameters of an operation. Throws `StoreProblem`. */
function known(kind: OperationKind, given: ReadonlyMap<string, string>): Record<string, string> {
  const parameters: Record<string, string> = {}
  for (const [name, value] of given) {
    const form = name === kind.flag ? /^$/ : FORMS[name]!
    if (!(form instanceof RegExp)) form(value)
    else if (!form.test(value)) throw invalid(`The value of the parameter ${name} is not valid.`)
    if (name !== HOISTED) parameters[name] = value
  }
  return parameters
}

function hoisted(
  { headers = [] }: OperationKind,
  given: ReadonlyMap<string, string>,
): Record<string, string> {
  const value = given.get(HOISTED)
  return value === undefined || !headers.includes(HOISTED) ? {} : { [HOISTED]: value }
}

/** The headers that have an effect. Throws `StoreProblem` for one of Amazon's that the operation does not have. */
function effectiveHeaders(
  { headers = [], ignores = [], hasMetadata = false, copies = false, name: operation }: OperationKind,
  given: IncomingHttpHeaders,
): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, values] of Object.entries(given)) {
    const isKept = headers.includes(name) || (hasMetadata && METADATA.test(name))
    const isRead = SIGNING.includes(name) || ignores.includes(name) || (copies && name === COPY_SOURCE)
    if (!isKept && !isRead && name.startsWith('x-amz-'))
      throw new StoreProblem('NotImplemented', 501, `This small cloud has no ${name} for ${operation}.`)
    if (!isKept || values === undefined) continue
    const value = Array.isArray(values) ? values.join(',') : values
    if (!HEADER_VALUE.test(value)) throw invalid(`The value of the header ${name} is not valid.`)
    kept[name] = value
  }
  return kept
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw malformed()
  }
}

function malformed(): StoreProblem {
  return new StoreProblem('InvalidURI', 400, "Couldn't parse the specified URI.")
}

function invalid(message: string): StoreProblem {
  return new StoreProblem('InvalidArgument', 400, message)
}

/** The path and query of an operation, written anew from its parts. */
export function targetOf({
  bucket,
  key,
  parameters,
}: Pick<Operation, 'bucket' | 'key' | 'parameters'>): string {
  const path = bucket === '' ? '/' : `/${bucket}${key === '' ? '' : `/${encodePath(key)}`}`
  const query = Object.entries(parameters)
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
  return query === '' ? path : `${path}?${query}`
}

/** The headers of an operation, with the source of a copy written anew. */
export function headersOf({ headers, source }: Operation): Record<string, string> {
  return source === undefined
    ? { ...headers }
    : { ...headers, [COPY_SOURCE]: `${source.bucket}/${encodePath(source.key)}` }
}

function encodePath(key: string): string {
  return key.split('/').map(encode).join('/')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Returns every permission that the operation needs. */
export function wishesOf(operation: Operation, account: string): AuthorizationRequest[] {
  const { kind, bucket, key, parameters, source } = operation
  const context = { 'aws:ResourceAccount': account }
  const own: AuthorizationRequest =
    bucket === ''
      ? { action: kind.permission, resource: '*' }
      : {
          action: kind.permission,
          resource: arnOf({ bucket, key: kind.name === 'DeleteObjects' ? '*' : key }),
          context: { ...context, ...listContext(parameters) },
        }
  if (source === undefined) return [own]
  return [{ action: 's3:GetObject', resource: arnOf(source), context }, own]
}

function listContext({ prefix, delimiter }: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...(prefix === undefined ? {} : { 's3:prefix': prefix }),
    ...(delimiter === undefined ? {} : { 's3:delimiter': delimiter }),
  }
}

/** Returns the permission to list: without it a caller must not learn that an object does not exist. */
export function listingWish({ bucket, key }: ObjectName): AuthorizationRequest {
  return { action: 's3:ListBucket', resource: arnOf({ bucket, key: '' }), context: { 's3:prefix': key } }
}

function arnOf({ bucket, key }: ObjectName): string {
  return `arn:aws:s3:::${bucket}${key === '' ? '' : `/${key}`}`
}

export function hasCondition({ headers }: Operation): boolean {
  return CONDITIONS.some((name) => headers[name] !== undefined)
}

/** Returns the operation as a server that ignores conditions sees it. */
export function withoutConditions(operation: Operation): Operation {
  const headers = Object.entries(operation.headers).filter(([name]) => !CONDITIONS.includes(name))
  return { ...operation, headers: Object.fromEntries(headers) }
}
