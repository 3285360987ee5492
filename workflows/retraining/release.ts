import { condition } from '@temporalio/workflow'
import { failureFrom } from '../../core/failure'
import { isReservationFinal, type ReservationNotice } from '../../core/reservation/reserving'
import { MINUTE_MS } from '../../core/time/time'
import { forever } from '../forever'
import { attempted, retraining } from './activities'
import type { RetrainRun } from './run'

/** A provider shows within this time that a reservation was released. */
const RELEASE_MS = 10 * MINUTE_MS

/** Releases all hourly capacity of the run, including that of earlier steps, because it costs money until then. Returns its cost. */
export async function giveBack(run: RetrainRun): Promise<ReservationNotice[]> {
  const hourly = run.status.reservations.filter(
    (notice) => notice.reservation?.kind === 'hourly' && !isReservationFinal(notice.state),
  )
  for (const notice of hourly) if (notice.state !== 'releasing') await release(run, notice)
  return hourly
}

/** Releases capacity at the end of a run: prepaid capacity stays for the owner's other jobs. */
export async function releaseAll(run: RetrainRun): Promise<void> {
  for (const notice of run.status.reservations)
    if (notice.reservation?.kind === 'prepaid' && !isReservationFinal(notice.state))
      await release(run, notice)
  for (const { id } of await giveBack(run)) await hearBill(run, id)
}

async function release(run: RetrainRun, { id, reservation }: ReservationNotice): Promise<void> {
  try {
    const { kind } = reservation!
    const released = await attempted.releaseCapacity({ ...run.task(), reservationId: id, kind })
    if (released.message !== '') run.addWarnings(released.message)
  } catch (error) {
    run.warn(`The capacity ${id} was not released: ${failureFrom(error).message}`)
  }
}

/** Waits for the final cost of an hourly reservation, which its workflow reports at its end. Without a report, its present cost counts. */
async function hearBill(run: RetrainRun, reservationId: string): Promise<void> {
  const isOver = (): boolean =>
    run.status.reservations.every(({ id, state }) => id !== reservationId || isReservationFinal(state))
  if (await condition(isOver, RELEASE_MS, { summary: 'until the reservation is over' })) return
  run.noticed(await forever(() => retraining.readReservation({ reservationId }), run))
}
