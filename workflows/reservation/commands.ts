import { ApplicationFailure, CancellationScope, defineUpdate, setHandler } from '@temporalio/workflow'
import { carrying } from '../../core/failure'
import type { UpdateReceipt } from '../../core/messages'
import { plural } from '../../core/plural'
import { priceInWords } from '../../core/reservation/quote-words'
import { formatUsd } from '../../core/money/money'
import type { CapacityQuote } from '../../core/reservation/reservation'
import { SHARES } from '../../core/reservation/hold'
import {
  APPROVE_UPDATE,
  DECIDE_PURCHASE_UPDATE,
  EXTEND_RESERVATION_UPDATE,
  quoteKey,
  REJECT_UPDATE,
  RESERVATION_ID_PATTERN,
  RELEASE_UPDATE,
  RESIZE_RESERVATION_UPDATE,
  SPLIT_RESERVATION_UPDATE,
  type ApproveUpdate,
  type DecidePurchaseUpdate,
  type ExtendReservationUpdate,
  type RejectUpdate,
  type ReleaseUpdate,
  type ResizeReservationUpdate,
  type SplitReservationUpdate,
} from '../../core/reservation/reserving'
import { formatDuration } from '../../core/time/time'
import type { ReservationPage } from './page'

const approveUpdate = defineUpdate<UpdateReceipt, [ApproveUpdate]>(APPROVE_UPDATE)
const rejectUpdate = defineUpdate<UpdateReceipt, [RejectUpdate]>(REJECT_UPDATE)
const decideUpdate = defineUpdate<UpdateReceipt, [DecidePurchaseUpdate]>(DECIDE_PURCHASE_UPDATE)
const extendUpdate = defineUpdate<UpdateReceipt, [ExtendReservationUpdate]>(EXTEND_RESERVATION_UPDATE)
const resizeUpdate = defineUpdate<UpdateReceipt, [ResizeReservationUpdate]>(RESIZE_RESERVATION_UPDATE)
const splitUpdate = defineUpdate<UpdateReceipt, [SplitReservationUpdate]>(SPLIT_RESERVATION_UPDATE)
const releaseUpdate = defineUpdate<UpdateReceipt, [ReleaseUpdate]>(RELEASE_UPDATE)

/** Requests of people that the workflow has not completed. */
export class ReservationRequests {
  approved: CapacityQuote | undefined
  rejected: RejectUpdate | undefined
  decision: Request<DecidePurchaseUpdate> | undefined
  extension: Request<ExtendReservationUpdate> | undefined
  resize: Request<ResizeReservationUpdate> | undefined
  split: Request<SplitReservationUpdate> | undefined
  release: Request<ReleaseUpdate> | undefined

  constructor(private readonly page: ReservationPage) {
    CancellationScope.current().cancelRequested.catch(() => {
      this.rejected ??= { by: 'somebody', reason: 'its workflow was cancelled' }
    })
    this.listen()
  }

  private listen(): void {
    const { page } = this
    setHandler(
      approveUpdate,
      ({ by }) => {
        this.approved = page.status.quote!.quote
        page.update({ decision: { kind: 'approved', by, atMs: Date.now() } })
        const price = priceInWords(page.status.quote!.quote)
        return { message: `Approved: ${price}. It is bought now, if it is still for sale.` }
      },
      {
        validator: (update: ApproveUpdate) => this.refuseApproval(update),
        description: 'Buy the offer that is shown.',
      },
    )
    setHandler(
      rejectUpdate,
      (update) => {
        this.rejected = update
        return { message: 'Rejected: nothing is bought, and the search ends.' }
      },
      {
        validator: (_: RejectUpdate) => {
          if (!['searching', 'awaiting-approval'].includes(page.status.state))
            refuse(`Nothing waits for approval: the reservation is ${page.status.state}.`)
        },
        description: 'Do not buy, and stop searching.',
      },
    )
    setHandler(decideUpdate, (update) => (this.decision = new Request(update)).answer, {
      validator: ({ kind }: DecidePurchaseUpdate) => {
        // An extension in question does not change the state of the reservation.
        if (page.status.state !== 'undecided' && page.status.undecided === undefined)
          refuse(`Nothing is undecided: the reservation is ${page.status.state}.`)
        if (this.decision !== undefined) refuse('Another decision is being checked.')
        if (!['bought', 'not-bought'].includes(kind)) refuse('State whether it was bought.')
      },
      description: 'State the outcome of a purchase.',
    })
    setHandler(extendUpdate, (update) => (this.extension = new Request(update)).answer, {
      validator: (update: ExtendReservationUpdate) => this.refuseExtension(update),
      description: 'Extend it.',
    })
    setHandler(resizeUpdate, (update) => (this.resize = new Request(update)).answer, {
      validator: (update: ResizeReservationUpdate) => this.refuseResize(update),
      description: 'Change its machines, its end or its limit.',
    })
    setHandler(splitUpdate, (update) => (this.split = new Request(update)).answer, {
      validator: (update: SplitReservationUpdate) => this.refuseSplit(update),
      description: 'Move free places into a separate reservation.',
    })
    setHandler(releaseUpdate, (update) => (this.release = new Request(update)).answer, {
      validator: (update: ReleaseUpdate) => this.refuseRelease(update),
      description: 'Release it.',
    })
  }

  /** Everything that the workflow reacts to before the next look is due. */
  get isAny(): boolean {
    const { approved, rejected, decision, extension, resize, split, release } = this
    return [approved, rejected, decision, extension, resize, split, release].some((one) => one !== undefined)
  }

  /** Answers all open requests. */
  close(message: string): void {
    for (const request of [this.decision, this.extension, this.resize, this.split, this.release])
      request?.refuse(message)
    this.decision = this.extension = this.resize = this.split = this.release = undefined
  }

  private refuseApproval({ quote }: ApproveUpdate): void {
    const { state, quote: shown } = this.page.status
    if (state !== 'awaiting-approval' || shown === undefined)
      refuse(`Nothing waits for approval: the reservation is ${state}.`)
    if (quoteKey(shown.quote) !== quote)
      refuse('The offer has changed since you saw it: check it again (crucible reservations show).')
  }

  private refuseExtension({ durationMs, endsAtMs, upfrontMaxMicroUsd }: ExtendReservationUpdate): void {
    const { state, wish } = this.page.status
    if (!['scheduled', 'active'].includes(state))
      refuse(`Only held capacity can be extended: the reservation is ${state}.`)
    if (wish.kind !== 'prepaid') refuse('Hourly capacity has no fixed time; it lasts until it is released.')
    if (this.extension !== undefined) refuse('Another extension is being bought.')
    if ((durationMs === undefined) === (endsAtMs === undefined))
      refuse('Give either the duration of the extension or the new end.')
    if (durationMs !== undefined && !(durationMs > 0))
      refuse(`${formatDuration(durationMs)} is not a valid extension.`)
    if (!(upfrontMaxMicroUsd > 0)) refuse('The highest price of the extension is missing.')
  }

  private refuseResize(update: ResizeReservationUpdate): void {
    const { count, endsAtMs, startsAtMs, spendMaxMicroUsd, share } = update
    if (startsAtMs !== undefined) return this.refuseStart(update)
    if (share !== undefined && !SHARES.includes(share)) refuse(`Share it with ${SHARES.join(', ')}.`)
    if ([count, endsAtMs, spendMaxMicroUsd].every((one) => one === undefined)) {
      if (share === undefined)
        refuse(
          'Nothing to change: give the number of machines, the end, the limit, or the sharing of idle places.',
        )
      // The provider is not involved in sharing, so it also applies to prepaid reservations, and before they begin.
      return this.refuseShare()
    }
    this.refuseChange()
    if (count !== undefined) refuseCount(count)
    const { spendMaxMicroUsd: limit } = this.page.status.rule
    if (spendMaxMicroUsd !== undefined && !(spendMaxMicroUsd >= (limit ?? 0)))
      refuse(
        `The limit can only be raised, and it is ${limit === undefined ? 'none' : formatUsd(limit)} now.`,
      )
  }

  private refuseStart({ count, endsAtMs, spendMaxMicroUsd, share }: ResizeReservationUpdate): void {
    const { state, wish } = this.page.status
    if ([count, endsAtMs, spendMaxMicroUsd, share].some((one) => one !== undefined))
      refuse('A new start is the only change of its request.')
    if (state !== 'scheduled')
      refuse(`Only a start that lies ahead can be postponed: the reservation is ${state}.`)
    if (wish.kind !== 'hourly') refuse('Prepaid capacity has fixed dates.')
    if (this.resize !== undefined || this.split !== undefined) refuse('Another change is being made.')
  }

  private refuseShare(): void {
    const { state } = this.page.status
    if (!['unpaid', 'scheduled', 'active'].includes(state))
      refuse(`Only held capacity can be changed: the reservation is ${state}.`)
    if (this.resize !== undefined || this.split !== undefined) refuse('Another change is being made.')
  }

  private refuseSplit({ count, newId }: SplitReservationUpdate): void {
    this.refuseChange()
    refuseCount(count)
    const { id, reservation } = this.page.status
    if (count >= (reservation?.total ?? Infinity))
      refuse(`It has ${plural(reservation!.total, 'machine')}, and keeps at least one.`)
    if (!RESERVATION_ID_PATTERN.test(newId) || newId === id)
      refuse(`"${newId}" is not a valid id for another reservation.`)
  }

  private refuseChange(): void {
    const { state, wish } = this.page.status
    if (state !== 'active') refuse(`Only active capacity can be changed: the reservation is ${state}.`)
    if (wish.kind !== 'hourly') refuse('Prepaid capacity is paid for, and keeps its machines until its end.')
    if (this.resize !== undefined || this.split !== undefined) refuse('Another change is being made.')
  }

  private refuseRelease({ chargeMaxMicroUsd }: ReleaseUpdate): void {
    const { state, wish } = this.page.status
    if (!Number.isFinite(chargeMaxMicroUsd) || chargeMaxMicroUsd < 0)
      refuse('State the accepted charge: 0 for none.')
    if (!['unpaid', 'scheduled', 'active'].includes(state))
      refuse(`Nothing is held: the reservation is ${state}.`)
    if (wish.kind !== 'hourly')
      refuse('Prepaid capacity cannot be released: it is paid for until its end. Let other jobs use it.')
    if (this.release !== undefined) refuse('It is being released.')
  }
}

function refuseCount(count: number): void {
  if (!Number.isInteger(count) || count < 1) refuse(`Invalid number of machines: ${count} (minimum 1).`)
}

/** An update whose answer the workflow's main line gives. */
export class Request<T> {
  readonly answer: Promise<UpdateReceipt>
  private settle!: { done: (receipt: UpdateReceipt) => void; refused: (error: unknown) => void }

  constructor(readonly update: T) {
    this.answer = new Promise((done, refused) => (this.settle = { done, refused }))
    // The updater may be gone.
    this.answer.catch(() => undefined)
  }

  done(message: string): void {
    this.settle.done({ message })
  }

  refuse(message: string): void {
    this.settle.refused(refusal(message))
  }
}

function refusal(message: string): ApplicationFailure {
  return ApplicationFailure.create({ ...carrying({ class: 'invalid', message }), nonRetryable: true })
}

function refuse(message: string): never {
  throw refusal(message)
}
