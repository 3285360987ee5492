import type { AssumeRoleCommandOutput, STSClient } from '@aws-sdk/client-sts'
import type { Grant } from '../../core/grants'
import { HOUR_MS, SECOND_MS } from '../../core/time/time'
import { withoutEnd } from '../../core/trim'
import type { Granter, GrantRequest } from '../grants'
import { StoreError } from '../store'
import { requestHandler } from '../../network/aws'
import { explainingSignIn } from '../../network/sign-in'
import { readS3Environment } from './config'
import { s3ErrorOf } from './errors'
import { grantPolicies } from './grant-policy'
import type { S3Place } from './place'

/** The longest possible session of a role, and of a role assumed by another role. */
const SESSION_MS_MAX = 12 * HOUR_MS
const CHAINED_SESSION_MS_MAX = HOUR_MS
/** The token service's minimum. */
const SESSION_MS_MIN = 900 * SECOND_MS
/** Watches wait for the answer, and callers retry. */
const CONNECT_MS = 2 * SECOND_MS
const ANSWER_MS = 5 * SECOND_MS
const TRIES = 2

export interface S3GrantOptions {
  /**
   * The role for jobs' machines, with the permissions of any job in the bucket. Without one, the keys of this process are narrowed, which
   * the token service supports for a user's keys and not for a role's.
   */
  roleArn?: string | undefined
  /** Keys that the operator created for machines, for servers without a token service. They are passed on unchanged. */
  keys?: { keyId: string; secret: string } | undefined
}

export function makeS3Granter(place: S3Place, { roleArn, keys }: S3GrantOptions): Granter {
  if (keys === undefined) return new S3Granter(place, roleArn)
  const grant = { ...keys, sessionToken: null, expiresAtMs: null }
  return { durationMsMax: Infinity, grant: async () => grant }
}

/** Grants of the AWS token service, or of a server with a compatible one (MinIO, Ceph): temporary keys, narrowed to one attempt. */
class S3Granter implements Granter {
  readonly #place: S3Place
  readonly #roleArn: string | undefined
  #client: Promise<STSClient> | undefined
  #durationMsMax = SESSION_MS_MAX
  #clockOffsetMs: number | undefined

  constructor(place: S3Place, roleArn: string | undefined) {
    this.#place = place
    this.#roleArn = roleArn
  }

  /** Twelve hours, until the token service reports a lower limit. */
  get durationMsMax(): number {
    return this.#durationMsMax
  }

  get clockOffsetMs(): number | undefined {
    return this.#clockOffsetMs
  }

  async grant(wish: GrantRequest): Promise<Grant> {
    const durationMs = Math.max(SESSION_MS_MIN, Math.min(wish.durationMs, this.#durationMsMax))
    try {
      return await this.#ask(wish, durationMs)
    } catch (error) {
      if (!isTooLong(error) || durationMs <= CHAINED_SESSION_MS_MAX) throw this.#explained(error)
    }
    // The role's own limit may be lower; every role allows an hour.
    this.#durationMsMax = CHAINED_SESSION_MS_MAX
    return this.#ask(wish, CHAINED_SESSION_MS_MAX).catch((error: unknown) => {
      throw this.#explained(error)
    })
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    ;(await client)?.destroy()
  }

  async #ask({ jobId, attempt }: GrantRequest, durationMs: number): Promise<Grant> {
    const sts = await import('@aws-sdk/client-sts')
    this.#client ??= Promise.resolve(explainingSignIn(new sts.STSClient(this.#clientConfig())))
    const client = await this.#client
    const askFor = (Policy: string) => {
      const input = { DurationSeconds: Math.floor(durationMs / SECOND_MS), Policy }
      return this.#roleArn === undefined
        ? client.send(new sts.GetFederationTokenCommand({ ...input, Name: nameOf(jobId, attempt, 32) }))
        : client.send(
            new sts.AssumeRoleCommand({
              ...input,
              RoleArn: this.#roleArn,
              RoleSessionName: nameOf(jobId, attempt, 64),
            }),
          )
    }
    const [policy, wider] = grantPolicies(this.#place, { jobId, attempt, roleArn: this.#roleArn })
    const answer = await askFor(policy!).catch((error: unknown) => {
      // The service also limits the policy in a packed form, whose size only it knows.
      if (wider === undefined || (error as Error).name !== 'PackedPolicyTooLargeException') throw error
      return askFor(wider)
    })
    // The SDK compares the date of each answer with the clock, and corrects differences of minutes.
    this.#clockOffsetMs = client.config.systemClockOffset
    return toGrant(answer)
  }

  #clientConfig() {
    const { region, endpoint } = this.#place
    // Another vendor's server has its own token service at the same address.
    const own = readS3Environment().tokenEndpoint ?? endpoint
    return {
      region: region ?? 'us-east-1',
      maxAttempts: TRIES,
      requestHandler: requestHandler({ connectMs: CONNECT_MS, answerMs: ANSWER_MS }),
      endpoint: own,
    }
  }

  #explained(error: unknown): StoreError {
    const told = s3ErrorOf(error, 'get credentials for machines from the token service')
    if (told.isTransient) return told
    const { message } = error as Error
    const isOfRoot = /root account/i.test(message)
    const remedy = isOfRoot
      ? 'Give the workers the keys of a user or a role instead of those of the root account.'
      : this.#roleArn === undefined
        ? 'Name a role for machines in CRUCIBLE_GRANT_ROLE (`crucible setup aws` makes one and prints the setting), or run workers with the keys of a user who may call sts:GetFederationToken.'
        : `Let Crucible take on ${this.#roleArn} (sts:AssumeRole, and the role's trust policy).`
    // The store's remedies for permissions do not apply here.
    const why = withoutEnd(message, '.')
    return new StoreError(`The token service gives no credentials for machines: ${why}. ${remedy}`, {
      isTransient: false,
      code: told.code,
      cause: error,
    })
  }
}

function toGrant({ Credentials: told }: Pick<AssumeRoleCommandOutput, 'Credentials'>): Grant {
  if (!told?.AccessKeyId || !told.SecretAccessKey || !told.SessionToken || !told.Expiration)
    throw new StoreError('The token service gave no credentials.', { isTransient: true })
  return {
    keyId: told.AccessKeyId,
    secret: told.SecretAccessKey,
    sessionToken: told.SessionToken,
    expiresAtMs: told.Expiration.getTime(),
  }
}

/** The account's logs show this name. */
function nameOf(jobId: string, attempt: number, length: number): string {
  const end = `-${attempt}`
  return `crucible-${jobId}`.slice(0, length - end.length) + end
}

/** Detects the role's own limit, or that of a role assumed by a role; only the message distinguishes them. */
function isTooLong(error: unknown): boolean {
  const { name, message } = error as Error
  return name === 'ValidationError' && /DurationSeconds/i.test(message)
}
