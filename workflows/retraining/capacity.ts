import {
  condition,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow'
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import type { CapacityDecision } from '../../core/retraining/run'
import { isReservationFinal, type ReservationInput } from '../../core/reservation/reserving'
import { DAY_MS, MINUTE_MS } from '../../core/time/time'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import type { reserveCapacity } from '../reservation/reserve-capacity'
import { attributesOf } from '../attributes'
import { forever } from '../forever'
import { decide, retraining } from './activities'
import type { RetrainRun } from './run'

/** Silence after which a reservation counts as terminated by hand, once its search has ended. */
const SILENT_MS = DAY_MS
/** Interval of observations of a reservation that is not a child of this history, because its termination by hand causes no event. */
const LOOK_MS = DAY_MS
/** A search that is called off answers within this time, unless its provider does not. */
const CALL_OFF_MS = 10 * MINUTE_MS

/**
 * Gets capacity by the steps of the file, in order. Sets the run's placement, or returns why not. A purchase that waits for a
 * person, or whose outcome is unknown, is waited for.
 */
export async function getCapacity(run: RetrainRun): Promise<string | undefined> {
  if (run.input.spec.capacity === undefined) run.placement = { kind: 'open' }
  if (run.search !== undefined) await reserve(run, run.search)
  while (run.placement === undefined && run.stop === undefined) {
    const decision = await nextStep(run)
    // A stop came during the decision, so nothing new begins.
    if (run.stop !== undefined) return undefined
    if (decision.kind === 'give-up') return decision.message
    const isFallback = decision.index > 0
    run.stepsTried = decision.index + 1
    run.move('searching', decision.message)
    if (isFallback) run.warn(decision.message)
    if (decision.kind === 'open') run.placement = decision.placement
    else await reserve(run, decision.input)
  }
  return undefined
}

async function nextStep(run: RetrainRun): Promise<CapacityDecision> {
  const { notice } = run
  return decide(run, 'decideCapacity', {
    ...run.task(),
    tried: run.stepsTried,
    trainings: run.trainings,
    notifyWorkflowId: workflowInfo().workflowId,
    last: notice === undefined ? undefined : { state: notice.state, message: notice.message },
    spentMicroUsd: run.spentMicroUsd,
  })
}

/** Requests one reservation, and waits until it is held or over. It outlives the run: the owner's other jobs use the rest. */
async function reserve(run: RetrainRun, input: ReservationInput): Promise<void> {
  const isAsked = run.search !== undefined
  const isBegun = isAsked && !run.isUnbegun
  run.search = input
  run.isUnbegun = !isBegun
  if (!isAsked) run.asked(input.reservationId)
  // A stop during the request ends the recorded search through its own workflow.
  if (!isBegun) await decide(run, 'requestCapacity', input)
  const life = { isOver: false }
  const isChild = !isBegun && (await begin(run, input, () => (life.isOver = true)))
  run.isUnbegun = false
  if (!isChild) await look(run, input)
  const isDone = (): boolean => run.stop !== undefined || life.isOver || isDecided(run)
  const silentAtMs = Date.now() + untilSilent(input)
  while (!isDone() && (Date.now() < silentAtMs || isBuying(run))) {
    const isNews = (): boolean => isDone() || run.news.length > 0 || run.isLong
    const leftMs = silentAtMs > Date.now() ? silentAtMs - Date.now() : LOOK_MS
    const waitMs = isChild ? leftMs : Math.min(LOOK_MS, leftMs)
    const hasNews = await condition(isNews, waitMs, {
      summary: 'until there is capacity, or the search is over',
    })
    run.warn(...run.news.splice(0))
    if (!isDone()) await run.continueFresh()
    if (!hasNews && !isChild) await look(run, input)
  }
  if (run.stop !== undefined || !isDone()) await callOff(run, life)
  run.search = undefined
  const { notice } = run
  if (run.stop !== undefined) return
  if (notice?.reservation !== undefined && isHeldBy(run)) {
    run.placement = { kind: 'reserved', backend: input.wish.backend, reservation: notice.reservation }
    return
  }
  // A reservation that was terminated by hand sends no last event.
  if (notice !== undefined && !isReservationFinal(notice.state))
    run.noticed({ ...notice, state: 'unavailable', message: 'Its workflow is over or silent.' })
}

/** Starts a reservation. Returns false if it has already begun, because this history was reset or continues another one. */
async function begin(run: RetrainRun, input: ReservationInput, over: () => void): Promise<boolean> {
  try {
    const child = await startChild<typeof reserveCapacity>(WORKFLOW_TYPES.reserveCapacity, {
      workflowId: reservationWorkflowId(input.reservationId),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      typedSearchAttributes: attributesOf({
        name: run.input.schedule,
        owner: run.input.owner,
        state: 'searching',
        backend: input.wish.backend,
      }),
      staticSummary: `capacity of ${run.input.schedule}, ${run.run.id}`,
    })
    // Its last report comes as a signal.
    child.result().then(over, over).catch(over)
    return true
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    return false
  }
}

/** Reads its present state, because its earlier events went to another history. */
async function look(run: RetrainRun, { reservationId }: ReservationInput): Promise<void> {
  run.noticed(await forever(() => retraining.readReservation({ reservationId }), run))
}

function untilSilent({ rule, wish }: ReservationInput): number {
  const endAtMs = rule.searchUntilAtMs ?? wish.latestStartAtMs ?? Date.now()
  return Math.max(0, endAtMs - Date.now()) + SILENT_MS
}

const isHeldBy = ({ notice }: RetrainRun): boolean =>
  notice !== undefined && ['scheduled', 'active'].includes(notice.state)

function isDecided(run: RetrainRun): boolean {
  return isHeldBy(run) || (run.notice !== undefined && isReservationFinal(run.notice.state))
}

/** Whether a purchase is pending: another step would buy a second time, so its outcome is awaited. */
const isBuying = ({ notice }: RetrainRun): boolean =>
  notice !== undefined && ['buying', 'undecided', 'unpaid'].includes(notice.state)

/**
 * Ends a search, and waits for its answer: a purchase under way is not ended by it. What is bought is given back at the end of the run, as far
 * as it can be.
 */
async function callOff(run: RetrainRun, life: { isOver: boolean }): Promise<void> {
  const { notice } = run
  if (notice === undefined || isDecided(run)) return
  const { id } = notice
  run.move('searching', 'Ending the search for capacity.')
  await getExternalWorkflowHandle(reservationWorkflowId(id))
    .cancel()
    .catch(() => undefined)
  const isAnswered = (): boolean => life.isOver || isDecided(run) || run.notice?.reservation !== undefined
  if (await condition(isAnswered, CALL_OFF_MS, { summary: 'until the search is over' })) return
  run.warn(`The search ${id} has not ended: see \`crucible reservations show ${id}\`.`)
}
