import { CancellationScope, sleep } from '@temporalio/workflow'
import type { Wish } from '../core/activities'
import type { BackendChoice } from '../core/offer'

/** The stronger request wins: a cancelled job is not migrated, but a job past its deadline may still be cancelled. */
const RANK: Readonly<Record<Wish, number>> = { migrated: 0, budget: 1, deadline: 1, cancelled: 2 }

/** Open requests of a job's owner or its limits. */
export class StopRequests {
  present: Wish | null = null
  /** Time for the workload to save; the shortest that was granted for the current request. */
  windowMs = 0
  target: BackendChoice | undefined
  /** Incremented with every change, so that a forwarder notices it. */
  version = 0
  private readonly timers = new Map<Wish, CancellationScope>()

  want(wish: Wish, windowMs: number, target?: BackendChoice): void {
    const isStronger = this.present === null || RANK[wish] > RANK[this.present]
    if (isStronger) {
      this.present = wish
      this.target = target
      this.windowMs = windowMs
    } else if (this.present === wish) {
      this.windowMs = Math.min(this.windowMs, windowMs)
    } else {
      return
    }
    this.version += 1
  }

  /** The move is in progress, or the job continues without it. */
  forgetMove(): void {
    if (this.present === 'migrated') this.present = null
    this.target = undefined
  }

  /** A durable timer that makes a request when it fires; setting it again replaces it. */
  arm(timer: { wish: 'deadline'; inMs: number; windowMs: number }): void {
    this.disarm(timer.wish)
    const scope = new CancellationScope({ cancellable: true })
    this.timers.set(timer.wish, scope)
    scope
      .run(() => sleep(Math.max(0, timer.inMs), { summary: `${timer.wish} of the job` }))
      .then(() => this.want(timer.wish, timer.windowMs))
      // Replaced or removed.
      .catch(() => undefined)
  }

  disarm(wish: 'deadline'): void {
    this.timers.get(wish)?.cancel()
    this.timers.delete(wish)
  }
}
