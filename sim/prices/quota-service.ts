/** Service Quotas, as far as EC2's are asked for. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { action, type Action, type Call, type Service } from '../wire/service'
import type { World } from '../world/world'
import { QUOTAS, type Quota } from './quotas'

interface Increase {
  Id: string
  CaseId: string
  ServiceCode: string
  QuotaCode: string
  QuotaName: string
  DesiredValue: number
  Status: 'PENDING'
  Created: number
  LastUpdated: number
  Requester: string
  QuotaArn: string
  GlobalQuota: boolean
  Unit: string
}

export interface QuotaParts {
  world: World
  id: () => string
  nowMs: () => number
}

const one = z.strictObject({ ServiceCode: z.string(), QuotaCode: z.string() })

export function quotaService(parts: QuotaParts): Service {
  return {
    name: 'servicequotas',
    style: 'json',
    namespace: 'ServiceQuotasV20190624',
    actions: { ...tellingActions(parts), ...increaseActions(parts) },
  }
}

function tellingActions(parts: QuotaParts): Record<string, Action> {
  return {
    GetServiceQuota: action({
      input: one,
      run: ({ ServiceCode, QuotaCode }, { region }) => ({
        Quota: words(parts, {
          code: checked(ServiceCode, QuotaCode),
          region,
          value: valueOf(parts, QuotaCode),
        }),
      }),
    }),
    GetAWSDefaultServiceQuota: action({
      input: one,
      run: ({ ServiceCode, QuotaCode }, { region }) => ({
        Quota: words(parts, { code: checked(ServiceCode, QuotaCode), region, value: 0 }),
      }),
    }),
    ListServiceQuotas: action({
      input: z.strictObject({
        ServiceCode: z.string(),
        MaxResults: z.int().min(1).max(100).default(100),
        NextToken: z.string().optional(),
      }),
      run({ ServiceCode, MaxResults, NextToken }, { region }) {
        checked(ServiceCode, undefined)
        const codes = Object.keys(QUOTAS)
        const from = NextToken === undefined ? 0 : Number(NextToken)
        if (!Number.isInteger(from) || from < 0)
          throw new ApiError('InvalidPaginationTokenException', 'Invalid token')
        const end = from + MaxResults
        const some = codes.slice(from, end)
        return {
          Quotas: some.map((code) => words(parts, { code, region, value: valueOf(parts, code) })),
          ...(end < codes.length ? { NextToken: String(end) } : {}),
        }
      },
    }),
  }
}

function increaseActions(parts: QuotaParts): Record<string, Action> {
  const increases: Increase[] = []
  return {
    RequestServiceQuotaIncrease: action({
      input: one.extend({ DesiredValue: z.number().min(0) }),
      isMutating: true,
      run(wish, call) {
        const increase = increaseOf(parts, wish, call)
        if (wish.DesiredValue <= valueOf(parts, wish.QuotaCode))
          throw new ApiError(
            'IllegalArgumentException',
            'The requested quota value must be greater than the current value',
          )
        if (increases.some((each) => each.QuotaCode === wish.QuotaCode))
          throw new ApiError(
            'ResourceAlreadyExistsException',
            'Only one open service quota increase request is allowed per quota.',
          )
        increases.push(increase)
        return { RequestedQuota: increase }
      },
    }),
    ListRequestedServiceQuotaChangeHistory: action({
      input: z.strictObject({ ServiceCode: z.string().optional(), Status: z.string().optional() }),
      run: ({ ServiceCode, Status }) => ({
        RequestedQuotas: increases.filter(
          (each) =>
            (ServiceCode ?? each.ServiceCode) === each.ServiceCode && (Status ?? each.Status) === each.Status,
        ),
      }),
    }),
  }
}

interface Wish {
  ServiceCode: string
  QuotaCode: string
  DesiredValue: number
}

/** Nobody grants it: it stays pending. */
function increaseOf(parts: QuotaParts, wish: Wish, { region, principal }: Call): Increase {
  const code = checked(wish.ServiceCode, wish.QuotaCode)
  const { QuotaArn, QuotaName } = words(parts, { code, region, value: 0 })
  const nowSeconds = parts.nowMs() / 1000
  return {
    Id: parts.id(),
    CaseId: '',
    ...wish,
    QuotaName,
    Status: 'PENDING',
    Created: nowSeconds,
    LastUpdated: nowSeconds,
    Requester: JSON.stringify({ accountId: parts.world.account, callerArn: principal.arn }),
    QuotaArn,
    GlobalQuota: false,
    Unit: 'None',
  }
}

function words(
  { world }: QuotaParts,
  { code, region, value }: { code: string; region: string; value: number },
) {
  return {
    ServiceCode: 'ec2',
    ServiceName: 'Amazon Elastic Compute Cloud (Amazon EC2)',
    QuotaArn: `arn:aws:servicequotas:${region}:${world.account}:ec2/${code}`,
    QuotaCode: code,
    QuotaName: known(code).name,
    Value: value,
    Unit: 'None',
    Adjustable: true,
    GlobalQuota: false,
  }
}

function valueOf({ world }: QuotaParts, code: string): number {
  return world.quotas[code] ?? known(code).usual
}

function known(code: string): Quota {
  const quota = QUOTAS[code]
  if (quota === undefined)
    throw new ApiError(
      'NoSuchResourceException',
      `The request failed because the specified quota ${code} does not exist.`,
    )
  return quota
}

function checked(service: string, code: string | undefined): string {
  if (service !== 'ec2')
    throw new ApiError(
      'NoSuchResourceException',
      `This small cloud has the quotas of ec2 only, not of ${service}`,
    )
  if (code !== undefined) known(code)
  return code ?? ''
}
