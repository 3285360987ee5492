import { layout } from '../layout'
import type { S3Place } from './place'

/**
 * What the machine of one attempt may do: read the job's part of the store and the runner; write what the runner writes by
 * docs/runner-protocol.md, which is in no other attempt's place. As a session policy it can only take away from a role's rights.
 */
export function grantPolicy(
  place: S3Place,
  { jobId, attempt }: { jobId: string; attempt: number },
): { Version: string; Statement: object[] } {
  const bucket = `arn:${partitionOf(place)}:s3:::${place.bucket}`
  const at = (key: string): string => `${bucket}/${place.prefix}${key}`
  const own = [
    at(`${layout.attempt(jobId, attempt)}*`),
    at(`${layout.checkpoints(jobId)}*-${attempt}/*`),
    // For runners of before, which running jobs still have.
    at(`${layout.artifacts(jobId)}*`),
  ]
  const allow = (Action: string[], Resource: string[], Condition?: object): object => ({
    ...{ Effect: 'Allow', Action, Resource },
    ...(Condition === undefined ? {} : { Condition }),
  })
  return {
    Version: '2012-10-17',
    Statement: [
      allow(['s3:GetObject'], [at(`${layout.job(jobId)}*`), at('runners/*')]),
      allow(
        ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'],
        own,
      ),
      // Without it, what is not there looks as if it were forbidden.
      allow(['s3:ListBucket'], [bucket], {
        StringLike: { 's3:prefix': [`${place.prefix}${layout.job(jobId)}*`] },
      }),
    ],
  }
}

function partitionOf({ region = '', endpoint }: S3Place): string {
  if (endpoint !== undefined) return 'aws'
  if (region.startsWith('cn-')) return 'aws-cn'
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws'
}
