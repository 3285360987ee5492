import { defineQuery, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow'
import type { CopyOutcome, Settlement } from '../../core/activities'
import { attemptOf, settledAttempt } from '../../core/job/attempt-record'
import type { DrainReason } from '../../core/documents'
import type { Failure } from '../../core/failure'
import { isFinal, JOB_TRANSITIONS, type JobReason, type JobState } from '../../core/job/job'
import type { AttemptRecord } from '../../core/job/ledger'
import {
  ATTEMPTS_SHOWN_MAX,
  STATUS_QUERY,
  type JobInput,
  type JobStatus,
  type Pause,
  type WarningNotice,
} from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { setAttributes, type Attributes } from '../attributes'
import { Retries } from '../forever'
import { jobDetails } from './details'

const statusQuery = defineQuery<JobStatus>(STATUS_QUERY)

/** The one state of a job: the query, the search attributes and the page in the Temporal UI show it. */
export class JobPage {
  readonly status: JobStatus
  readonly retries = new Retries()
  /** Whether the search attributes lack the newest state. */
  private isBehind = false

  constructor(input: JobInput) {
    const { spec } = input
    this.status = input.carry?.status ?? {
      id: input.jobId,
      name: spec.name,
      owner: input.owner,
      state: 'pending',
      reason: 'submitted',
      message: 'Submitted.',
      submittedAtMs: input.submittedAtMs,
      spentMicroUsd: 0,
      attempts: [],
      attemptsTotal: 0,
      placementReasons: [],
      isRehearsal: input.isRehearsal || undefined,
      deadlineAtMs: spec.deadlineAtMs,
      budgetMicroUsd: spec.budgetMicroUsd,
    }
    this.status.runId = workflowInfo().runId
    setHandler(statusQuery, () => this.status, { description: 'State of the job, with its reason.' })
    this.show()
  }

  /** Status for the record, without temporary problems, which are not part of a job's end. */
  get settledStatus(): JobStatus {
    const status = { ...this.status }
    delete status.trouble
    return status
  }

  get isOver(): boolean {
    return isFinal(this.status.state)
  }

  /** Changes the state, with one event per change. The same state again only updates the message. */
  move(state: JobState, reason: JobReason, message: string): void {
    const { status } = this
    if (status.state !== state && !JOB_TRANSITIONS[status.state].includes(state)) return
    const isNews = status.state !== state || status.reason !== reason || this.isBehind
    Object.assign(status, { state, reason, message })
    // Currently on no backend.
    if (state === 'recovering') status.placementReasons = []
    if (isNews) this.publish({ state, reason })
    this.show()
  }

  /** Between two attempts. Leaves the search attributes to the next step, which usually comes in the same workflow task. */
  recovering(reason: JobReason, message: string): void {
    Object.assign(this.status, { state: 'recovering', reason, message, placementReasons: [] })
    this.isBehind = true
    this.show()
  }

  /** Updates only the words, without an event. */
  say(reason: JobReason, message: string): void {
    Object.assign(this.status, { reason, message })
    this.show()
  }

  /** Notes that the checkpoint to resume from is now among the job's own. */
  copied({ checkpoint }: CopyOutcome): void {
    this.status.checkpoint = checkpoint
    this.say('planning', 'Looking for an offer.')
  }

  /**
   * Notes that an attempt is placed. The attempt's own page shows whether its machine exists and its workload runs, and views combine both.
   * During a pause before its order, the reason is that of the pause.
   */
  begin(order: Order, reasons: string[], pause?: Pause): void {
    const { status } = this
    const attempt = attemptOf(order, pause && Date.now() + pause.forMs)
    const words: Pick<JobStatus, 'reason' | 'message'> =
      pause === undefined
        ? { reason: 'under-way', message: `Attempt ${order.attempt} is in progress.` }
        : {
            reason: pause.reason,
            message: `${pause.message} Attempt ${order.attempt} ${attempt.reason}.`,
          }
    status.attempts = [...status.attempts, attempt].slice(-ATTEMPTS_SHOWN_MAX)
    status.attemptsTotal += 1
    Object.assign(status, { state: 'running', ...words, placementReasons: reasons })
    this.publish({
      state: 'running',
      reason: words.reason,
      backend: `${order.backend}:${order.capacityType}`,
    })
    this.show()
  }

  stopping(reason: DrainReason): void {
    const [jobReason, message] = STOPPING[reason]
    this.move('stopping', jobReason, message)
  }

  warned({ attempt: number, warning }: WarningNotice): void {
    const attempt = this.lastAttempt
    if (attempt?.number !== number) return
    if (warning === null) delete attempt.warning
    else attempt.warning = warning
    this.show()
  }

  settled(settlement: Settlement): void {
    const { status } = this
    const attempt = this.lastAttempt
    status.spentMicroUsd += settlement.costMicroUsd
    if (settlement.checkpoint !== undefined) status.checkpoint = settlement.checkpoint
    if (attempt === undefined) return
    Object.assign(attempt, settledAttempt(attempt, settlement))
    this.show()
  }

  trouble(failure: Failure | undefined): void {
    if (failure === undefined) delete this.status.trouble
    else this.status.trouble = failure.message
    // The problem may last, so the search attributes must be correct meanwhile.
    const { state, reason } = this.status
    if (this.isBehind) this.publish({ state, reason })
    this.show()
  }

  private publish(attributes: Attributes): void {
    this.isBehind = false
    setAttributes(attributes)
  }

  private get lastAttempt(): AttemptRecord | undefined {
    return this.status.attempts.at(-1)
  }

  private show(): void {
    setCurrentDetails(jobDetails(this.status))
  }
}

const STOPPING: Readonly<Record<DrainReason, [JobReason, string]>> = {
  cancelled: ['cancelling', 'Cancelled: the workload saves and stops.'],
  migrated: ['migrating', 'Moving: the workload saves first.'],
  deadline: ['deadline-reached', 'The deadline is near: the workload saves and stops.'],
  budget: ['budget-reached', 'The budget is nearly used up: the workload saves and stops.'],
  expired: ['reservation-ended', 'The time of its machine is nearly up: the workload saves first.'],
  superseded: ['attempt-ended-by-hand', 'The attempt was terminated by hand.'],
}
