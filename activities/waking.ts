import type { LaunchOutcome } from '../core/activities'
import type { BackendName } from '../core/offer'
import { inOrder } from '../core/job/waiting'
import { endTurns, recentLine } from '../storage/waiting-line'
import type { ObjectStore } from '../storage/store'

/** Wakes a waiting job; does nothing for other jobs. A lost wake-up costs one pause. */
export type Wake = (jobId: string) => Promise<void>

export interface WakingDeps {
  store: ObjectStore
  wake?: Wake | undefined
}

/** Ends the turn of an answered order. A filled order proves capacity, so the next job in the queue is woken. */
export async function endTurn(
  { store, wake }: WakingDeps,
  jobId: string,
  outcome: LaunchOutcome,
): Promise<void> {
  const ended = await endTurns(store, jobId)
  if (outcome.kind !== 'launched' || ended.length === 0) return
  const { waiters } = await recentLine(store)
  const others = inOrder(waiters.filter((waiter) => waiter.jobId !== jobId))
  for (const ofTurn of ended) await wakeAll(wake, others.filter(({ wish }) => wish === ofTurn).slice(0, 1))
}

/** A machine of a backend has ended: wakes the first of each queue that wants that backend. The others keep waiting. */
export async function wakeNext({ store, wake }: WakingDeps, backend: BackendName): Promise<void> {
  if (wake === undefined) return
  const { waiters } = await recentLine(store)
  const first = new Map<string, { jobId: string }>()
  for (const waiter of inOrder(waiters.filter(({ backends }) => backends.includes(backend))))
    if (!first.has(waiter.wish)) first.set(waiter.wish, waiter)
  await wakeAll(wake, [...first.values()])
}

export async function wakeAll(wake: Wake | undefined, jobs: readonly { jobId: string }[]): Promise<void> {
  await Promise.all(jobs.map(async ({ jobId }) => wake?.(jobId).catch(() => undefined)))
}
