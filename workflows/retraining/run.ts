import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { defined, without } from '../../core/defined'
import type { Failure } from '../../core/failure'
import { STATUS_QUERY } from '../../core/messages'
import type { MicroUsd } from '../../core/money/money'
import {
  isRetrainFinal,
  type RetrainCarry,
  type RetrainInput,
  type RetrainState,
  type RetrainStatus,
  type RunPlacement,
  type RunRef,
  type RunTask,
} from '../../core/retraining/run'
import {
  isReservationFinal,
  RESERVATION_SIGNAL,
  type ReservationInput,
  type ReservationNotice,
  type ReservationState,
} from '../../core/reservation/reserving'
import { howToApprovePurchase } from '../../core/reservation/reservation'
import { MINUTE_MS } from '../../core/time/time'
import { workflowPage } from '../../core/ui-pages'
import { setAttributes } from '../attributes'
import { kept, Retries, type TroublePage } from '../forever'
import { attempted } from './activities'
import { retrainDetails } from './page'
import { listen } from './requests'

const statusQuery = defineQuery<RetrainStatus>(STATUS_QUERY)
const reservationSignal = defineSignal<[ReservationNotice]>(RESERVATION_SIGNAL)

/** Number 0 is the start of the run. */
const FIRST_FREE_SEQ = 1
/** Warnings kept in the status. */
const WARNINGS_KEPT = 50
const DEAF = 'The webhook refused the event.'
/** A post is tried for a minute at most, five times. */
const TOLD_MS = 6 * MINUTE_MS
/** Reservations kept in the status. */
const RESERVATIONS_MAX = 10

/** States in which nothing happens until a person decides. */
const NEEDS_PERSON: readonly ReservationState[] = ['awaiting-approval', 'undecided']

function howToDecide({ id, state }: ReservationNotice): string {
  return state === 'awaiting-approval'
    ? howToApprovePurchase(id)
    : `See \`crucible reservations show ${id}\`.`
}

/** Reason why a run ends before its training is over. */
export interface Stop {
  state: 'skipped' | 'cancelled'
  message: string
}

/** Everything that a run carries from one step to the next, and what its owner is shown. */
export class RetrainRun implements TroublePage {
  readonly status: RetrainStatus
  readonly retries = new Retries()
  readonly input: Omit<RetrainInput, 'carry'>
  stop: Stop | undefined
  isStartedNow: boolean
  /** Whether the run waits for a person to decide if the model goes into production. */
  isAsking = false
  /** The placement was checked; another one is checked again. */
  isChecked: boolean
  isRehearsed: boolean
  /** Events of a reservation that need a person. */
  readonly news: string[]
  placement: RunPlacement | undefined
  /** The reservation that is searched for. */
  search: ReservationInput | undefined
  /** Whether its workflow has not been started yet. */
  isUnbegun: boolean
  stepsTried: number
  /** Trainings that were prepared: each has its number in the id of its job. */
  trainings: number
  private recordSeq: number
  private telling = kept(Promise.resolve())
  /** Number of events that are neither posted nor given up. */
  private untold = 0

  constructor(input: RetrainInput) {
    const { carry } = input
    this.input = without(input, ['carry'])
    this.status = carry?.status ?? {
      schedule: input.schedule,
      revision: input.revision,
      owner: input.owner,
      state: 'starting',
      message: 'Determining the dates.',
      startedAtMs: workflowInfo().startTime.getTime(),
      reservations: [],
      warnings: [],
      jobs: [],
    }
    const { uiUrl } = input
    if (uiUrl !== undefined) this.status.pageUrl = workflowPage(uiUrl, workflowInfo().workflowId)
    this.placement = carry?.placement
    this.search = carry?.search
    this.isUnbegun = carry?.isUnbegun === true
    this.isStartedNow = carry?.isStartedNow === true
    this.isChecked = carry?.isChecked === true
    this.isRehearsed = carry?.isRehearsed === true
    this.news = carry?.news ?? []
    this.stepsTried = carry?.stepsTried ?? 0
    this.trainings = carry?.trainings ?? 0
    this.recordSeq = carry?.recordSeq ?? FIRST_FREE_SEQ
    setHandler(statusQuery, () => this.status, { description: 'State of the run, with its reason.' })
    setHandler(reservationSignal, (notice) => this.noticed(notice), {
      description: 'Event of a reservation.',
    })
    CancellationScope.current().cancelRequested.catch(() => {
      this.stop ??= { state: 'cancelled', message: 'Cancelled in Temporal.' }
    })
    listen(this)
    this.show()
  }

  get run(): RunRef {
    if (this.status.run === undefined) throw new Error('the run is not resolved yet')
    return this.status.run
  }

  get dates(): RunRef['dates'] {
    return this.run.dates
  }

  resolved(run: RunRef): void {
    this.recordSeq = Math.max(this.recordSeq, run.firstSeq ?? 0)
    this.update({ run })
  }

  /** Returns the input of every activity, with the next number of the record. */
  task(): RunTask {
    const { input, run, recordSeq } = this
    this.recordSeq += 1
    return { input, run, recordSeq }
  }

  private carry(): RetrainCarry {
    const { stepsTried, trainings, recordSeq, placement, search, news } = this
    // The fresh history may first retry the step that had a problem; only another failure shows it again.
    const status = without(this.status, ['trouble'])
    const only = (flag: boolean): true | undefined => (flag ? true : undefined)
    return {
      status,
      stepsTried,
      trainings,
      recordSeq,
      news,
      run: status.run,
      placement,
      search,
      isStartedNow: only(this.isStartedNow),
      isChecked: only(this.isChecked),
      isRehearsed: only(this.isRehearsed),
      isUnbegun: only(this.isUnbegun),
    }
  }

  /** Whether its history is long and no job of it runs. A reservation continues in its own workflow. */
  get isLong(): boolean {
    const hasJob = this.status.jobs.some(({ endedAtMs }) => endedAtMs === undefined)
    return workflowInfo().continueAsNewSuggested && this.isBeforeTraining && !hasJob
  }

  /** Continues in a fresh history if its own has become long. Requests of people are completed first. */
  async continueFresh(): Promise<void> {
    if (!this.isLong || this.stop !== undefined) return
    await condition(allHandlersFinished)
    await this.told()
    if (this.stop !== undefined) return
    const { input } = this
    await continueAsNew<(input: RetrainInput) => Promise<unknown>>({ ...input, carry: this.carry() })
  }

  get isBeforeTraining(): boolean {
    return ['starting', 'searching', 'waiting', 'checking'].includes(this.status.state)
  }

  /** The current reservation, as last heard. */
  get notice(): ReservationNotice | undefined {
    return this.status.reservations.at(-1)
  }

  get isCapacityLost(): boolean {
    return (
      this.placement?.kind === 'reserved' &&
      this.notice !== undefined &&
      isReservationFinal(this.notice.state)
    )
  }

  /** A new reservation was asked for. */
  asked(id: string): void {
    const asked: ReservationNotice = { id, state: 'searching', message: 'Asked for.', spentMicroUsd: 0 }
    this.update({ reservations: [...this.status.reservations, asked].slice(-RESERVATIONS_MAX) })
  }

  /** Events may arrive late, also those of an earlier reservation. */
  noticed(notice: ReservationNotice): void {
    const { reservations } = this.status
    const before = reservations.find(({ id }) => id === notice.id)
    if (before === undefined) return
    const isSame = before.state === notice.state && before.message === notice.message
    this.update({ reservations: reservations.map((each) => (each.id === notice.id ? notice : each)) })
    if (!isSame && NEEDS_PERSON.includes(notice.state))
      this.news.push(`Capacity ${notice.id}: ${notice.message} ${howToDecide(notice)}`)
    const { placement } = this
    const isCurrent = placement?.kind === 'reserved' && this.notice?.id === notice.id
    if (isCurrent && notice.reservation !== undefined) placement.reservation = notice.reservation
  }

  get capacityMicroUsd(): MicroUsd {
    return this.status.reservations.reduce((sum, { spentMicroUsd }) => sum + spentMicroUsd, 0)
  }

  get spentMicroUsd(): MicroUsd {
    return this.status.jobs.reduce((sum, { costMicroUsd = 0 }) => sum + costMicroUsd, this.capacityMicroUsd)
  }

  /** The rest of the run's budget; undefined without one. */
  get leftMicroUsd(): MicroUsd | undefined {
    const { budgetMicroUsd } = this.input.spec
    return budgetMicroUsd === undefined ? undefined : Math.max(0, budgetMicroUsd - this.spentMicroUsd)
  }

  /** Changes the state, with one event per change; the same state again only updates the message. `untilAtMs` is the end of a wait. */
  move(state: RetrainState, message: string, untilAtMs?: number): void {
    const isNews = this.status.state !== state
    delete this.status.untilAtMs
    Object.assign(this.status, { state, message, untilAtMs })
    if (isNews) setAttributes({ state, reason: state })
    this.show()
  }

  update(more: Partial<RetrainStatus>): void {
    Object.assign(this.status, defined(more))
    this.show()
  }

  /** An early word: to the page, and to the webhook. */
  warn(...warnings: string[]): void {
    if (warnings.length === 0) return
    this.addWarnings(...warnings)
    this.tell()
  }

  /** Adds warnings without posting them. Their number is limited, because each post contains all of them for the whole run. */
  addWarnings(...warnings: string[]): void {
    this.update({ warnings: [...this.status.warnings, ...warnings].slice(-WARNINGS_KEPT) })
  }

  /** Posts the status to the webhook, if one is set. Nothing waits for it, because a silent webhook must not delay a launch. */
  tell(): void {
    const { webhook, webhookSecret } = this.input.spec.notify
    if ((webhook ?? webhookSecret) === undefined) return
    const task = { ...this.task(), status: { ...this.status } }
    this.untold += 1
    const post = async (): Promise<void> => {
      try {
        await attempted.tellRun(task)
      } catch {
        if (this.status.warnings.at(-1) !== DEAF) this.addWarnings(DEAF)
      } finally {
        this.untold -= 1
      }
    }
    this.telling = kept(this.telling.then(post))
  }

  /** Waits until the events were posted or given up. */
  async told(): Promise<void> {
    const isTold = (): boolean => this.untold === 0
    if (!isTold()) await condition(isTold, TOLD_MS, { summary: 'until the event is posted' })
  }

  trouble(failure: Failure | undefined): void {
    if (failure === undefined) delete this.status.trouble
    else this.status.trouble = failure.message
    this.show()
  }

  get isOver(): boolean {
    return isRetrainFinal(this.status.state)
  }

  private show(): void {
    setCurrentDetails(retrainDetails(this.status))
  }
}
