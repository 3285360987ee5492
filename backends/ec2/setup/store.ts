import * as s3 from '@aws-sdk/client-s3'
import { AwsError } from '../sdk/api'
import { hasCode } from '../errors'
import { call } from '../sdk/errors'
import { insist, repeat, settle } from './clients'
import { isOurs, isSame, ours, tagsFor, type Driver, type Found, type Site } from './driver'
import { policyText, type BucketPiece } from './pieces'

const BLOCKED = {
  BlockPublicAcls: true,
  IgnorePublicAcls: true,
  BlockPublicPolicy: true,
  RestrictPublicBuckets: true,
}
const ENCRYPTION = { ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } } as const
/** The Region whose buckets are created without naming a place. */
const FIRST_REGION = 'us-east-1'
const DELETE_AT_ONCE = 1000

export function lifecycleOf({ abortUploadsAfterDays, expireAfterDays }: BucketPiece): s3.LifecycleRule[] {
  return [
    {
      ...{ ID: 'abort-uploads', Status: 'Enabled', Filter: { Prefix: '' } },
      AbortIncompleteMultipartUpload: { DaysAfterInitiation: abortUploadsAfterDays },
    },
    ...Object.entries(expireAfterDays).map(([Prefix, Days]): s3.LifecycleRule => ({
      ...{ ID: `expire-${Prefix.replace(/\W/g, '')}`, Status: 'Enabled', Filter: { Prefix } },
      Expiration: { Days },
    })),
  ]
}

type Way = { exists: false } | { exists: true; obstacle?: string }

/** Whether a bucket of this name exists, and whether it is usable. */
async function look({ clients, choices, signal }: Site, Bucket: string): Promise<Way> {
  try {
    const { BucketRegion } = await repeat(
      () => clients.s3.send(new s3.HeadBucketCommand({ Bucket }), { abortSignal: signal }),
      signal,
    )
    const isHere = BucketRegion === undefined || BucketRegion === choices.region
    return isHere ? { exists: true } : { exists: true, obstacle: elsewhere(BucketRegion) }
  } catch (error) {
    if (!(error instanceof AwsError)) throw error
    if (error.httpStatus === 404) return { exists: false }
    if (error.httpStatus === 301 || error.httpStatus === 400) return { exists: true, obstacle: elsewhere() }
    if (error.httpStatus !== 403) throw error
    return {
      exists: true,
      obstacle:
        'belongs to somebody else, or you may not look at it (s3:ListBucket): choose another name with --bucket',
    }
  }
}

const elsewhere = (region = 'another Region'): string =>
  `is in ${region}: choose another name with --bucket, or its Region with --region`

/** A setting of a bucket; nothing if it was never set. */
async function setting<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return repeat(send, signal).catch((error: unknown) => {
    if (error instanceof AwsError && error.httpStatus === 404) return undefined
    throw error
  })
}

async function tagsOf({ clients, signal }: Site, Bucket: string): Promise<s3.Tag[]> {
  const told = await setting(
    () => clients.s3.send(new s3.GetBucketTaggingCommand({ Bucket }), { abortSignal: signal }),
    signal,
  )
  return told?.TagSet ?? []
}

async function differences(piece: BucketPiece, { clients, signal }: Site): Promise<string[]> {
  const Bucket = piece.name
  const options = { abortSignal: signal }
  const { s3: client } = clients
  const [encryption, block, lifecycle, policy] = await Promise.all([
    setting(() => client.send(new s3.GetBucketEncryptionCommand({ Bucket }), options), signal),
    setting(() => client.send(new s3.GetPublicAccessBlockCommand({ Bucket }), options), signal),
    setting(() => client.send(new s3.GetBucketLifecycleConfigurationCommand({ Bucket }), options), signal),
    setting(() => client.send(new s3.GetBucketPolicyCommand({ Bucket }), options), signal),
  ])
  const isEncrypted = encryption?.ServerSideEncryptionConfiguration?.Rules?.some(
    ({ ApplyServerSideEncryptionByDefault: by }) => by?.SSEAlgorithm !== undefined,
  )
  const rules = (lifecycle?.Rules ?? []).map(
    ({ ID, Status, Expiration, AbortIncompleteMultipartUpload: abort }) => [
      ...[ID, Status, Expiration?.Days, abort?.DaysAfterInitiation],
    ],
  )
  const wanted = lifecycleOf(piece).map(
    ({ ID, Status, Expiration, AbortIncompleteMultipartUpload: abort }) => [
      ...[ID, Status, Expiration?.Days, abort?.DaysAfterInitiation],
    ],
  )
  return [
    ...(isEncrypted === true ? [] : ['is not encrypted']),
    ...(isSame(block?.PublicAccessBlockConfiguration, BLOCKED) ? [] : ['may become public']),
    ...(isSame(rules.sort(), wanted.sort()) ? [] : ['has another lifecycle']),
    ...(isSame(JSON.parse(policy?.Policy ?? 'null'), JSON.parse(policyText(piece.policy)))
      ? []
      : ['has another policy: traffic in clear is not refused']),
  ]
}

type Send = (client: s3.S3Client, options: { abortSignal: AbortSignal }) => Promise<unknown>

export const buckets: Driver<BucketPiece> = {
  async read(piece, site): Promise<Found | undefined> {
    const way = await look(site, piece.name)
    if (!way.exists) return undefined
    if (way.obstacle !== undefined) return { ...ours(piece.name, [way.obstacle]), owner: 'taken' }
    const tags = await tagsOf(site, piece.name)
    // A bucket that is not ours is used as it is, because its owner named it. A new one that a kill left untagged is empty.
    if (!isOurs(site, tags) && !(tags.length === 0 && (await isFresh(site, piece.name))))
      return { ...ours(piece.name, await differences(piece, site)), owner: 'theirs' }
    const untagged = isOurs(site, tags) ? [] : ['is not marked as made by this set-up']
    return ours(piece.name, [...untagged, ...(await differences(piece, site))])
  },
  async make({ name, region }, { clients, signal }) {
    const place =
      region === FIRST_REGION
        ? {}
        : { CreateBucketConfiguration: { LocationConstraint: region as s3.BucketLocationConstraint } }
    const command = new s3.CreateBucketCommand({ Bucket: name, ...place })
    await insist(() => clients.s3.send(command, { abortSignal: signal }), {
      ...{ signal, until: /OperationAborted/ },
    }).catch((error: unknown) => {
      if (!hasCode(error, 'BucketAlreadyOwnedByYou')) throw error
    })
    return name
  },
  async mend(piece, Bucket, site) {
    const { clients, signal } = site
    const put = async (send: Send): Promise<void> => {
      await settle(() => send(clients.s3, { abortSignal: signal }), signal)
    }
    await put((client, options) =>
      client.send(new s3.PutBucketTaggingCommand({ Bucket, Tagging: { TagSet: tagsFor(site) } }), options),
    )
    await put((client, options) =>
      client.send(
        new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: BLOCKED }),
        options,
      ),
    )
    await put((client, options) =>
      client.send(
        new s3.PutBucketEncryptionCommand({
          Bucket,
          ServerSideEncryptionConfiguration: { Rules: [ENCRYPTION] },
        }),
        options,
      ),
    )
    await put((client, options) =>
      client.send(
        new s3.PutBucketLifecycleConfigurationCommand({
          Bucket,
          LifecycleConfiguration: { Rules: lifecycleOf(piece) },
        }),
        options,
      ),
    )
    await put((client, options) =>
      client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy: policyText(piece.policy) }), options),
    )
  },
  async all(_, site) {
    const { bucket } = site.choices
    const way = await look(site, bucket)
    if (!way.exists || way.obstacle !== undefined) return []
    return isOurs(site, await tagsOf(site, bucket)) ? [{ id: bucket, name: bucket }] : []
  },
  async remove(Bucket, site) {
    const { clients, signal, hasData } = site
    if (hasData) await empty(Bucket, site)
    else if (!(await isFresh(site, Bucket)))
      return { kept: 'it has data: the jobs, their checkpoints and results; --with-data removes it, too' }
    try {
      await repeat(
        () => clients.s3.send(new s3.DeleteBucketCommand({ Bucket }), { abortSignal: signal }),
        signal,
      )
    } catch (error) {
      if (hasCode(error, 'BucketNotEmpty')) return { kept: 'something was put into it meanwhile' }
      if (!(error instanceof AwsError && error.httpStatus === 404)) throw error
    }
    return undefined
  },
}

async function isFresh({ clients, signal }: Site, Bucket: string): Promise<boolean> {
  const command = new s3.ListObjectsV2Command({ Bucket, MaxKeys: 1 })
  const { Contents } = await repeat(() => clients.s3.send(command, { abortSignal: signal }), signal)
  return (Contents ?? []).length === 0
}

/** Every object and every upload; a bucket that we created has no versions. */
async function empty(Bucket: string, { clients, signal }: Site): Promise<void> {
  const options = { abortSignal: signal }
  for (;;) {
    const { Contents = [] } = await repeat(
      () => clients.s3.send(new s3.ListObjectsV2Command({ Bucket, MaxKeys: DELETE_AT_ONCE }), options),
      signal,
    )
    if (Contents.length === 0) break
    const Objects = Contents.map(({ Key }) => ({ Key }))
    const { Errors: [refused] = [] } = await repeat(
      () =>
        clients.s3.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }), options),
      signal,
    )
    // The request succeeded as a whole.
    if (refused !== undefined)
      throw new AwsError(`${refused.Key} cannot be deleted: ${refused.Message}`, {
        ...{ code: refused.Code ?? 'AccessDenied', reach: 'answered' },
      })
  }
  let after: Pick<s3.ListMultipartUploadsRequest, 'KeyMarker' | 'UploadIdMarker'> | undefined = {}
  while (after !== undefined) {
    const command: s3.ListMultipartUploadsCommand = new s3.ListMultipartUploadsCommand({ Bucket, ...after })
    const page: s3.ListMultipartUploadsCommandOutput = await repeat(
      () => clients.s3.send(command, options),
      signal,
    )
    for (const { Key, UploadId } of page.Uploads ?? [])
      await call(signal, () =>
        clients.s3.send(new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), options),
      ).catch((error: unknown) => {
        if (!hasCode(error, 'NoSuchUpload')) throw error
      })
    const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page
    after = page.IsTruncated === true ? { KeyMarker, UploadIdMarker } : undefined
  }
}
