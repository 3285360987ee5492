import { pause } from '../heartbeat'

/** Limit on jobs that wait inside their activities at once, which leaves room for other work. */
const LINGERERS_MAX = 20

/**
 * Jobs that wait inside their activity, because their turn is near. Temporal takes about a second to begin a try, however short the
 * pause before it: its timers are that coarse.
 */
export class Lingering {
  private readonly wakers = new Map<string, () => void>()

  get hasRoom(): boolean {
    return this.wakers.size < LINGERERS_MAX
  }

  /** Waits until the time is over or the job is woken. Throws when the signal aborts. */
  async wait(jobId: string, durationMs: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const wake = (): void => woken.abort()
    this.wakers.set(jobId, wake)
    try {
      await pause(durationMs, AbortSignal.any([signal, woken.signal]))
    } catch (error) {
      if (!woken.signal.aborted || signal.aborted) throw error
    } finally {
      if (this.wakers.get(jobId) === wake) this.wakers.delete(jobId)
    }
  }

  /** False when the job does not linger here. */
  wake(jobId: string): boolean {
    const wake = this.wakers.get(jobId)
    wake?.()
    return wake !== undefined
  }
}
