import { offerKey } from '../../../core/offer'

type Key = Parameters<typeof offerKey>[0]

/** This process's memory of its own launches. Losing it costs a retry, never a machine. */
export interface Memory {
  /** Records for a while that a pool has no capacity, in the provider's words. */
  missed(pool: Key, words: string, forMs: number): void
  /** Returns the provider's words for a pool that recently had no capacity; undefined for other pools. */
  whyMissed(pool: Key): string | undefined
  /** Notes that the provider certainly refused the attempt's order, so that no machine exists. */
  refused(attemptId: string): void
  /** A machine may have been bought for the attempt. */
  sent(attemptId: string): void
  isRefused(attemptId: string): boolean
  /** How long a condition has held without interruption, 0 at the first look; forgotten once it ends. */
  heldMs(what: string, isSo: boolean): number | undefined
}

/** Maximum number of entries, so that a long-running worker does not keep every job. */
const KEPT_MAX = 10_000

/** @param clock never steps: it measures how long conditions hold */
export function createMemory(clock: () => number): Memory {
  const misses = new Map<string, { words: string; untilMs: number }>()
  const refusals = new Set<string>()
  const firsts = new Map<string, number>()
  return {
    missed: (pool, words, forMs) => {
      keep(misses).set(offerKey(pool), { words, untilMs: clock() + forMs })
    },
    whyMissed: (pool) => {
      const miss = misses.get(offerKey(pool))
      return miss === undefined || miss.untilMs <= clock() ? undefined : miss.words
    },
    refused: (attemptId) => {
      keep(refusals).add(attemptId)
    },
    sent: (attemptId) => {
      refusals.delete(attemptId)
    },
    isRefused: (attemptId) => refusals.has(attemptId),
    heldMs: (what, isSo) => {
      if (!isSo) {
        firsts.delete(what)
        return undefined
      }
      const nowMs = clock()
      const sinceMs = firsts.get(what) ?? nowMs
      keep(firsts).set(what, sinceMs)
      return nowMs - sinceMs
    },
  }
}

/** Makes room by dropping the oldest. */
function keep<T extends Map<string, unknown> | Set<string>>(entries: T): T {
  const [oldest] = entries.keys()
  if (entries.size >= KEPT_MAX && oldest !== undefined) entries.delete(oldest)
  return entries
}
