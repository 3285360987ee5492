import type { OverrunDecision } from '../../core/retraining/run'
import type { OwnedReservation } from '../../core/reservation/reservation'
import type { OverrunRule } from '../../core/retraining/retraining'
import { formatBackendChoice } from '../../core/offer'

/**
 * Decides where a training continues if its reservation ends before it is done. `judgeExtension` decides first whether the reservation is
 * extended.
 */
export function onOverrun(
  { backends }: OverrunRule,
  { reservation }: { reservation: Pick<OwnedReservation, 'id'> },
): OverrunDecision {
  const end = `The reservation ${reservation.id} is over`
  if (backends !== undefined) {
    const where = backends.map(formatBackendChoice).join(', ')
    return {
      kind: 'continue',
      backends,
      message: `${end}; the training continues on ${where} from its checkpoint.`,
    }
  }
  return {
    kind: 'stop',
    message: `${end} before the training, and the file does not say where it continues.`,
  }
}
