import { CHECKPOINT_STEP_DIGITS } from '../../core/job/checkpoint'
import { partitionOf, PUBLIC_PARTITION } from '../../network/partitions'
import { layout } from '../layout'
import type { S3Place } from './place'

/** Pattern for the step at the beginning of a checkpoint's id (`checkpointId`). `?` matches one character. */
const ANY_STEP = '?'.repeat(CHECKPOINT_STEP_DIGITS)

const ACCOUNT_ROLE = /^arn:aws[\w-]*:iam::\d{12}:role\//

/**
 * Patterns for what a runner writes in the folder of its attempt (`artifacts/`, `beat.json`, `claim.json`, `last-words.txt`, `logs/`,
 * `outputs.json`, `restores.json`, `result.json`) and deletes (`secrets.sealed`). They are short, because a policy must be, and match no
 * document of the control plane: it ends the machines, and counts the money, that those name.
 */
const OF_RUNNER = ['??t*', '??s*', '??g*', 'be*', 'c*', 'sec*']
/** Limit of AWS on the policy of a session. */
const POLICY_CHARS_MAX = 2_048

interface GrantedAttempt {
  jobId: string
  attempt: number
  /** The role of the grant; missing for keys of a user. */
  roleArn?: string | undefined
}

/** The policies to ask for, the narrowest first. Long names of bucket and prefix leave only the one for the whole folder of the attempt. */
export function grantPolicies(place: S3Place, at: GrantedAttempt): string[] {
  const [narrow, wide] = [OF_RUNNER, ['*']].map((written) => JSON.stringify(grantPolicy(place, at, written)))
  return narrow!.length <= POLICY_CHARS_MAX ? [narrow!, wide!] : [wide!]
}

/**
 * The permissions for the machine of one attempt: read the job's part of the store and the runner; write the runner's documents of
 * docs/reference/runner-protocol.md, never in another attempt's place. A session policy can only restrict a role's permissions.
 *
 * `*` also matches `/`: each one here ends a prefix that ends with `/`, so that attempt 1 reaches neither attempt 10 nor a folder `x-1/`
 * inside a checkpoint of attempt 2.
 */
function grantPolicy(
  place: S3Place,
  { jobId, attempt, roleArn = '' }: GrantedAttempt,
  written: readonly string[],
): { Version: string; Statement: object[] } {
  const { name: ownPartition, dnsSuffix } = partitionOf(place.region ?? '')
  // AWS has more endpoints, such as those of private networks. A load balancer there may have another vendor's server behind it.
  const host = new URL(place.endpoint ?? `https://s3.${dnsSuffix}`).hostname
  const isHostOfAws = /(?:^|\.)s3[.-]/.test(host) && host.endsWith(`.${dnsSuffix}`)
  // A role in an account is one of AWS, whatever stands before its S3.
  const isAws = isHostOfAws || ACCOUNT_ROLE.test(roleArn)
  // Other servers write the ARNs of the public cloud.
  const name = isAws ? ownPartition : PUBLIC_PARTITION
  const bucket = `arn:${name}:s3:::${place.bucket}`
  const prefix = literal(place.prefix)
  const at = (key: string): string => `${bucket}/${prefix}${key}`
  const own = [
    ...written.map((pattern) => at(`${layout.attempt(jobId, attempt)}${pattern}`)),
    at(`${layout.checkpoints(jobId)}${ANY_STEP}-${attempt}/*`),
  ]
  const allow = (Action: string[], Resource: string[], Condition?: object): object => ({
    Effect: 'Allow',
    Action,
    Resource,
    Condition,
  })
  return {
    Version: '2012-10-17',
    Statement: [
      allow(['s3:GetObject'], [at(`${layout.job(jobId)}*`), at('runners/*')]),
      allow(
        ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'],
        own,
      ),
      // Without this permission, an absent object looks like a forbidden one.
      allow(['s3:ListBucket'], [bucket], {
        StringLike: { 's3:prefix': [`${prefix}${layout.job(jobId)}*`] },
      }),
      // For a bucket that is encrypted with a KMS key. The store does not know the key, which the role names, but S3 names bucket or object to it.
      // Other servers may refuse policies with actions of KMS.
      ...(isAws
        ? [
            allow(['kms:Decrypt', 'kms:GenerateDataKey'], ['*'], {
              StringLike: {
                'kms:ViaService': 's3.*',
                'kms:EncryptionContext:aws:s3:arn': [bucket, `${bucket}/${prefix}*`],
              },
            }),
          ]
        : []),
    ],
  }
}

/** Escapes the wildcards and variables of policies. */
function literal(text: string): string {
  return text.replace(/[*?$]/g, (each) => `\${${each}}`)
}
