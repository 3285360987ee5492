import { proxyActivities } from '@temporalio/workflow'
import type { OrchestratorActivities } from '../../core/activities'
import { backendQueue, ORCHESTRATOR_QUEUE } from '../../core/queues'
import type { ReservationDocuments, ReservingActivities } from '../../core/reservation/activities'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'

/** Options of the activities of reservations; `workflows/activities.ts` explains the common ones. */
const COMMON = {
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  heartbeatTimeout: '20 seconds',
  startToCloseTimeout: 2 * MINUTE_MS,
  scheduleToStartTimeout: '1 day',
  // Reservations last weeks, so a provider in trouble is asked only every few minutes.
  retry: { initialInterval: '2 seconds', backoffCoefficient: 2, maximumInterval: '5 minutes' },
} as const

/** Returns the activities on the backend's queue. */
export function reservingOn(
  backend: string,
  summary: string,
): Omit<ReservingActivities, 'buyCapacity' | 'findPurchase'> {
  return proxyActivities<ReservingActivities>({ ...COMMON, taskQueue: backendQueue(backend), summary })
}

/** Activities on the orchestrator's queue. */
export const reservationDocuments = proxyActivities<
  ReservationDocuments & Pick<OrchestratorActivities, 'promiseBudget'>
>({ ...COMMON, taskQueue: ORCHESTRATOR_QUEUE, summary: 'money and record of the reservation' })

/** Tried for a while, and not worth more. */
export const telling = proxyActivities<Pick<ReservationDocuments, 'tellReservation'>>({
  ...COMMON,
  taskQueue: ORCHESTRATOR_QUEUE,
  startToCloseTimeout: MINUTE_MS,
  retry: { ...COMMON.retry, maximumAttempts: 5 },
  summary: 'post the event',
})

/** The purchase itself. */
export function buying(backend: string): Pick<ReservingActivities, 'buyCapacity'> {
  return proxyActivities<ReservingActivities>({
    ...COMMON,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: 5 * MINUTE_MS,
    scheduleToStartTimeout: HOUR_MS,
    // A purchase is never retried: no token would make a second request harmless.
    retry: { maximumAttempts: 1 },
    summary: 'buy the capacity, once',
  })
}

/** Retried for as long as the provider does not answer. */
export function looking(backend: string): Pick<ReservingActivities, 'findPurchase'> {
  return proxyActivities<ReservingActivities>({
    ...COMMON,
    taskQueue: backendQueue(backend),
    scheduleToStartTimeout: '365 days',
    summary: 'look for the purchase',
  })
}
