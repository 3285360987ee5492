import { EC2Client } from '@aws-sdk/client-ec2'
import { IAMClient } from '@aws-sdk/client-iam'
import { S3Client } from '@aws-sdk/client-s3'
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas'
import { STSClient } from '@aws-sdk/client-sts'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsError } from '../sdk/api'
import { silenceSdk } from '../config'
import { ec2Error } from '../errors'
import { call } from '../sdk/errors'
import { readPlan } from '../sdk/plan'

export interface Clients {
  ec2: EC2Client
  iam: IAMClient
  s3: S3Client
  sts: STSClient
  quotas: ServiceQuotasClient
  plan(signal: AbortSignal): Promise<'free' | 'paid'>
}

export interface Access {
  region: string
  profile?: string
  /** A server that replaces AWS. */
  endpoint?: string
  storeEndpoint?: string
}

const CONNECT_TIMEOUT_MS = 5_000
const ANSWER_TIMEOUT_MS = 20_000

/** Each request is sent once: retries are decided here, where the effect of a request is known. */
export function createClients({ region, profile, endpoint, storeEndpoint = endpoint }: Access): Clients {
  silenceSdk()
  const requestHandler = {
    connectionTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: ANSWER_TIMEOUT_MS,
    throwOnRequestTimeout: true,
  }
  const own = profile === undefined ? {} : { profile }
  const at = (url: string | undefined): { endpoint?: string } => (url === undefined ? {} : { endpoint: url })
  const common = { region, maxAttempts: 1, requestHandler, ...own, ...at(endpoint) }
  const store = { ...common, ...at(storeEndpoint), forcePathStyle: storeEndpoint !== undefined }
  const sts = new STSClient(common)
  return {
    ec2: new EC2Client(common),
    iam: new IAMClient(common),
    s3: new S3Client(store),
    sts,
    quotas: new ServiceQuotasClient(common),
    plan: (signal) => readPlan(sts, { endpoint, signal }),
  }
}

/** How long a passing error is retried. */
const PATIENCE_MS = 90_000
const PAUSE_MS = { first: 250, most: 5_000 }

/** Codes for something that was created a moment ago and is not known everywhere yet. */
const NOT_YET = /NotFound|NoSuch(?!Key)|MalformedPolicyDocument.*principal|ServiceUnavailable/i
/** Codes for something that waits for the removal of something else. */
export const STILL_IN_USE =
  /DependencyViolation|DeleteConflict|ResourceInUse|OperationAborted|has some mapped/i

export interface Insistence {
  signal: AbortSignal
  /** Errors that may soon pass, by code or message, in addition to throttling. */
  until?: RegExp
  /** Sending it twice is harmless, so a lost answer is retried too. */
  isRepeatable?: boolean
}

/** Repeats a request until the answer is something other than "later". Throws the last error. */
export async function insist<T>(send: () => Promise<T>, how: Insistence): Promise<T> {
  const startMs = performance.now()
  for (let pauseMs = PAUSE_MS.first; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS.most)) {
    try {
      return await call(how.signal, send)
    } catch (error) {
      const isOver = performance.now() - startMs > PATIENCE_MS
      if (isOver || how.signal.aborted || !isPassing(error as AwsError, how)) throw error
    }
    await sleep(pauseMs, undefined, { signal: how.signal }).catch(() => undefined)
  }
}

/** Reads, and idempotent changes. */
export function repeat<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return insist(send, { signal, isRepeatable: true })
}

/** The same for a resource that was just created. */
export function settle<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return insist(send, { signal, isRepeatable: true, until: NOT_YET })
}

function isPassing(error: AwsError, { until, isRepeatable }: Insistence): boolean {
  if (until !== undefined && (until.test(error.code) || until.test(error.message))) return true
  const { failure } = ec2Error(error)
  if (failure.class === 'throttled') return true
  return isRepeatable === true && isUncertain(error) && error.reach !== 'unsent'
}

/** Whether its effect is unknown. */
export function isUncertain(error: unknown): boolean {
  if (!(error instanceof AwsError)) return false
  return error.reach === 'unanswered' || (error.httpStatus ?? 0) >= 500
}
