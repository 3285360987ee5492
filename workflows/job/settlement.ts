import { condition } from '@temporalio/workflow'
import type { Settlement } from '../../core/activities'
import type { DrainRequest } from '../../core/job/drain'
import type { Order } from '../../core/job/plan'
import { orchestrator } from '../activities'
import { forever, foreverUntil, kept, type TroublePage } from '../forever'

/** A settlement whose window can be shortened. */
export interface WindowedSettlement {
  order: Order
  settle: () => Promise<Settlement>
  /** The time that the settlement gives a machine to save and stop. */
  windowMs: number
  /** The request to save and stop, with the shortest window so far; null before the first. */
  requested: () => DrainRequest | null
  page: TroublePage
}

/** Settles an attempt, and informs its machine about a window that is shortened meanwhile. */
export async function settleInWindow(settlement: WindowedSettlement): Promise<Settlement> {
  const life = { isOver: false }
  const settling = kept(forever(settlement.settle, settlement.page).finally(() => (life.isOver = true)))
  const [settled] = await Promise.all([settling, shorten(settlement, life)])
  return settled
}

/** Writes each window shorter than that of the settlement for the runner and the settlement. */
async function shorten(
  { order, windowMs, requested, page }: WindowedSettlement,
  life: { isOver: boolean },
): Promise<void> {
  const { jobId, attempt } = order
  for (let grantedMs = windowMs; ;) {
    await condition(() => life.isOver || (requested()?.windowMs ?? grantedMs) < grantedMs)
    const request = requested()
    if (life.isOver || request === null) return
    grantedMs = request.windowMs
    await foreverUntil(
      () => life.isOver,
      () => orchestrator.drain({ jobId, attempt, drain: request, isNext: true }),
      page,
    )
  }
}
