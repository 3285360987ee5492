import { STSClient } from '@aws-sdk/client-sts'
import { limitedTo } from '../../calls'
import { AwsError } from './api'
import { call } from './errors'

/** The service's only endpoint; it answers for the account, in every Region. */
const REGION = 'us-east-1'
const ENDPOINT = `https://freetier.${REGION}.api.aws`
const ANSWER_TIMEOUT_MS = 10_000

export type AccountPlan = 'free' | 'paid'

/**
 * Reads the plan of the account. The SDK packages in use have no client for this service, so the signer of another client signs this one
 * call, with that client's credentials and clock.
 */
export function readPlan(
  sts: STSClient,
  { endpoint = ENDPOINT, signal }: { endpoint?: string | undefined; signal: AbortSignal },
): Promise<AccountPlan> {
  return call(signal, async () => {
    const url = new URL(endpoint)
    const body = '{}'
    // A separate client: a signer keeps the service name of its first signature.
    const own = new STSClient({ region: REGION, credentials: sts.config.credentials })
    const signer = await own.config.signer({
      name: 'sigv4',
      signingName: 'freetier',
      signingRegion: REGION,
      properties: {},
    })
    const signed = await signer.sign(
      {
        method: 'POST',
        protocol: url.protocol,
        hostname: url.hostname,
        path: '/',
        query: {},
        body,
        port: url.port === '' ? undefined : Number(url.port),
        headers: {
          host: url.host,
          'content-type': 'application/x-amz-json-1.0',
          'x-amz-target': 'AWSFreeTierService.GetAccountPlanState',
        },
      },
      { signingDate: new Date(Date.now() + sts.config.systemClockOffset) },
    )
    const answer = await fetch(url, {
      method: 'POST',
      headers: signed.headers,
      body,
      signal: limitedTo(ANSWER_TIMEOUT_MS, signal),
    })
    const told = (await answer.json()) as { accountPlanType?: string; __type?: string; message?: string }
    if (!answer.ok)
      throw new AwsError(told.message ?? 'the plan of the account cannot be read', {
        code: told.__type?.split('#').at(-1) ?? 'Unknown',
        httpStatus: answer.status,
        reach: 'answered',
      })
    return told.accountPlanType === 'FREE' ? 'free' : 'paid'
  })
}
