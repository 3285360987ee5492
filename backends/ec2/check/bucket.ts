import { withoutEnd } from '../../../core/trim'
import { randomUUID } from 'node:crypto'
import type { Problem } from '../../backend'
import type { Bucket } from '../sdk/api'
import type { Host } from '../host'

const REMOVE_LIMIT_MS = 5_000

/** Checks whether the store is in the machines' Region and honours conditional writes, on which checkpoints and records depend. */
export async function checkBucket(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const { storeUrl } = host.deps
  if (storeUrl === undefined || !storeUrl.startsWith('s3://')) return []
  const { bucket, prefix } = placeOf(storeUrl)
  const region = await host.api.account.bucketRegion(bucket, signal)
  if (region === undefined) {
    const remedy = `Run: aws s3 mb s3://${bucket.name} --region ${host.config.regions[0]}; or set CRUCIBLE_STORE.`
    return [{ severity: 'error', message: `there is no bucket ${bucket.name}`, remedy, failure: 'invalid' }]
  }
  const real = bucket.endpoint === undefined ? { ...bucket, region } : bucket
  return [...far(host, bucket, region), ...(await checkPutIfAbsent(host, { bucket: real, prefix }, signal))]
}

/**
 * Returns the problem of a bucket in another Region. Only an AWS bucket has a Region. Store and runner find it anywhere, through a
 * redirect.
 */
function far({ config }: Host, bucket: Bucket, region: string): Problem[] {
  if (bucket.endpoint !== undefined) return []
  const url = `s3://${bucket.name}?region=${region}`
  const isTold = bucket.region === undefined || bucket.region === region
  if (!config.regions.includes(region))
    return [
      {
        severity: 'warning',
        message: `the bucket ${bucket.name} is in ${region}, the machines are in ${config.regions.join(', ')}: traffic between them is slow and costs money`,
        remedy: `Use a bucket in ${config.regions[0]}${isTold ? '' : `; until then set CRUCIBLE_STORE to ${url}`}.`,
      },
    ]
  if (isTold) return []
  return [
    {
      severity: 'warning',
      message: `the bucket ${bucket.name} is in ${region}, but CRUCIBLE_STORE or AWS_REGION names ${bucket.region}: every request is redirected`,
      remedy: `Write its Region into CRUCIBLE_STORE: ${url}.`,
    },
  ]
}

/** Two writers of one key: the second one must be refused. */
async function checkPutIfAbsent(
  { api }: Host,
  { bucket, prefix }: { bucket: Bucket; prefix: string },
  signal: AbortSignal,
): Promise<Problem[]> {
  const key = `${prefix}probes/${randomUUID()}`
  try {
    const isFirst = await api.account.putIfAbsent(bucket, key, signal)
    const isSecond = await api.account.putIfAbsent(bucket, key, signal)
    if (isFirst && !isSecond) return []
  } finally {
    // The caller may have aborted meanwhile, so the deletion has its own signal.
    await api.account.deleteObject(bucket, key, AbortSignal.timeout(REMOVE_LIMIT_MS)).catch(() => undefined)
  }
  return [
    {
      severity: 'error',
      message: `the bucket ${bucket.name} does not honour conditional writes (If-None-Match): two writers both created the same key`,
      remedy: 'Use a store that honours If-None-Match on PUT, as S3 does.',
      failure: 'invalid',
    },
  ]
}

/** `s3://bucket/prefix?region=...&endpoint=...` (docs/reference/runner-protocol-store.md). */
export function placeOf(storeUrl: string): { bucket: Bucket; prefix: string } {
  const { host: name, pathname, searchParams } = new URL(storeUrl)
  const [region, endpoint] = [searchParams.get('region'), searchParams.get('endpoint')]
  const prefix = withoutEnd(decodeURIComponent(pathname).replace(/^\/+/, ''), '/')
  return {
    bucket: {
      name,
      region: region === null ? undefined : region,
      endpoint: endpoint === null ? undefined : endpoint,
    },
    prefix: prefix === '' ? '' : `${prefix}/`,
  }
}
