/** The bucket of a set-up: whether a name is free, and removal. The stack creates it and never deletes it. */
import * as s3 from '@aws-sdk/client-s3'
import type { Step } from '../../account'
import { hasCode } from '../errors'
import { AwsError } from '../sdk/api'
import { call } from '../sdk/errors'
import { isOurs, type RegionSetup } from './site'

export interface Bucket {
  exists: boolean
  /** Why it cannot be used. */
  obstacle?: string
}

/** Whether a bucket of this name exists, and whether it is usable. */
export async function bucketObstacle({ clients, region, bucket, signal }: RegionSetup): Promise<Bucket> {
  try {
    const { BucketRegion = region } = await call(signal, () =>
      clients.s3.send(new s3.HeadBucketCommand({ Bucket: bucket }), { abortSignal: signal }),
    )
    return BucketRegion === region ? { exists: true } : { exists: true, obstacle: elsewhere(BucketRegion) }
  } catch (error) {
    const status = error instanceof AwsError ? error.httpStatus : undefined
    if (status === 404) return { exists: false }
    if (status === 301 || status === 400) return { exists: true, obstacle: elsewhere('another Region') }
    if (status !== 403) throw error
    return {
      exists: true,
      obstacle:
        'belongs to another account, or you may not read it (s3:ListBucket): choose another name with --bucket',
    }
  }
}

const elsewhere = (region: string): string =>
  `is in ${region}: choose another name with --bucket, or its Region with --region`

/** Whether set-up created the bucket. */
export async function isOwnBucket(site: RegionSetup): Promise<boolean> {
  const { clients, bucket, prefix, signal } = site
  const { exists, obstacle } = await bucketObstacle(site)
  if (!exists || obstacle !== undefined) return false
  const command = new s3.GetBucketTaggingCommand({ Bucket: bucket })
  const tagging = await call(signal, () => clients.s3.send(command, { abortSignal: signal })).catch(
    (error: unknown) => {
      if (error instanceof AwsError && error.httpStatus === 404) return undefined
      throw error
    },
  )
  return isOurs(prefix, tagging?.TagSet)
}

/** Deletes the bucket if it is empty, or with its data if `hasData`. */
export async function removeBucket(site: RegionSetup, hasData: boolean): Promise<Omit<Step, 'part'>> {
  const { clients, signal, bucket: Bucket } = site
  const options = { abortSignal: signal }
  if (hasData) await empty(site)
  try {
    // S3 itself refuses to delete a bucket that has objects.
    await call(signal, () => clients.s3.send(new s3.DeleteBucketCommand({ Bucket }), options))
  } catch (error) {
    if (hasCode(error, 'BucketNotEmpty'))
      return {
        did: 'kept',
        reason: 'it has data: the jobs, their checkpoints and results; --with-data removes it, too',
      }
    if (!(error instanceof AwsError && error.httpStatus === 404)) throw error
  }
  return { did: 'removed' }
}

/** Deletes every object and every upload; a bucket of the template has no versions. */
async function empty({ clients, bucket: Bucket, signal }: RegionSetup): Promise<void> {
  const options = { abortSignal: signal }
  await call(signal, async () => {
    for await (const { Contents = [] } of s3.paginateListObjectsV2({ client: clients.s3 }, { Bucket })) {
      if (Contents.length === 0) continue
      const Objects = Contents.map(({ Key }) => ({ Key }))
      const command = new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } })
      const { Errors: [refused] = [] } = await clients.s3.send(command, options)
      // The request as a whole succeeds also where S3 refuses a key.
      if (refused !== undefined)
        throw new AwsError(`${refused.Key} cannot be deleted: ${refused.Message}`, {
          code: refused.Code ?? 'AccessDenied',
          reach: 'answered',
        })
    }
    for (;;) {
      const { Uploads = [] } = await clients.s3.send(new s3.ListMultipartUploadsCommand({ Bucket }), options)
      if (Uploads.length === 0) return
      for (const { Key, UploadId } of Uploads)
        await clients.s3
          .send(new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), options)
          .catch((error: Error) => {
            if (error.name !== 'NoSuchUpload') throw error
          })
    }
  })
}
