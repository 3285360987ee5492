import { failureOf } from '../../backends/errors'
import type { CollectStoreGarbageInput } from '../../core/activities'
import { inWords } from '../../core/failure'
import type { GarbageVerdict } from '../../core/messages'
import { formatUsd } from '../../core/money/money'
import { monthBefore, monthOf, parseReservationBudgetId } from '../../core/money/treasury'
import { judgeAll, STORE, unseen, type GarbageCandidate, type Registry } from './garbage'
import type { EndedBudget, Treasury } from '../money/treasury'

/** Releases money reserved for jobs that can no longer report their end. */
export type ReservedBudgets = Pick<Treasury, 'endedPromises' | 'settle'>

/** Scans the money of this month and of the previous one, in which today's jobs may have begun. */
export async function collectReservedBudgets(
  registry: Registry,
  { treasury, signal }: { treasury: ReservedBudgets; signal: AbortSignal },
  input: CollectStoreGarbageInput,
): Promise<GarbageVerdict[]> {
  const months = [monthBefore(registry.now()), monthOf(registry.now())]
  const looks = months.map(async (month) => {
    try {
      const ended = await treasury.endedPromises(month)
      return await judgeAll(
        registry,
        input,
        ended.map((promise) => foundOf(treasury, { month, promise, signal })),
      )
    } catch (error) {
      return [unseen({ backend: STORE, kind: 'promise', place: month, reason: inWords(failureOf(error)) })]
    }
  })
  return (await Promise.all(looks)).flat()
}

function foundOf(
  treasury: ReservedBudgets,
  { month, promise, signal }: { month: string; promise: EndedBudget; signal: AbortSignal },
): GarbageCandidate {
  const { jobId, owner, microUsd, spentMicroUsd, sinceMs } = promise
  const purchase = parseReservationBudgetId(jobId)
  const [kind, who] =
    purchase === undefined
      ? ['job', `job ${jobId}`]
      : ['reservation', `reservation ${purchase.reservationId}`]
  return {
    facts: {
      backend: STORE,
      kind: 'promise',
      id: jobId,
      owner: jobId,
      place: month,
      sinceMs,
      description: `${formatUsd(microUsd)} of ${month} reserved for a ${kind} of ${owner}`,
    },
    claim: {
      isNeeded: false,
      reason: `${who} was terminated by hand; ${formatUsd(spentMicroUsd)} count as spent`,
    },
    end: () => treasury.settle(month, { jobId, owner, spentMicroUsd }, signal),
  }
}
