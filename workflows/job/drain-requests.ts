import { CancellationScope, sleep } from '@temporalio/workflow'
import { JOB_DRAIN_REASONS, type DrainRequest, type JobDrainReason } from '../../core/job/drain'
import type { BackendChoice } from '../../core/offer'

type Request = DrainRequest<JobDrainReason>

/** Current request of a job to its attempt to save and stop, for its owner or its deadline. The strongest reason counts. */
export class DrainRequests {
  /** Request with the shortest window that was granted for its reason. */
  current: Request | null = null
  /** Target of the newest migration request; missing for the best other place. */
  target: BackendChoice | undefined
  /** Incremented with every change, so that a forwarder notices it. */
  version = 0
  private deadline: CancellationScope | undefined

  /** Why the job must end; null if it need not, which includes a migration. */
  get ending(): Exclude<JobDrainReason, 'migrated'> | null {
    const reason = this.current?.reason ?? 'migrated'
    return reason === 'migrated' ? null : reason
  }

  add(request: Request, target?: BackendChoice): void {
    const { current } = this
    const isSame = current?.reason === request.reason
    if (current !== null && !isSame && rankOf(request) < rankOf(current)) return
    this.target = target
    this.current = isSame ? { ...current, windowMs: Math.min(current.windowMs, request.windowMs) } : request
    this.version += 1
  }

  /** The move is in progress, or the job continues without it. */
  forgetMove(): void {
    if (this.ending === null) this.current = null
    this.target = undefined
  }

  /** Arms the deadline's durable timer; arming it again replaces it. */
  armDeadline({ inMs, windowMs }: { inMs: number; windowMs: number }): void {
    this.disarmDeadline()
    this.deadline = new CancellationScope({ cancellable: true })
    this.deadline
      .run(() => sleep(Math.max(0, inMs), { summary: 'deadline of the job' }))
      .then(() => this.add({ reason: 'deadline', windowMs }))
      // Replaced or removed.
      .catch(() => undefined)
  }

  disarmDeadline(): void {
    this.deadline?.cancel()
    this.deadline = undefined
  }
}

function rankOf({ reason }: Request): number {
  return JOB_DRAIN_REASONS.indexOf(reason)
}
