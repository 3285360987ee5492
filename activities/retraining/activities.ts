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
  /** Without the key, schedules with secrets cannot run. */
  key?: Buffer | undefined
  /** Where a job of this owner could run now. */
  preview: (spec: JobSpec, owner: string) => Promise<PlanReport>
  /** Whether an input can be read, by the scheme of its URL. */
  measure: MeasureSource
  /** Posts a document. Throws if it is not taken. */
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

/** What the file allows for extensions: for the training, which continues by the file without one. */
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

/** Of the training itself. A file that is invalid for this run is reported by the checks. */
function regionsOf(question: CapacityQuestion, nowMs: number): readonly string[] | undefined {
  try {
    return specOf({ ...question, part: 'training', jobId: '' }, nowMs).regions
  } catch {
    return undefined
  }
}

/** The same at every try, so that nothing is asked for twice. */
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

/** One that was ended by hand says nothing about that itself. */
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
        return { id, spentMicroUsd, state: 'unavailable', message: 'Its workflow was ended by hand.' }
      return { id, state, message, spentMicroUsd, quote, reservation }
    })
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
    return { id, spentMicroUsd: 0, state: 'unavailable', message: 'Its workflow is not there any more.' }
  }
}

/** Its workflow may be served by this very worker: once that shuts down, no answer comes. */
async function updateReservation(
  client: Client,
  reservationId: string,
  { name, update, updateId, signal }: { name: string; update: object; updateId: string; signal: AbortSignal },
): Promise<void> {
  try {
    const handle = client.workflow.getHandle(reservationWorkflowId(reservationId))
    await client.withAbortSignal(signal, () => handle.executeUpdate(name, { args: [update], updateId }))
  } catch (error) {
    // Asked again under the same id, it gives the same answer.
    if (signal.aborted) throw new BackendError({ class: 'transient', message: 'The answer was not awaited.' })
    const { class: failureClass, message } = failureFrom(error)
    throw new BackendError({ class: failureClass === 'unclassified' ? 'invalid' : failureClass, message })
  }
}

/** Hourly capacity costs money until it is given back; prepaid capacity is paid, and the owner's other jobs may use it. */
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
  return { message: `The reservation ${reservationId} was given back.` }
}
