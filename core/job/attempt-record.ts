import type { Settlement } from '../activities'
import { defined } from '../defined'
import type { AttemptRecord } from './ledger'
import { offerKey } from '../offer'
import type { Order } from './plan'
import { attemptWorkflowId } from '../queues'
import { formatInstant } from '../time/time'

/** An attempt as the job stores it from its plan on; its order goes out at `startsAtMs`, or at once. */
export function attemptOf(order: Order, startsAtMs?: number): AttemptRecord {
  const [offer] = order.offers
  return {
    number: order.attempt,
    attemptId: order.attemptId,
    workflowId: attemptWorkflowId(order.jobId, order.attempt),
    backend: order.backend,
    capacityType: order.capacityType,
    offerKey: offer === undefined ? '' : offerKey(offer),
    state: 'provisioning',
    expected: order.expected,
    reason: startsAtMs === undefined ? 'launching' : `waits until ${formatInstant(startsAtMs)}`,
    costMicroUsd: 0,
  }
}

/** Returns the attempt's record after its settlement. */
export function settledAttempt(attempt: AttemptRecord, settlement: Settlement): AttemptRecord {
  const {
    end,
    handle,
    costMicroUsd,
    metering,
    billedFromAtMs,
    endedAtMs,
    restoredFrom,
    restoredBecause,
    checkpointState,
    warning,
    trackers,
    checkpoint,
    progress,
    stepsLost,
    phases,
  } = settlement
  return {
    ...attempt,
    ...stateAfter(end, attempt),
    costMicroUsd,
    phases,
    ...(metering === undefined ? {} : { costBasis: metering.basis }),
    ...(handle === null ? {} : { realised: handle.realised, launchedAtMs: handle.launchedAtMs }),
    ...defined({
      billedFromAtMs,
      endedAtMs,
      restoredFrom,
      restoredBecause,
      checkpoint,
      checkpointState,
      warning,
      trackers,
      progress,
      stepsLost,
    }),
  }
}

/**
 * Why an attempt stopped. The runner knows only that its machine's time is up (`expired`): the end of a reservation, or otherwise the
 * provider's limit on how long a machine runs, which is a planned hand-over to the next one.
 */
export function stopReason(
  by: Extract<Settlement['end'], { kind: 'stopped' }>['by'],
  { capacityType }: Pick<AttemptRecord, 'capacityType'>,
): string {
  return by === 'expired' && capacityType !== 'reserved' ? 'run-limit' : by
}

function stateAfter(end: Settlement['end'], attempt: AttemptRecord): Pick<AttemptRecord, 'state' | 'reason'> {
  switch (end.kind) {
    case 'succeeded':
      return { state: 'succeeded', reason: 'completed' }
    case 'stopped':
      return { state: 'stopped', reason: stopReason(end.by, attempt) }
    case 'failed':
      return {
        state: end.failure.class === 'interrupted' ? 'interrupted' : 'failed',
        reason: `${end.failure.class}: ${end.failure.message}`,
      }
  }
}
