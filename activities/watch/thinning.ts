import type { Beat } from '../../core/documents'
import type { Order } from '../../core/job/plan'
import { CHECKPOINT_PARSERS } from '../../intake/documents'
import { thinOutCheckpoints } from '../../storage/retention'
import type { ObjectStore } from '../../storage/store'

/** Removes the oldest checkpoints of a running attempt's job after each new one. */
export class Thinning {
  private thinnedAtId: string | undefined

  constructor(
    private readonly store: ObjectStore,
    private readonly order: Order,
  ) {}

  /** Keeps the one from which this attempt was restored. Throws a `StoreError`. */
  async after({ checkpoint, restoredFrom }: Pick<Beat, 'checkpoint' | 'restoredFrom'>): Promise<void> {
    if (checkpoint === null || checkpoint.id === this.thinnedAtId) return
    const { jobId, attempt, runner } = this.order
    await thinOutCheckpoints(this.store, jobId, {
      keep: runner.checkpoint.keep,
      protectedIds: restoredFrom === null ? [checkpoint.id] : [checkpoint.id, restoredFrom.id],
      isOver: (other) => other < attempt,
      parse: CHECKPOINT_PARSERS,
    })
    this.thinnedAtId = checkpoint.id
  }
}
