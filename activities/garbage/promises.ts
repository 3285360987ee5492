import type { CollectStoreGarbageInput } from '../../core/activities'
import type { GarbageVerdict } from '../../core/messages'
import { formatUsd } from '../../core/money'
import { monthOf } from '../../core/treasury'
import { judgeAll, tellingOf, unseen, type Found, type Registry } from './garbage'
import type { EndedPromise, Treasury } from '../treasury'

/** What takes back money that was promised to jobs which cannot say any more that they are over. */
export type Promises = Pick<Treasury, 'endedPromises' | 'settle'>

/** As in `store-garbage.ts`: the grace of a look is kept by this name. */
const STORE = 'store'

/** One look at the money of this month and of the one before, in which jobs of today may have begun. */
export async function collectPromises(
  registry: Registry,
  treasury: Promises,
  input: CollectStoreGarbageInput,
): Promise<GarbageVerdict[]> {
  const months = [monthBefore(registry.now()), monthOf(registry.now())]
  const looks = months.map(async (month) => {
    try {
      const ended = await treasury.endedPromises(month)
      return await judgeAll(
        registry,
        input,
        ended.map((promise) => foundOf(treasury, month, promise)),
      )
    } catch (error) {
      return [unseen({ backend: STORE, kind: 'promise', place: month, reason: tellingOf(error) })]
    }
  })
  return (await Promise.all(looks)).flat()
}

function monthBefore(nowMs: number): string {
  const now = new Date(nowMs)
  return monthOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1))
}

function foundOf(treasury: Promises, month: string, promise: EndedPromise): Found {
  const { jobId, owner, microUsd, spentMicroUsd, sinceMs } = promise
  return {
    facts: {
      ...{ backend: STORE, kind: 'promise', id: jobId, owner: jobId, place: month, sinceMs },
      description: `${formatUsd(microUsd)} of ${month} promised to a job of ${owner}`,
    },
    claim: {
      isNeeded: false,
      reason: `job ${jobId} was ended by hand; ${formatUsd(spentMicroUsd)} count as spent`,
    },
    end: () => treasury.settle(month, { jobId, owner, spentMicroUsd }),
  }
}
