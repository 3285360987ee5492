import { setTimeout as sleep } from 'node:timers/promises'
import { isCoded } from '../core/errors'
import { formatDuration } from '../core/time/time'
import { isNotOurs } from '../storage/mark'

/** Optional reads from a store that may be slow or down: together they wait at most this long. */
export class StoreReads {
  /** Why a read failed; missing while all succeeded. */
  trouble: string | undefined
  /** Whether the place of the store is not this deployment's store, which `trouble` then says in whole sentences. */
  isElsewhere = false
  private busyMs = 0
  private activeTotal = 0
  private activeSinceMs = 0

  constructor(
    private readonly limitMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The first trouble counts. */
  fail(error: Error): void {
    if (this.trouble !== undefined) return
    this.trouble = error.message
    this.isElsewhere = isNotOurs(error)
  }

  /** The result of a read, or nothing once the store is in trouble. */
  async tryRead<T>(read: () => Promise<T>): Promise<T | undefined> {
    if (this.trouble !== undefined) return undefined
    if (this.activeTotal++ === 0) this.activeSinceMs = this.now()
    const leftMs = this.limitMs - this.busyMs - (this.now() - this.activeSinceMs)
    const stop = new AbortController()
    const isLate = sleep(Math.max(0, leftMs), LATE, { signal: stop.signal }).catch(() => LATE)
    try {
      const answer = await Promise.race([read(), isLate])
      if (answer !== LATE) return answer as T
      this.trouble ??= `no answer within ${formatDuration(this.limitMs)}`
      return undefined
    } catch (error) {
      if (!isCoded(error, 'store')) throw error
      this.fail(error)
      return undefined
    } finally {
      stop.abort()
      if (--this.activeTotal === 0) this.busyMs += this.now() - this.activeSinceMs
    }
  }
}

const LATE = Symbol('late')
