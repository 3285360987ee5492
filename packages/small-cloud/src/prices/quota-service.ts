/** Service Quotas, limited to EC2's quotas. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { action, type Action, type Call, type Service } from '../wire/service'
import type { World } from '../world/world'
import type { Increase, QuotaBook } from './quota-book'
import { QUOTAS, type Quota } from './quotas'

export interface QuotaParts {
  world: World
  id: () => string
  nowMs: () => number
  book: QuotaBook
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
          value: parts.book.valueOf({ code: QuotaCode, region }),
        }),
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
          Quotas: some.map((code) =>
            words(parts, { code, region, value: parts.book.valueOf({ code, region }) }),
          ),
          ...(end < codes.length ? { NextToken: String(end) } : {}),
        }
      },
    }),
  }
}

const history = {
  Status: z.string().optional(),
  MaxResults: z.int().optional(),
  NextToken: z.string().optional(),
}

function increaseActions(parts: QuotaParts): Record<string, Action> {
  const told = ({ region }: Call, isWanted: (increase: Increase) => boolean): object[] =>
    parts.book
      .increases()
      .filter((increase) => increase.Region === region && isWanted(increase))
      .map(withoutRegion)
  return {
    RequestServiceQuotaIncrease: action({
      input: one.extend({ DesiredValue: z.number().min(0) }),
      isMutating: true,
      run(wish, call) {
        const increase = increaseOf(parts, wish, call)
        if (wish.DesiredValue <= parts.book.valueOf({ code: wish.QuotaCode, region: call.region }))
          throw new ApiError(
            'IllegalArgumentException',
            'The requested quota value must be greater than the current value',
          )
        if (told(call, (each) => each.QuotaCode === wish.QuotaCode && each.Status === 'PENDING').length > 0)
          throw new ApiError(
            'ResourceAlreadyExistsException',
            'Only one open service quota increase request is allowed per quota.',
          )
        parts.book.add(increase)
        return { RequestedQuota: told(call, ({ Id }) => Id === increase.Id)[0] }
      },
    }),
    ListRequestedServiceQuotaChangeHistory: action({
      input: z.strictObject({ ServiceCode: z.string().optional(), ...history }),
      run: ({ ServiceCode, Status }, call) => ({
        RequestedQuotas: told(
          call,
          (each) =>
            (ServiceCode ?? each.ServiceCode) === each.ServiceCode && (Status ?? each.Status) === each.Status,
        ),
      }),
    }),
  }
}

function withoutRegion(increase: Increase): object {
  return Object.fromEntries(Object.entries(increase).filter(([name]) => name !== 'Region'))
}

interface IncreaseInput {
  ServiceCode: string
  QuotaCode: string
  DesiredValue: number
}

function increaseOf(parts: QuotaParts, wish: IncreaseInput, { region, principal }: Call): Increase {
  const code = checked(wish.ServiceCode, wish.QuotaCode)
  const { QuotaArn, QuotaName } = words(parts, { code, region, value: 0 })
  const nowSeconds = parts.nowMs() / 1000
  return {
    Region: region,
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
