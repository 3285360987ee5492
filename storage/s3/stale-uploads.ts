import { HOUR_MS } from '../../core/time'
import type { Bucket } from './s3-store'

/** No part of an upload that still goes on is this late. */
const STALE_AFTER_MS = 72 * HOUR_MS

/** Ends uploads under a prefix that were begun long ago and never finished; the number of those that it ended. */
export async function abortStaleUploads(
  { sdk, client, name: Bucket }: Bucket,
  { prefix, nowMs }: { prefix: string; nowMs: number },
): Promise<number> {
  let ended = 0
  let after: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {}
  for (;;) {
    const page = await client.send(new sdk.ListMultipartUploadsCommand({ Bucket, Prefix: prefix, ...after }))
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      if (Initiated === undefined || nowMs - Initiated.getTime() < STALE_AFTER_MS) continue
      await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
      ended++
    }
    if (page.IsTruncated !== true) return ended
    after = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
  }
}
