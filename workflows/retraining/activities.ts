import { proxyActivities, proxyLocalActivities, type ActivityInterfaceFor } from '@temporalio/workflow'
import type { RetrainingActivities } from '../../core/retraining/run'
import { ORCHESTRATOR_QUEUE } from '../../core/queues'
import { localThenOrdinary, type TroublePage } from '../forever'

/** Options of the activities of retraining; `workflows/activities.ts` explains the common ones. */
const COMMON = {
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  heartbeatTimeout: '20 seconds',
  taskQueue: ORCHESTRATOR_QUEUE,
  startToCloseTimeout: '5 minutes',
  scheduleToStartTimeout: '1 day',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
} as const

const step = (summary: string): ActivityInterfaceFor<RetrainingActivities> =>
  proxyActivities<RetrainingActivities>({ ...COMMON, summary })

export const retraining = {
  resolveRun: step('determine the dates of the run').resolveRun,
  readReservation: step('read the state of the reservation').readReservation,
  checkRun: step('check what the run needs').checkRun,
  prepareJob: step('prepare a job').prepareJob,
  resultOf: step('read how the job ended').resultOf,
  modelOf: step('identify the model').modelOf,
  readMetric: step('read the metric').readMetric,
  productionOf: step('look up the model in production').productionOf,
  claimPromotion: step('ensure that no other run promotes').claimPromotion,
  promoteModel: step('move the pointer to the model in production').promoteModel,
  finishRun: step('complete the record').finishRun,
}

/** Takes as long as the job. */
export const awaited = proxyActivities<Pick<RetrainingActivities, 'endOfJob'>>({
  ...COMMON,
  startToCloseTimeout: '30 days',
  summary: 'wait for a job that an earlier history has started',
})

/** Tried for a while, and not worth more: the run continues without it. */
export const attempted = proxyActivities<Pick<RetrainingActivities, 'tellRun' | 'releaseCapacity'>>({
  ...COMMON,
  startToCloseTimeout: '1 minute',
  retry: { ...COMMON.retry, maximumAttempts: 5 },
})

const local = proxyLocalActivities<RetrainingActivities>({
  startToCloseTimeout: '10 seconds',
  retry: { maximumAttempts: 1 },
})
const ordinary = step('decide, after trouble')

type Deciding = 'decideCapacity' | 'requestCapacity' | 'decideOverrun' | 'judgeModel'

/** A decision, on record as a marker; retried while trouble lasts. */
export function decide<Name extends Deciding>(
  page: TroublePage,
  name: Name,
  input: Parameters<RetrainingActivities[Name]>[0],
): ReturnType<RetrainingActivities[Name]> {
  type Decide = (input: unknown) => Promise<unknown>
  return localThenOrdinary(
    { local: () => (local[name] as Decide)(input), ordinary: () => (ordinary[name] as Decide)(input) },
    page,
  ) as ReturnType<RetrainingActivities[Name]>
}
