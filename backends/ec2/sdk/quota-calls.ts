import {
  GetServiceQuotaCommand,
  paginateListRequestedServiceQuotaChangeHistory,
  type ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas'
import { AwsError, type QuotaRequest } from './api'
import { call } from './errors'

interface QuotaAccess {
  client: ServiceQuotasClient
  signal: AbortSignal
}

export function readQuota(code: string, { client, signal }: QuotaAccess): Promise<number> {
  return call(signal, async () => {
    const command = new GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode: code })
    const { Quota } = await client.send(command, { abortSignal: signal })
    if (Quota?.Value === undefined)
      throw new AwsError(`quota ${code} has no value`, { code: 'NoSuchQuota', reach: 'answered' })
    return Quota.Value
  })
}

/** Newest first. */
export function readQuotaRequests({ client, signal }: QuotaAccess): Promise<QuotaRequest[]> {
  return call(signal, async () => {
    const found: QuotaRequest[] = []
    const wish = { ServiceCode: 'ec2' }
    const options = { abortSignal: signal }
    const pages = paginateListRequestedServiceQuotaChangeHistory({ client }, wish, options)
    for await (const { RequestedQuotas = [] } of pages)
      found.push(
        ...RequestedQuotas.map(({ QuotaCode = '', DesiredValue = 0, Status = '', Created }) => ({
          code: QuotaCode,
          wanted: DesiredValue,
          status: Status,
          askedAtMs: Created?.getTime() ?? 0,
        })),
      )
    return found.sort((a, b) => b.askedAtMs - a.askedAtMs)
  })
}
