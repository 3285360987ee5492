import { createHash } from 'node:crypto'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { JobSpec } from '../../core/job/job'
import type { PlanReport } from '../../core/job/plan'
import {
  isReservationFinal,
  RELEASE_UPDATE,
  RESERVATION_QUERY,
  type ReleaseUpdate,
  type ReservationNotice,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import { failureFrom } from '../../core/failure'
import { leftOfBudget } from '../../core/money/budget'
import {
  runJobId,
  type CapacityDecision,
  type CapacityQuestion,
  type GateVerdict,
  type OverrunDecision,
  type OverrunQuestion,
  type RetrainingActivities,
  type RunEntry,
  type RunTask,
} from '../../core/retraining/run'
import { reservationWorkflowId, retrainScheduleId } from '../../core/queues'
import { workflowPage } from '../../core/ui-pages'
import { isOpenStatus } from '../../core/workflow-status'
import { BackendError } from '../../backends/errors'
import { nextCapacity, type CapacityFacts } from '../../planner/retraining/capacity'
import { judge } from '../../planner/retraining/gate'
import { onOverrun } from '../../planner/retraining/overrun'
import { putRequest } from '../../storage/reservations'
import { putRunEntry } from '../../storage/schedules'
import type { ObjectStore } from '../../storage/store'
import { allBeating } from '../heartbeat'
import { claimPromotion } from './claims'
import { checkRun, type MeasureSource } from './checks'
import { endOfJob, prepareJob, resultOf, specOf } from './jobs'
import { modelOf, productionOf, promoteModel, readMetric } from './models'
import { finishRun, tellRun } from './reports'
import { resolveRun } from './resolve'

export interface RetrainingDeps {
  client: Client
  store: ObjectStore
  now: () => number
  /** Key of the deployment; without it, schedules with secrets cannot run. */
  key?: Buffer | undefined
  /** Plans where a job of this owner could run now. */
  preview: (spec: JobSpec, owner: string) => Promise<PlanReport>
  /** Whether an input can be read, by the scheme of its URL. */
  measure: MeasureSource
  /** Posts a document. Throws if the receiver refuses it. */
  post: (url: string, body: string, signal: AbortSignal) => Promise<void>
}

/** The activities of retraining, on the orchestrator's queue. */
export function createRetrainingActivities(deps: RetrainingDeps): RetrainingActivities {
  const { store } = deps
  return allBeating<RetrainingActivities>({
    resolveRun: (input) => resolveRun(deps, input),
    decideCapacity: (question) => decideCapacity(deps, question),
    requestCapacity: (input) => putRequest(store, input),
    readReservation: (input, signal) => readReservation(deps, input, signal),
    decideOverrun: (question) => decideOverrun(deps, question),
    judgeModel: async ({ gate, value, production, productionFrom, ...task }) => {
      const facts = { value, production, productionFrom }
      const verdict = judge(gate, facts)
      return onRecord<GateVerdict>(deps, task, {
        kind: 'judged',
        summary: verdict.message,
        inputs: { gate, ...facts },
        answer: verdict,
      })
    },
    checkRun: (input, signal) => checkRun(deps, input, signal),
    prepareJob: (input) => prepareJob(deps, input),
    resultOf: ({ jobId }) => resultOf(deps, jobId),
    endOfJob: ({ jobId }, signal) => endOfJob(deps, jobId, signal),
    modelOf: (input) => modelOf(deps, input),
    readMetric: (input) => readMetric(store, input),
    productionOf: (input) => productionOf(store, input),
    claimPromotion: (input) => claimPromotion(deps, input),
    promoteModel: (input) => promoteModel(deps, input),
    releaseCapacity: (input, signal) => releaseCapacity(deps, input, signal),
    tellRun: (input, signal) => tellRun(deps, input, signal),
    finishRun: (input) => finishRun(deps, input),
  })
}

/** Puts a decision with its inputs on the record of the run; the answer of an earlier try counts. */
async function onRecord<Answer>(
  { store, now }: RetrainingDeps,
  { input, run, recordSeq }: RunTask,
  {
    kind,
    summary,
    inputs,
    answer,
  }: { kind: RunEntry['kind']; summary: string; inputs: object; answer: Answer },
): Promise<Answer> {
  const entry = { seq: recordSeq, atMs: now(), kind, summary, data: { inputs, answer } }
  const stored = await putRunEntry(store, { schedule: input.schedule, run: run.id }, entry)
  return stored.data.answer
}

async function decideCapacity(deps: RetrainingDeps, question: CapacityQuestion): Promise<CapacityDecision> {
  const { input, run, tried, trainings, last, spentMicroUsd } = question
  const { spec, schedule, owner, deployment, uiUrl } = input
  const nowMs = deps.now()
  const facts: CapacityFacts = {
    plan: spec.capacity!,
    dates: run.dates,
    tried,
    nowMs,
    awaitedBy: { jobId: runJobId(run, { part: 'training', number: trainings + 1 }), schedule, run: run.id },
    last,
    leftMicroUsd: leftOfBudget(spec.budgetMicroUsd, spentMicroUsd),
    extension: extensionOf(question, nowMs),
  }
  const next = nextCapacity(facts)
  const index = next.kind === 'give-up' ? 0 : next.index
  const reservationId = reservationIdOf(schedule, run.id, index)
  const pageUrl = uiUrl && workflowPage(uiUrl, reservationWorkflowId(reservationId))
  const decision: CapacityDecision =
    next.kind !== 'reserve'
      ? next
      : {
          kind: 'reserve',
          index: next.index,
          message: next.message,
          input: {
            ...next.reservation,
            reservationId,
            owner,
            deployment,
            submittedAtMs: nowMs,
            pageUrl,
            purpose: `training of ${schedule}, ${run.id}`,
            notifyWorkflowId: question.notifyWorkflowId,
          },
        }
  return onRecord(deps, question, {
    kind: 'capacity',
    summary: decision.message,
    inputs: facts,
    answer: decision,
  })
}

/** Returns the file's limits for extensions. Without an extension the training continues as the file says. */
function extensionOf(question: CapacityQuestion, nowMs: number): CapacityFacts['extension'] {
  const { input, run } = question
  const { extendMaxMicroUsd: maxMicroUsd, backends = [] } = input.spec.overrun
  if (maxMicroUsd === undefined) return undefined
  const trainings = runJobId(run, { part: 'training' })
  return {
    maxMicroUsd,
    purpose: { trainings, backends, regions: regionsOf(question, nowMs) },
  }
}

/** Returns the Regions of the training. The checks report a file that is invalid for this run. */
function regionsOf(question: CapacityQuestion, nowMs: number): readonly string[] | undefined {
  try {
    return specOf({ ...question, part: 'training', jobId: '' }, nowMs).regions
  } catch {
    return undefined
  }
}

/** Returns an id that is the same at every try, so that nothing is requested twice. */
function reservationIdOf(...parts: (string | number)[]): string {
  return `res-${createHash('sha256').update(parts.join('/')).digest('hex').slice(0, ID_LENGTH)}`
}

const ID_LENGTH = 10

async function decideOverrun(deps: RetrainingDeps, question: OverrunQuestion): Promise<OverrunDecision> {
  const { input, reservation } = question
  const { overrun } = input.spec
  const answer = onOverrun(overrun, { reservation })
  return onRecord(deps, question, {
    kind: 'overrun',
    summary: answer.message,
    inputs: { overrun, reservation },
    answer,
  })
}

/** Reads a reservation. One whose workflow was terminated by hand does not report that. */
async function readReservation(
  { client }: RetrainingDeps,
  { reservationId: id }: { reservationId: string },
  signal: AbortSignal,
): Promise<ReservationNotice> {
  const handle = client.workflow.getHandle(reservationWorkflowId(id))
  try {
    return await client.withAbortSignal(signal, async () => {
      const [{ status }, last] = await Promise.all([
        handle.describe(),
        handle.query<ReservationStatus>(RESERVATION_QUERY),
      ])
      const { state, message, quote, reservation, spentMicroUsd } = last
      if (!isOpenStatus(status.name) && !isReservationFinal(state))
        return { id, spentMicroUsd, state: 'unavailable', message: 'Its workflow was terminated by hand.' }
      return { id, state, message, spentMicroUsd, quote, reservation }
    })
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return { id, spentMicroUsd: 0, state: 'unavailable', message: 'Its workflow no longer exists.' }
  }
}

/** Updates a reservation. This worker may serve its workflow, in which case no answer comes once the worker shuts down. */
async function updateReservation(
  client: Client,
  reservationId: string,
  { name, update, updateId, signal }: { name: string; update: object; updateId: string; signal: AbortSignal },
): Promise<void> {
  try {
    const handle = client.workflow.getHandle(reservationWorkflowId(reservationId))
    await client.withAbortSignal(signal, () => handle.executeUpdate(name, { args: [update], updateId }))
  } catch (error) {
    // A repeated request under the same id gets the same answer.
    if (signal.aborted)
      throw new BackendError({ class: 'transient', message: 'The wait for the answer was aborted.' })
    const { class: failureClass, message } = failureFrom(error)
    throw new BackendError({ class: failureClass === 'unclassified' ? 'invalid' : failureClass, message })
  }
}

/** Releases hourly capacity, which costs money until then. Prepaid capacity is paid, and the owner's other jobs may use it. */
async function releaseCapacity(
  { client }: RetrainingDeps,
  { reservationId, kind, input, run, recordSeq }: Parameters<RetrainingActivities['releaseCapacity']>[0],
  signal: AbortSignal,
): Promise<{ message: string }> {
  if (kind === 'prepaid') {
    const left = `The rest of the reservation ${reservationId} stays for other jobs of ${input.owner}`
    return { message: `${left}: they ask for reserved capacity in \`backends\`.` }
  }
  const update: ReleaseUpdate = { by: `${retrainScheduleId(input.schedule)}`, chargeMaxMicroUsd: 0 }
  const updateId = `release/${run.id}/${recordSeq}`
  await updateReservation(client, reservationId, { name: RELEASE_UPDATE, update, updateId, signal })
  return { message: `The reservation ${reservationId} was released.` }
}
