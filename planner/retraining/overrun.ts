import type { OverrunDecision } from '../../core/retrain-run'
import type { OwnedReservation } from '../../core/reservation'
import type { OverrunRule } from '../../core/retraining'
import { formatBackendChoice } from '../../core/offer'
import { formatDuration, HOUR_MS } from '../../core/time'

/** Below this, no provider extends a reservation any more. */
const EXTENDABLE_MS_MIN = HOUR_MS

/** What happens to a training whose reservation is over before it. */
export function onOverrun(
  { extend, backends }: OverrunRule,
  { reservation, leftMs }: { reservation: Pick<OwnedReservation, 'id'>; leftMs: number },
): OverrunDecision {
  const end =
    leftMs === 0
      ? `The reservation ${reservation.id} is over`
      : `The reservation ${reservation.id} ends in ${formatDuration(leftMs)}`
  if (extend !== undefined && leftMs >= EXTENDABLE_MS_MIN) {
    const message = `${end}, and the training is not done: it is extended by ${formatDuration(extend.durationMs)}.`
    return { kind: 'extend', ...extend, message }
  }
  if (backends !== undefined) {
    const where = backends.map(formatBackendChoice).join(', ')
    return {
      kind: 'continue',
      backends,
      message: `${end}; the training then continues on ${where} from its checkpoint.`,
    }
  }
  return {
    kind: 'stop',
    message: `${end} before the training, and the file does not say where it continues.`,
  }
}
