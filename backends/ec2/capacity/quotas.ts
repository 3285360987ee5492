import { hasCode } from '../errors'
import { isOpen, requestInWords } from '../market/quotas'
import { quotaOf, QUOTAS, type QuotaCodes } from '../market/shapes'
import type { CountedMachine } from '../sdk/api-capacity'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'

type QuotaMarket = 'on-demand' | 'spot'

/** A limit on an account's vCPUs in a Region. */
export interface VcpuQuota {
  region: string
  code: string
  /** `P`, `G and VT`, `standard`, ... */
  family: string
  market: QuotaMarket
  /** Limit in vCPUs; undefined if AWS does not report it. */
  limit: number | undefined
  /** vCPUs of running machines; undefined without the permission to list them. */
  used: number | undefined
  /** The newest request for more, in words. */
  request?: string
  isRequestOpen: boolean
}

export interface QuotaAnswer {
  quotas: VcpuQuota[]
  notes: string[]
}

/** The families of quotas that have one of these types; all without types. */
export function quotaFamilies(types: readonly string[]): { codes: QuotaCodes[]; unknown: string[] } {
  if (types.length === 0) return { codes: QUOTAS.map(([, codes]) => codes), unknown: [] }
  const known = types.map((type) => [type, quotaOf(type)] as const)
  return {
    codes: [...new Set(known.flatMap(([, codes]) => codes ?? []))],
    unknown: known.filter(([, codes]) => codes === undefined).map(([type]) => type),
  }
}

/** Limits, use and requests of some families in every Region. */
export async function findQuotas(
  inquiry: Inquiry,
  families: readonly QuotaCodes[],
): Promise<RegionAnswers<QuotaAnswer>> {
  const { signal } = inquiry
  return inquiry.each(async ({ account, capacity }, region) => {
    const notes: string[] = []
    const orNote = <T>(asked: Promise<T>, note: string): Promise<T | undefined> =>
      asked.catch(() => {
        if (!signal.aborted) notes.push(note)
        return undefined
      })
    const [machines, requests, limits] = await Promise.all([
      orNote(
        capacity.countedMachines(signal),
        `The usage in ${region} is unknown: this identity may not list machines (ec2:DescribeInstances).`,
      ),
      orNote(
        account.quotaRequests(signal),
        `Requests for more in ${region} are unknown (servicequotas:ListRequestedServiceQuotaChangeHistory).`,
      ),
      Promise.all(
        families.flatMap((codes) =>
          (['on-demand', 'spot'] as const).map(async (market) => ({
            codes,
            market,
            limit: await account.quota(codes[market], signal).catch(nothingIfUnknown),
          })),
        ),
      ),
    ])
    const quotas = limits.map(({ codes, market, limit }): VcpuQuota => {
      const request = requests?.find(({ code }) => code === codes[market])
      return {
        region,
        code: codes[market],
        family: codes.words,
        market,
        limit,
        used: machines && usedOf(machines, codes, market),
        request: request !== undefined ? requestInWords(request) : undefined,
        isRequestOpen: request !== undefined && isOpen(request),
      }
    })
    return { quotas, notes }
  })
}

/** Returns nothing for a quota that a Region does not have. */
function nothingIfUnknown(error: unknown): undefined {
  if (!hasCode(error, 'NoSuchResourceException', 'NoSuchQuota')) throw error
}

/** Machines in a Capacity Block count against no quota. */
function usedOf(machines: readonly CountedMachine[], codes: QuotaCodes, market: QuotaMarket): number {
  return machines
    .filter(({ isInBlock, isSpot }) => !isInBlock && isSpot === (market === 'spot'))
    .filter(({ type }) => quotaOf(type) === codes)
    .reduce((sum, { vcpus }) => sum + vcpus, 0)
}

/** Returns how many machines of a size still fit. */
export function machinesThatFit(
  { limit, used = 0 }: Pick<VcpuQuota, 'limit' | 'used'>,
  vcpus: number,
): number | undefined {
  return limit === undefined ? undefined : Math.max(0, Math.floor((limit - used) / vcpus))
}

/** The command that asks AWS for more. */
export function increaseCommand({ code, region }: Pick<VcpuQuota, 'code' | 'region'>, vcpus: number): string {
  return `aws service-quotas request-service-quota-increase --service-code ec2 --quota-code ${code} --desired-value ${vcpus} --region ${region}`
}
