import { defineQuery, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow'
import { defined } from '../../core/defined'
import type { Failure } from '../../core/failure'
import { nameInMarkdown } from '../../core/markdown'
import type { OwnedReservation } from '../../core/reservation/reservation'
import {
  RESERVATION_QUERY,
  type JudgedQuote,
  type ReservationInput,
  type ReservationState,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import { priceInWords } from '../../core/reservation/quote-words'
import { shareInWords, SHARE_DEFAULT } from '../../core/reservation/hold'
import { formatInstant } from '../../core/time/time'
import { setAttributes } from '../attributes'
import { Retries } from '../forever'
import { headline, money, sentence } from '../markdown'

const statusQuery = defineQuery<ReservationStatus>(RESERVATION_QUERY)

/** The one state of a reservation: the query, the search attributes and the page in the Temporal UI show it. */
export class ReservationPage {
  readonly status: ReservationStatus
  readonly retries = new Retries()
  /** Called after each change of state, and of what others plan with. */
  onMove: () => void = () => {}

  private readonly pageUrl: string | undefined

  constructor(input: ReservationInput) {
    this.pageUrl = input.pageUrl
    const { reservationId: id, owner, purpose, wish, rule, submittedAtMs } = input
    this.status = input.carry?.status ?? {
      id,
      owner,
      wish,
      rule,
      submittedAtMs,
      state: 'searching',
      message: 'Looking for capacity.',
      alternatives: [],
      spentMicroUsd: 0,
      idleMicroUsd: 0,
      purpose,
    }
    this.status.runId = workflowInfo().runId
    setHandler(statusQuery, () => this.status, { description: 'State of the reservation, with its reason.' })
    this.show()
  }

  /** Changes the state, with one event per change; the same state again only updates the message. */
  move(state: ReservationState, message: string, more: Partial<ReservationStatus> = {}): void {
    const { status } = this
    const isNews = status.state !== state
    const before = plannedWith(status)
    Object.assign(status, defined(more), { state, message })
    delete status.nextLookAtMs
    if (isNews) setAttributes({ state })
    this.show()
    if (isNews || plannedWith(status) !== before) this.onMove()
  }

  update(more: Partial<ReservationStatus>): void {
    Object.assign(this.status, defined(more))
    this.show()
  }

  forget(
    ...names: (
      | ('quote' | 'undecided' | 'decision' | 'reservation' | 'isAdopted')
      | ('idleSinceMs' | 'nextLookAtMs' | 'webhookTrouble')
    )[]
  ): void {
    for (const name of names) delete this.status[name]
    this.show()
  }

  trouble(failure: Failure | undefined): void {
    if (failure === undefined) delete this.status.trouble
    else this.status.trouble = [failure.message, failure.hint].filter(Boolean).join(' ')
    this.show()
  }

  private show(): void {
    setCurrentDetails(detailsOf(this.status, this.pageUrl))
  }
}

/** Users of the reservation must know when this changes: a provider may move the end, and an extension may be paid or not. */
function plannedWith({ reservation }: ReservationStatus): string {
  if (reservation === undefined) return ''
  const { id, endsAtMs, usableUntilMs, total, extension } = reservation
  return [id, endsAtMs, usableUntilMs, total, extension?.phase, extension?.endsAtMs].join(' ')
}

/** The page in the Temporal UI. */
function detailsOf(status: ReservationStatus, pageUrl: string | undefined): string {
  const { id, state, message, trouble, wish, quote, reservation, alternatives, decision, undecided } = status
  return [
    headline({ state, reason: state, text: message }),
    ...(trouble === undefined ? [] : ['', `**Needs attention:** ${sentence(trouble)}`]),
    ...(status.webhookTrouble === undefined ? [] : ['', sentence(status.webhookTrouble)]),
    '',
    `- wanted: ${sentence(`${wish.count} × ${wish.types.join(' or ')}, ${wish.kind}`)}`,
    ...(quote === undefined ? [] : [`- offer: ${lineOf(quote)}`]),
    ...(reservation === undefined ? [] : [`- held: ${heldLine(reservation)}`]),
    ...(reservation === undefined
      ? []
      : [`- idle places: for ${shareInWords(status.rule.share ?? SHARE_DEFAULT)}`]),
    ...(decision === undefined
      ? []
      : [`- ${decision.kind} by ${nameInMarkdown(decision.by)}, ${formatInstant(decision.atMs)}`]),
    `- spent: ${money(status.spentMicroUsd)}, of it for unused time ${money(status.idleMicroUsd)}`,
    ...(status.nextLookAtMs === undefined ? [] : [`- next look: ${formatInstant(status.nextLookAtMs)}`]),
    ...(state === 'awaiting-approval' ? approvalLines(id, pageUrl) : []),
    ...(undecided === undefined ? [] : undecidedLines(id, undecided)),
    ...(alternatives.length === 0
      ? []
      : ['', '**Other offers**', '', ...alternatives.map((each) => `1. ${lineOf(each)}`)]),
    '',
    `More: \`crucible reservations show ${id}\``,
  ].join('\n')
}

/** Returns lines about an approval with the link of the event, which a person can pass on. */
function approvalLines(id: string, pageUrl: string | undefined): string[] {
  return [
    '',
    '**Waits for approval.** Another customer may buy this offer first; then the search continues within the rule.',
    '',
    `Buy it: \`crucible reservations approve ${id}\`. Do not: \`crucible reservations reject ${id}\`.`,
    ...(pageUrl === undefined ? [] : ['', `Link for the person who approves it: <${pageUrl}>`]),
  ]
}

function undecidedLines(
  id: string,
  { account, candidates }: NonNullable<ReservationStatus['undecided']>,
): string[] {
  return [
    '',
    '**A person must decide.** The purchase was sent, and it is unknown whether it was made. Nothing else is bought meanwhile.',
    '',
    ...account.map((line) => `- ${sentence(line)}`),
    ...candidates.map((each) => `- may be it: ${heldLine(each)}`),
    '',
    `Check the account's reservations and bill, then: \`crucible reservations decide ${id} --bought RESERVATION\` or \`--not-bought\`.`,
  ]
}

function lineOf({ quote, machineHourMicro, refusal }: JudgedQuote): string {
  const { count, type, zone, startsAtMs, endsAtMs } = quote
  const window = `${formatInstant(startsAtMs)} to ${endsAtMs === undefined ? 'its release' : formatInstant(endsAtMs)}`
  const price = `${sentence(priceInWords(quote))}, ${money(machineHourMicro)} per machine and hour`
  const why = refusal === undefined ? '' : ` (${sentence(refusal)})`
  return `${count} × ${nameInMarkdown(`${type} in ${zone}`)}, ${window}: ${price}${why}`
}

function heldLine({ id, total, type, zone, state, startsAtMs, endsAtMs }: OwnedReservation): string {
  const from = startsAtMs === undefined ? '' : `, from ${formatInstant(startsAtMs)}`
  const to = endsAtMs === undefined ? '' : ` to ${formatInstant(endsAtMs)}`
  return nameInMarkdown(`${id}: ${total} × ${type} in ${zone}, ${state}${from}${to}`)
}
