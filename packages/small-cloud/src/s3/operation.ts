/** The operation of a request to the object store, and the permissions that it needs. */
import type { IncomingMessage } from 'node:http'
import type { AuthorizationRequest } from '../identity/policy'

export interface Operation {
  /** S3's name: `PutObject`. */
  name: string
  /** Empty for a request without a bucket. */
  bucket: string
  /** Empty for a request on the bucket itself. */
  key: string
  /** The part of the bucket's configuration: `lifecycle`. */
  subresource: string | undefined
  query: URLSearchParams
  isMutating: boolean
}

/** Query parameters that determine the operation, most specific first. Other parameters, such as `prefix`, only modify it. */
const SUBRESOURCES = [
  'uploads',
  'uploadId',
  'delete',
  'location',
  'lifecycle',
  'encryption',
  'publicAccessBlock',
  'ownershipControls',
  'versioning',
  'versions',
  'tagging',
  'policy',
  'policyStatus',
  'acl',
  'cors',
  'logging',
  'notification',
  'accelerate',
  'requestPayment',
  'website',
  'replication',
  'intelligent-tiering',
  'inventory',
  'metrics',
  'analytics',
  'object-lock',
  'attributes',
  'retention',
  'legal-hold',
  'restore',
  'select',
] as const

export function operationOf({ method = 'GET', url = '/' }: IncomingMessage): Operation {
  const { pathname, searchParams: query } = new URL(url, 'http://any')
  const [, bucket = '', ...rest] = pathname.split('/')
  const key = decodeURIComponent(rest.join('/'))
  const subresource = SUBRESOURCES.find((name) => query.has(name))
  const name = nameOf(method, { bucket, key, subresource, query })
  const isMutating = !['GET', 'HEAD'].includes(method)
  return { name, bucket: decodeURIComponent(bucket), key, subresource, query, isMutating }
}

function nameOf(
  method: string,
  { bucket, key, subresource, query }: Pick<Operation, 'bucket' | 'key' | 'subresource' | 'query'>,
): string {
  if (bucket === '') return 'ListBuckets'
  if (key !== '') return objectOperation(method, subresource)
  const verb = { GET: 'Get', PUT: 'Put', DELETE: 'Delete', HEAD: 'Head', POST: 'Post' }[method] ?? method
  if (subresource === 'uploads') return 'ListMultipartUploads'
  if (subresource === 'versions') return 'ListObjectVersions'
  if (subresource === 'delete') return 'DeleteObjects'
  if (subresource !== undefined) return `${verb}Bucket${subresource[0]!.toUpperCase()}${subresource.slice(1)}`
  if (method === 'GET') return query.get('list-type') === '2' ? 'ListObjectsV2' : 'ListObjects'
  return method === 'PUT' ? 'CreateBucket' : `${verb}Bucket`
}

function objectOperation(method: string, subresource: string | undefined): string {
  if (subresource === 'uploads') return 'CreateMultipartUpload'
  if (subresource === 'uploadId') {
    const names: Record<string, string> = {
      PUT: 'UploadPart',
      POST: 'CompleteMultipartUpload',
      DELETE: 'AbortMultipartUpload',
    }
    return names[method] ?? 'ListParts'
  }
  const verb = { GET: 'Get', PUT: 'Put', DELETE: 'Delete', HEAD: 'Head', POST: 'Post' }[method] ?? method
  return `${verb}Object${subresource === undefined ? '' : subresource[0]!.toUpperCase() + subresource.slice(1)}`
}

const PERMISSIONS: Readonly<Record<string, string>> = {
  ListBuckets: 's3:ListAllMyBuckets',
  ListObjects: 's3:ListBucket',
  ListObjectsV2: 's3:ListBucket',
  HeadBucket: 's3:ListBucket',
  ListObjectVersions: 's3:ListBucketVersions',
  ListMultipartUploads: 's3:ListBucketMultipartUploads',
  HeadObject: 's3:GetObject',
  CreateMultipartUpload: 's3:PutObject',
  UploadPart: 's3:PutObject',
  CompleteMultipartUpload: 's3:PutObject',
  ListParts: 's3:ListMultipartUploadParts',
  // The call concerns many objects at once: the store checks each one, and only a caller who may delete all of them gets this far.
  DeleteObjects: 's3:DeleteObject',
  GetBucketLifecycle: 's3:GetLifecycleConfiguration',
  PutBucketLifecycle: 's3:PutLifecycleConfiguration',
  DeleteBucketLifecycle: 's3:PutLifecycleConfiguration',
  GetBucketEncryption: 's3:GetEncryptionConfiguration',
  PutBucketEncryption: 's3:PutEncryptionConfiguration',
  DeleteBucketEncryption: 's3:PutEncryptionConfiguration',
  GetBucketPublicAccessBlock: 's3:GetBucketPublicAccessBlock',
  DeleteBucketPublicAccessBlock: 's3:PutBucketPublicAccessBlock',
  DeleteBucketTagging: 's3:PutBucketTagging',
}

/** Returns the permission that the operation needs. */
export function wishOf({ name, bucket, key, query }: Operation, account: string): AuthorizationRequest {
  const action = PERMISSIONS[name] ?? `s3:${name}`
  if (bucket === '') return { action, resource: '*' }
  const objects = key !== '' ? `/${key}` : name === 'DeleteObjects' ? '/*' : ''
  const prefix = query.get('prefix')
  const delimiter = query.get('delimiter')
  return {
    action,
    resource: `arn:aws:s3:::${bucket}${objects}`,
    context: {
      'aws:ResourceAccount': account,
      ...(prefix === null ? {} : { 's3:prefix': prefix }),
      ...(delimiter === null ? {} : { 's3:delimiter': delimiter }),
    },
  }
}

/** Returns the `bucket/key` that an operation copies from. */
export function copySourceOf({ headers }: IncomingMessage): string | undefined {
  const [source] = [headers['x-amz-copy-source']].flat()
  return source === undefined ? undefined : decodeURIComponent(source.split('?')[0]!).replace(/^\//, '')
}

/** Returns the permission for copying from a source. */
export function readingWish(source: string, account: string): AuthorizationRequest {
  return {
    action: 's3:GetObject',
    resource: `arn:aws:s3:::${source}`,
    context: { 'aws:ResourceAccount': account },
  }
}

/** Returns the permission to list: without it a caller must not learn that an object does not exist. */
export function listingWish({ bucket, key }: Operation): AuthorizationRequest {
  return { action: 's3:ListBucket', resource: `arn:aws:s3:::${bucket}`, context: { 's3:prefix': key } }
}

/** Headers for conditional writes. */
export const CONDITIONS = ['if-none-match', 'if-match'] as const

export function hasCondition({ headers }: IncomingMessage): boolean {
  return CONDITIONS.some((name) => headers[name] !== undefined)
}
