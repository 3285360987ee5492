import { RequestServiceQuotaIncreaseCommand } from '@aws-sdk/client-service-quotas'
import type { QuotaState } from '../../account'
import { FREE_PLAN_TYPES, freePlanAdvice } from '../check/free-plan'
import { ec2Error, hasCode } from '../errors'
import { isRefused, requestInWords } from '../market/quotas'
import { quotaOf } from '../market/shapes'
import { readQuota, readQuotaRequests } from '../sdk/quota-calls'
import { call } from '../sdk/errors'
import { readPlan } from '../sdk/plan'
import type { RegionSetup } from './site'

/** vCPUs of the smallest machines with a GPU, `g4dn.xlarge` and the like. */
const SMALLEST_VCPUS = 4
/** Two of them. AWS grants this within minutes or a day; people review hundreds. */
const WANTED_VCPUS = 8

function wantedQuotas(): { code: string; name: string }[] {
  const codes = quotaOf('g4dn.xlarge')!
  return (['on-demand', 'spot'] as const).map((way) => ({
    code: codes[way],
    name: `${codes.words} machines, ${way}`,
  }))
}

/** The quotas that machines with GPUs need, and the state of requests for more. */
export async function readQuotas({ clients, signal }: RegionSetup): Promise<QuotaState[]> {
  const options = { signal, client: clients.quotas }
  const requests = await readQuotaRequests(options).catch(() => undefined)
  return Promise.all(
    wantedQuotas().map(async ({ code, name }): Promise<QuotaState> => {
      const value = await readQuota(code, options).catch(() => undefined)
      const last = requests?.find((each) => each.code === code)
      return {
        code,
        name,
        wanted: WANTED_VCPUS,
        unit: 'vCPUs',
        value,
        request: last === undefined ? undefined : requestInWords(last),
        // Never two requests at once: if earlier requests are unknown, a person asks.
        isAskable:
          value !== undefined &&
          value < SMALLEST_VCPUS &&
          requests !== undefined &&
          (last === undefined || isRefused(last)),
      }
    }),
  )
}

export async function askForQuotas(site: RegionSetup): Promise<QuotaState[]> {
  for (const { code, wanted, isAskable } of await readQuotas(site))
    if (isAskable) await askFor(site, { code, wanted })
  return readQuotas(site)
}

/** Sent again after a lost answer: AWS refuses a second request while one is open. */
async function askFor(
  { clients, signal }: RegionSetup,
  { code, wanted }: { code: string; wanted: number },
): Promise<void> {
  const command = new RequestServiceQuotaIncreaseCommand({
    ServiceCode: 'ec2',
    QuotaCode: code,
    DesiredValue: wanted,
  })
  await call(signal, () => clients.quotas.send(command, { abortSignal: signal })).catch((error: unknown) => {
    if (!hasCode(error, 'ResourceAlreadyExistsException')) throw ec2Error(error)
  })
}

/** Nothing if the plan may not be read: a launch shows it. */
export async function planRemarks({ clients, signal }: RegionSetup): Promise<string[]> {
  const plan = await readPlan(clients.sts, { endpoint: clients.endpoint, signal }).catch(() => undefined)
  if (plan !== 'free') return []
  const types = FREE_PLAN_TYPES.map((name) => ({ name, isFreeTier: true }))
  return [`The account is on the free plan, which launches no machine with a GPU. ${freePlanAdvice(types)}`]
}
