import { RequestServiceQuotaIncreaseCommand } from '@aws-sdk/client-service-quotas'
import { defined } from '../../../core/defined'
import type { QuotaState } from '../../account'
import { ec2Error, hasCode } from '../errors'
import { isRefused, requestInWords } from '../market/quotas'
import { quotaOf } from '../market/shapes'
import { readQuota, readQuotaRequests } from '../sdk/quota-calls'
import { insist, isUncertain } from './clients'
import type { Site } from './driver'

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
export async function readQuotas({ clients, signal }: Site): Promise<QuotaState[]> {
  const options = { signal, client: clients.quotas }
  const requests = await readQuotaRequests(options).catch(() => undefined)
  return Promise.all(
    wantedQuotas().map(async ({ code, name }): Promise<QuotaState> => {
      const value = await readQuota(code, options).catch(() => undefined)
      const last = requests?.find((each) => each.code === code)
      return {
        ...{ code, name, wanted: WANTED_VCPUS, unit: 'vCPUs' },
        ...defined({ value }),
        ...(last === undefined ? {} : { request: requestInWords(last) }),
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

export async function askForQuotas(site: Site): Promise<QuotaState[]> {
  for (const { code, wanted, isAskable } of await readQuotas(site))
    if (isAskable) await askFor(site, { code, wanted })
  return readQuotas(site)
}

/** A request without an answer is looked up, and left to the next run if it is not visible. */
async function askFor(
  { clients, signal }: Site,
  { code, wanted }: { code: string; wanted: number },
): Promise<void> {
  const wish = { ServiceCode: 'ec2', QuotaCode: code, DesiredValue: wanted }
  const send = () =>
    clients.quotas.send(new RequestServiceQuotaIncreaseCommand(wish), { abortSignal: signal })
  await insist(send, { signal }).catch((error: unknown) => {
    if (isUncertain(error) || hasCode(error, 'ResourceAlreadyExistsException')) return
    throw ec2Error(error)
  })
}
