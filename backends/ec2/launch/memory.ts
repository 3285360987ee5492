import { offerKey } from '../../../core/offer'

type Key = Parameters<typeof offerKey>[0]

/** What this process remembers of its own launches. Forgotten with it, which costs a try, never a machine. */
export interface Memory {
  /** A pool had no machine, in the provider's words. */
  missed(pool: Key, words: string, forMs: number): void
  /** Why a pool had none a moment ago, if that was so. */
  whyMissed(pool: Key): string | undefined
  /** The provider refused the attempt's order for certain: there is nothing to be found of it. */
  refused(attemptId: string): void
  /** A machine may have been bought for the attempt. */
  sent(attemptId: string): void
  isRefused(attemptId: string): boolean
  /** When something was first so, as long as it stays so; forgets what is no longer. */
  since(what: string, isSo: boolean): number | undefined
}

/** Entries kept, so that a worker of a year's jobs does not remember them all. */
const KEPT_MAX = 10_000

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
    since: (what, isSo) => {
      if (!isSo) {
        firsts.delete(what)
        return undefined
      }
      const known = firsts.get(what) ?? clock()
      keep(firsts).set(what, known)
      return known
    },
  }
}

/** Makes room by forgetting the oldest. */
function keep<T extends Map<string, unknown> | Set<string>>(entries: T): T {
  const [oldest] = entries.keys()
  if (entries.size >= KEPT_MAX && oldest !== undefined) entries.delete(oldest)
  return entries
}
