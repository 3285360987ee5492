/** The operations of the object store that the front knows, with everything that a request for one may contain. */

export type Place = 'account' | 'bucket' | 'object'

export interface OperationKind {
  /** S3's name: `PutObject`. */
  name: string
  method: string
  place: Place
  /** The query parameter without a value that selects the operation: `uploads`. */
  flag?: string
  /** Parameters that the operation needs, which select it too: `uploadId`. */
  needs?: readonly string[]
  /** Whether the source of a copy selects it. */
  copies?: boolean
  /** Further parameters that it may have. */
  may?: readonly string[]
  /** Headers that it may have, in addition to those of every request. */
  headers?: readonly string[]
  /** Headers that it may have and that are not sent on. */
  ignores?: readonly string[]
  /** Whether it may have headers `x-amz-meta-...`. */
  hasMetadata?: boolean
  /** Body: an object's content, or a document that the front reads; none if missing. */
  body?: 'content' | 'document'
  /** Whether the server takes the document only with a checksum, which the front makes of what it wrote. */
  needsChecksum?: boolean
  /** IAM's action. */
  permission: string
  /** The right to the KMS key of an encrypted bucket that the operation needs. */
  usesKey?: 'kms:GenerateDataKey' | 'kms:Decrypt'
}

const CHECKSUMS = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'].map((name) => `x-amz-checksum-${name}`)
const DESCRIPTION = [
  'content-type',
  'content-encoding',
  'content-disposition',
  'content-language',
  'cache-control',
  'expires',
]
const CONTENT = [
  'content-length',
  'content-md5',
  'x-amz-sdk-checksum-algorithm',
  'x-amz-trailer',
  'x-amz-decoded-content-length',
  ...CHECKSUMS,
]
/** The checks of a document, which is written anew. */
const DOCUMENT = [...CONTENT, 'content-type']
/** A property of rules that this cloud never carries out. */
const LIFECYCLE = ['x-amz-transition-default-minimum-object-size']
const READING = [
  'range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'x-amz-checksum-mode',
]
/** Headers for conditional writes. */
export const CONDITIONS: readonly string[] = ['if-none-match', 'if-match']
const COPYING = [
  'x-amz-copy-source-if-match',
  'x-amz-copy-source-if-none-match',
  'x-amz-copy-source-if-modified-since',
  'x-amz-copy-source-if-unmodified-since',
]
const PAGING = ['prefix', 'delimiter', 'encoding-type']

const OBJECTS: readonly OperationKind[] = [
  {
    name: 'GetObject',
    method: 'GET',
    place: 'object',
    may: ['partNumber'],
    headers: READING,
    permission: 's3:GetObject',
    usesKey: 'kms:Decrypt',
  },
  {
    name: 'HeadObject',
    method: 'HEAD',
    place: 'object',
    may: ['partNumber'],
    headers: READING,
    permission: 's3:GetObject',
  },
  {
    name: 'PutObject',
    method: 'PUT',
    place: 'object',
    headers: [...DESCRIPTION, ...CONTENT, ...CONDITIONS],
    hasMetadata: true,
    body: 'content',
    permission: 's3:PutObject',
    usesKey: 'kms:GenerateDataKey',
  },
  {
    name: 'CopyObject',
    method: 'PUT',
    place: 'object',
    copies: true,
    headers: [
      ...DESCRIPTION,
      ...COPYING,
      ...CONDITIONS,
      'x-amz-metadata-directive',
      'x-amz-checksum-algorithm',
    ],
    hasMetadata: true,
    permission: 's3:PutObject',
    usesKey: 'kms:GenerateDataKey',
  },
  {
    name: 'DeleteObject',
    method: 'DELETE',
    place: 'object',
    headers: ['if-match'],
    permission: 's3:DeleteObject',
  },
]

const UPLOADS: readonly OperationKind[] = [
  {
    name: 'CreateMultipartUpload',
    method: 'POST',
    place: 'object',
    flag: 'uploads',
    headers: [...DESCRIPTION, 'x-amz-checksum-algorithm', 'x-amz-checksum-type'],
    hasMetadata: true,
    permission: 's3:PutObject',
    usesKey: 'kms:GenerateDataKey',
  },
  {
    name: 'UploadPart',
    method: 'PUT',
    place: 'object',
    needs: ['uploadId', 'partNumber'],
    headers: ['content-type', ...CONTENT],
    body: 'content',
    permission: 's3:PutObject',
    usesKey: 'kms:Decrypt',
  },
  {
    name: 'UploadPartCopy',
    method: 'PUT',
    place: 'object',
    needs: ['uploadId', 'partNumber'],
    copies: true,
    headers: [...COPYING, 'x-amz-copy-source-range'],
    permission: 's3:PutObject',
    usesKey: 'kms:Decrypt',
  },
  {
    name: 'CompleteMultipartUpload',
    method: 'POST',
    place: 'object',
    needs: ['uploadId'],
    headers: [...CHECKSUMS, ...CONDITIONS, 'x-amz-checksum-type', 'x-amz-mp-object-size'],
    ignores: ['x-amz-sdk-checksum-algorithm'],
    body: 'document',
    permission: 's3:PutObject',
    usesKey: 'kms:Decrypt',
  },
  {
    name: 'AbortMultipartUpload',
    method: 'DELETE',
    place: 'object',
    needs: ['uploadId'],
    permission: 's3:AbortMultipartUpload',
  },
  {
    name: 'ListParts',
    method: 'GET',
    place: 'object',
    needs: ['uploadId'],
    may: ['max-parts', 'part-number-marker'],
    permission: 's3:ListMultipartUploadParts',
  },
]

const BUCKETS: readonly OperationKind[] = [
  {
    name: 'ListBuckets',
    method: 'GET',
    place: 'account',
    may: ['max-buckets', 'prefix', 'continuation-token'],
    permission: 's3:ListAllMyBuckets',
  },
  {
    name: 'CreateBucket',
    method: 'PUT',
    place: 'bucket',
    ignores: DOCUMENT,
    body: 'document',
    permission: 's3:CreateBucket',
  },
  { name: 'HeadBucket', method: 'HEAD', place: 'bucket', permission: 's3:ListBucket' },
  { name: 'DeleteBucket', method: 'DELETE', place: 'bucket', permission: 's3:DeleteBucket' },
  {
    name: 'ListObjects',
    method: 'GET',
    place: 'bucket',
    may: [...PAGING, 'max-keys', 'marker'],
    permission: 's3:ListBucket',
  },
  {
    name: 'ListObjectsV2',
    method: 'GET',
    place: 'bucket',
    needs: ['list-type'],
    may: [...PAGING, 'max-keys', 'start-after', 'continuation-token', 'fetch-owner'],
    permission: 's3:ListBucket',
  },
  {
    name: 'ListObjectVersions',
    method: 'GET',
    place: 'bucket',
    flag: 'versions',
    may: [...PAGING, 'max-keys', 'key-marker'],
    permission: 's3:ListBucketVersions',
  },
  {
    name: 'ListMultipartUploads',
    method: 'GET',
    place: 'bucket',
    flag: 'uploads',
    may: [...PAGING, 'max-uploads', 'key-marker', 'upload-id-marker'],
    permission: 's3:ListBucketMultipartUploads',
  },
  {
    name: 'DeleteObjects',
    method: 'POST',
    place: 'bucket',
    flag: 'delete',
    ignores: DOCUMENT,
    body: 'document',
    needsChecksum: true,
    permission: 's3:DeleteObject',
  },
]

/** Parts of a bucket's configuration that can be read and changed, with IAM's name where it is another one. */
const SETTINGS: Readonly<Record<string, string | undefined>> = {
  lifecycle: 'LifecycleConfiguration',
  encryption: 'EncryptionConfiguration',
  publicAccessBlock: 'BucketPublicAccessBlock',
  ownershipControls: 'BucketOwnershipControls',
  versioning: undefined,
  tagging: undefined,
  policy: undefined,
  cors: undefined,
  logging: undefined,
  notification: undefined,
  requestPayment: undefined,
}
/** Parts that can only be read. */
const READ_ONLY = [
  'location',
  'acl',
  'accelerate',
  'policyStatus',
  'replication',
  'object-lock',
  'website',
  'intelligent-tiering',
  'inventory',
  'metrics',
  'analytics',
]

/** Every operation, those with more conditions first. */
export const OPERATIONS: readonly OperationKind[] = [
  ...UPLOADS,
  ...OBJECTS,
  ...BUCKETS,
  ...Object.entries(SETTINGS).flatMap(([flag, name]) =>
    ['Get', 'Put', 'Delete'].map((verb) => setting(verb, flag, name)),
  ),
  ...READ_ONLY.map((flag) => setting('Get', flag, undefined)),
]

function setting(verb: string, flag: string, iamName: string | undefined): OperationKind {
  const name = `Bucket${flag[0]!.toUpperCase()}${flag.slice(1)}`
  return {
    name: `${verb}${name}`,
    method: verb.toUpperCase(),
    place: 'bucket',
    flag,
    ...(verb === 'Put' ? { body: 'document', ignores: [...DOCUMENT, ...LIFECYCLE] } : {}),
    // IAM has no actions for the removal of settings, except for policies and websites.
    permission: `s3:${verb === 'Delete' && flag !== 'policy' ? 'Put' : verb}${iamName ?? name}`,
  }
}
