import { EC2Client } from '@aws-sdk/client-ec2'
import { PricingClient } from '@aws-sdk/client-pricing'
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas'
import type { Limiter } from '../../limiter'
import { requestHandler } from '../../../network/aws'
import { explainingSignIn } from '../../../network/sign-in'
import { readQuota, readQuotaRequests } from './quota-calls'
import type { RegionApi } from './api-capacity'
import { createCapacityApi } from './capacity'
import { createMarketApi } from './market'
import { createNetworkApi } from './network'
import { pricingRegionOf } from './prices'

export interface RegionAccess {
  region: string
  profile?: string | undefined
  /** A server that replaces AWS. */
  endpoint?: string | undefined
  /** Limiter of every request, page and retry. */
  limiter: Limiter
  /** Ends the waits of requests. */
  signal: AbortSignal
}

const CONNECT_TIMEOUT_MS = 3_000
const ANSWER_TIMEOUT_MS = 20_000
/** Reads may be repeated. A throttled one is: `adaptive` also slows the client down, so that the next calls are not refused in turn. */
const ATTEMPTS = 6

/** Creates the clients of one Region; one per Region and process, because they share their observations of throttling. */
export function createRegionApi({ region, profile, endpoint, limiter, signal }: RegionAccess): RegionApi {
  const common = {
    region,
    maxAttempts: ATTEMPTS,
    retryMode: 'adaptive',
    requestHandler: requestHandler({ connectMs: CONNECT_TIMEOUT_MS, answerMs: ANSWER_TIMEOUT_MS }),
    profile,
    endpoint,
  }
  const signing = <C extends object>(client: C): C => explainingSignIn(client, profile)
  const ec2 = signing(new EC2Client(common))
  ec2.middlewareStack.add(
    (next) => (args) => limiter.run('other', signal, () => next(args)),
    // The step runs after the SDK's retry, so that each retry waits too.
    { step: 'finalizeRequest', priority: 'low', name: 'pace' },
  )
  const quotas = signing(new ServiceQuotasClient(common))
  const pricing = signing(new PricingClient({ ...common, region: pricingRegionOf(region) }))
  return {
    market: createMarketApi(ec2, pricing),
    network: createNetworkApi(ec2),
    capacity: createCapacityApi(ec2),
    account: {
      quota: (code, within) => readQuota(code, { client: quotas, signal: within }),
      quotaRequests: (within) => readQuotaRequests({ client: quotas, signal: within }),
    },
  }
}
