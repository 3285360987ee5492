import { getExternalWorkflowHandle, workflowInfo } from '@temporalio/workflow'
import {
  howToApprovePurchase,
  type CapacityQuote,
  type ReservationOrder,
} from '../../core/reservation/reservation'
import { failureFrom } from '../../core/failure'
import type { MicroUsd } from '../../core/money/money'
import {
  isAsApproved,
  RESERVATION_SIGNAL,
  type JudgedQuote,
  type ReservationCarry,
  type ReservationEvent,
  type ReservationInput,
  type ReservationNotice,
} from '../../core/reservation/reserving'
import type { HoldState, ReservationTask } from '../../core/reservation/activities'
import { monthOf, reservationBudgetId, type MonthlyBudgetRequest } from '../../core/money/treasury'
import { forever, kept } from '../forever'
import { ReservationPage } from './page'
import { ReservationRequests } from './commands'
import { reservationDocuments, telling } from './activities'

/** Record number 0 is the request. */
const FIRST_FREE_SEQ = 1

/** Everything that a reservation carries from one step to the next. */
export class ReservationRun {
  readonly page: ReservationPage
  readonly requests: ReservationRequests
  sends: number
  held: HoldState | undefined
  paymentFailures: number
  /** Payments for reservations of this request that were lost. */
  earlierMicroUsd: MicroUsd
  /** The offer whose approval was last requested. */
  private askedFor: CapacityQuote | undefined
  /** Time of the last observation of the reservation; missing before the first one. */
  lookedAtMs: number | undefined
  /** Reservations that were split off. */
  readonly parts: string[]
  private recordSeq: number
  /** Money of a month that is promised to the reservation. */
  private promise: ReservationCarry['promise']
  private telling = kept(Promise.resolve())

  constructor(readonly input: ReservationInput) {
    const { carry } = input
    this.page = new ReservationPage(input)
    this.requests = new ReservationRequests(this.page)
    this.sends = carry?.sends ?? 0
    this.recordSeq = carry?.recordSeq ?? FIRST_FREE_SEQ
    this.held = carry?.held
    this.paymentFailures = carry?.paymentFailures ?? 0
    this.earlierMicroUsd = carry?.earlierMicroUsd ?? 0
    this.askedFor = carry?.askedFor
    this.lookedAtMs = carry?.lookedAtMs
    this.promise = carry?.promise
    this.parts = carry?.parts ?? []
    this.page.onMove = () => this.tell()
  }

  /** Returns the input of every activity, with the next number of the record, or the first of several. */
  task(entries = 1): ReservationTask {
    const { reservationId, deployment, owner } = this.input
    const { recordSeq } = this
    this.recordSeq += entries
    return { reservationId, deployment, owner, recordSeq }
  }

  /** True before the first activity. */
  isFirstLook(): boolean {
    return this.recordSeq === FIRST_FREE_SEQ
  }

  /** Waits for a request, a retry by a person, or the next observation. */
  async pause(forMs: number, summary: string): Promise<void> {
    const { page, requests } = this
    if (requests.isAny) return
    page.update({ nextLookAtMs: Date.now() + forMs })
    await page.retries.pause(forMs, { summary, isOver: () => requests.isAny })
    page.forget('nextLookAtMs')
  }

  /** Reserves money of the month of a purchase. Returns why it cannot, if it cannot. */
  async promiseMoney(
    { send, month = monthOf(Date.now()) }: Pick<ReservationOrder, 'send' | 'month'>,
    microUsd: MicroUsd,
  ): Promise<string | undefined> {
    const { owner } = this.input
    const jobId = reservationBudgetId(this.input.reservationId, send)
    if (this.promise !== undefined && this.promise.month !== month) await this.settleMoney(0)
    const refusal = await this.promised({ jobId, owner, month, microUsd })
    if (refusal === undefined) this.promise = { jobId, month, microUsd }
    return refusal
  }

  /** Raises the promise for the reservation, in the month in which it was bought. Returns the reason of a refusal. */
  async raiseMoney(microUsd: MicroUsd): Promise<string | undefined> {
    const { reservationId, owner } = this.input
    const { jobId, month } = this.promise ?? {
      jobId: reservationBudgetId(reservationId, Math.max(1, this.sends)),
      month: monthOf(Date.now()),
    }
    const refusal = await this.promised({ jobId, owner, month, microUsd })
    if (refusal === undefined) this.promise = { jobId, month, microUsd }
    return refusal
  }

  /** Undoes a raise for a change that was not made. */
  async lowerMoney(microUsd: MicroUsd): Promise<void> {
    const { promise } = this
    if (promise === undefined || promise.microUsd <= microUsd) return
    const { jobId, month } = promise
    await this.promised({ jobId, owner: this.input.owner, month, microUsd, isLowered: true })
    this.promise = { ...promise, microUsd }
  }

  /** Moves a share of the promise to a part that was split off, in the same month. */
  async moveMoney(
    newId: string,
    microUsd: MicroUsd,
  ): Promise<{ jobId: string; month: string; microUsd: MicroUsd }> {
    const { promise } = this
    const { reservationId, owner } = this.input
    const { jobId: from, month } = promise ?? {
      jobId: reservationBudgetId(reservationId, Math.max(1, this.sends)),
      month: monthOf(Date.now()),
    }
    const jobId = reservationBudgetId(newId, 1)
    // Refused only for a month whose treasury was ended by hand, which keeps no money.
    await this.promised({ jobId, owner, month, microUsd, from })
    if (promise !== undefined)
      this.promise = { ...promise, microUsd: Math.max(0, promise.microUsd - microUsd) }
    return { jobId, month, microUsd }
  }

  /** Promises money; returns undefined, or the reason of a refusal. */
  async promised(request: MonthlyBudgetRequest): Promise<string | undefined> {
    return forever(async () => {
      try {
        await reservationDocuments.promiseBudget(request)
        return undefined
      } catch (error) {
        const { class: failureClass, message, hint } = failureFrom(error)
        if (failureClass !== 'quota') throw error
        return [message, hint].filter(Boolean).join(' ')
      }
    }, this.page)
  }

  /** Notes a purchase of this request that its own history does not know, because it was reset. */
  tookPlace(
    { send, month = monthOf(Date.now()) }: Pick<ReservationOrder, 'send' | 'month'>,
    microUsd: MicroUsd,
  ): void {
    this.sends = Math.max(this.sends, send)
    this.promise ??= { jobId: reservationBudgetId(this.input.reservationId, send), month, microUsd }
  }

  /** The rest of the promised money is free again. */
  async settleMoney(spentMicroUsd: MicroUsd): Promise<void> {
    const { promise } = this
    if (promise === undefined) return
    const { owner } = this.input
    await forever(
      () =>
        reservationDocuments.settleBudget({
          month: promise.month,
          jobId: promise.jobId,
          owner,
          spentMicroUsd,
          isCertain: true as const,
        }),
      this.page,
    )
    this.promise = undefined
  }

  /** The next purchase. */
  order(quote: CapacityQuote): ReservationOrder {
    const { reservationId: intent, deployment, owner, wish } = this.input
    const month = monthOf(Date.now())
    return { intent, send: this.sends + 1, deployment, owner, backend: wish.backend, quote, month }
  }

  /** Notes that purchases up to this one have certainly ended; this history may not know all of them. */
  async passed(sends: number): Promise<void> {
    const unknown = Array.from({ length: sends - this.sends }, (_, index) => this.sends + 1 + index)
    this.sends = sends
    if (unknown.length === 0) return
    const { reservationId } = this.input
    await forever(() => reservationDocuments.releaseBudget({ reservationId, sends: unknown }), this.page)
  }

  /** Figures of the reservation, for its page. */
  figures(): object {
    const { reservation, upfrontMicroUsd, idleMicroUsd, idleMs } = this.held!
    return {
      reservation,
      spentMicroUsd: this.earlierMicroUsd + upfrontMicroUsd + idleMicroUsd,
      idleMicroUsd,
      idleSinceMs: idleMs === 0 ? undefined : Date.now() - idleMs,
    }
  }

  get isLong(): boolean {
    return workflowInfo().continueAsNewSuggested && !this.requests.isAny
  }

  carry(): ReservationCarry {
    const { sends, recordSeq, held, promise, paymentFailures, earlierMicroUsd, askedFor, lookedAtMs } = this
    return {
      status: this.page.status,
      sends,
      recordSeq,
      paymentFailures,
      earlierMicroUsd,
      parts: this.parts,
      held,
      promise,
      askedFor,
      lookedAtMs,
    }
  }

  /** Posts an event to the webhook, if one is set. Nothing waits for it, and a silent webhook stops nothing. */
  report(event: ReservationEvent, text: string): void {
    const { webhookOf, pageUrl } = this.input
    if (webhookOf === undefined) return
    const news = { event, text }
    const task = { ...this.task(), webhookOf, status: { ...this.page.status }, news, pageUrl }
    const post = async (): Promise<void> => {
      try {
        await telling.tellReservation(task)
        this.page.forget('webhookTrouble')
      } catch (error) {
        this.page.update({
          webhookTrouble: `The webhook refused the event: ${failureFrom(error).message}`,
        })
      }
    }
    this.telling = kept(this.telling.then(post))
  }

  /** Waits for an approval. The event is posted once for each offer, and not while the same one becomes cheaper. */
  ask(judged: JudgedQuote, message: string): void {
    const { quote } = judged
    const wasAsked = this.page.status.state === 'awaiting-approval'
    this.page.move('awaiting-approval', message, { quote: judged })
    if (wasAsked && this.askedFor !== undefined && isAsApproved(quote, this.askedFor)) return
    this.askedFor = quote
    const { reservationId: id } = this.input
    this.report('waits-for-approval', `${message} ${howToApprovePurchase(id)}`)
  }

  /** Waits until every event has been sent. */
  async told(): Promise<void> {
    await this.telling
  }

  private tell(): void {
    const { notifyWorkflowId } = this.input
    if (notifyWorkflowId === undefined) return
    const { id, state, message, quote, reservation, spentMicroUsd } = this.page.status
    const notice: ReservationNotice = {
      id,
      state,
      message,
      spentMicroUsd,
      quote,
      reservation,
    }
    const handle = getExternalWorkflowHandle(notifyWorkflowId)
    // The workflow that waits for it may be over.
    const signalled = kept(handle.signal(RESERVATION_SIGNAL, notice).catch(() => undefined))
    this.telling = kept(this.telling.then(() => signalled))
  }
}
