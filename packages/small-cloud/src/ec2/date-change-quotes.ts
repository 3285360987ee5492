/** Quotes for a later start of future-dated reservations, and their acceptance. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, instant, list, tagSpecification, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import { DAY_MS, HOUR_MS } from './block-rules'
import type { Ec2 } from './ec2'
import { tagsFor } from './launch-fields'
import type { Tags } from './model'
import { changeable } from './reservation-changes'
import { isFutureDated, placesIn, reservationState, type CapacityReservation } from './reservation-model'
import { checkReservationTags } from './reservation-tags'
import { tagWords } from './tags'

const KIND = 'capacity-reservation-modification-quote'
const VALID_MS = DAY_MS
/** All changes together may move a start by so much. */
const PUSHOUT_MAX_MS = 30 * DAY_MS

interface Quote {
  id: string
  reservation: CapacityReservation
  createdAtMs: number
  startsAtMs: number
  tags: Tags
  isUsed: boolean
}

export class DateChangeQuotes {
  private readonly quotes = new Map<string, Quote>()
  private readonly originalStarts = new Map<CapacityReservation, number>()

  constructor(private readonly ec2: Ec2) {}

  make(reservation: CapacityReservation, startsAtMs: number, tags: Tags): Quote {
    const id = this.ec2.parts.ids.resource('crmq')
    const quote = { id, reservation, createdAtMs: this.ec2.nowMs, startsAtMs, tags, isUsed: false }
    this.quotes.set(id, quote)
    return quote
  }

  originalStartMs(reservation: CapacityReservation): number {
    return this.originalStarts.get(reservation) ?? reservation.startsAtMs
  }

  /** A quote is valid for a day, but not in the last hour before the start. */
  expiresAtMs({ createdAtMs, reservation }: Quote): number {
    return Math.min(createdAtMs + VALID_MS, reservation.startsAtMs - HOUR_MS)
  }

  /** Moves the start as quoted. Throws for a quote that is unknown, used, expired, or for something else. */
  accept(reservation: CapacityReservation, { id, startsAtMs }: { id: string; startsAtMs: number }): void {
    const quote = this.quotes.get(id)
    if (quote?.reservation !== reservation || quote.startsAtMs !== startsAtMs || quote.isUsed)
      throw new ApiError('InvalidParameterValue', `There is no quote '${id}' for that start.`)
    if (this.ec2.nowMs >= this.expiresAtMs(quote))
      throw new ApiError('InvalidParameterValue', `The quote '${id}' has expired.`)
    quote.isUsed = true
    this.originalStarts.set(reservation, this.originalStartMs(reservation))
    this.ec2.reservations.startAt(reservation, startsAtMs)
  }
}

export function dateChangeActions(ec2: Ec2): Record<string, Action> {
  const input = z.strictObject({
    ...dryRun,
    CapacityReservationId: text,
    NewStartDate: instant,
    ClientToken: text.optional(),
    TagSpecification: list(tagSpecification).optional(),
  })
  const checked = (id: string, startsAtMs: number, region: string): CapacityReservation => {
    const reservation = changeable(ec2, region, id)
    if (!isFutureDated(reservation) || reservationState(reservation) !== 'scheduled')
      throw new ApiError(
        'OperationNotPermitted',
        `The capacity reservation '${id}' is not a future-dated one that has yet to be delivered.`,
      )
    const latestMs = ec2.dateChanges.originalStartMs(reservation) + PUSHOUT_MAX_MS
    if (startsAtMs <= reservation.startsAtMs || startsAtMs > latestMs)
      throw new ApiError(
        'InvalidParameterValue',
        `NewStartDate must be later than the start, and until ${new Date(latestMs).toISOString()}.`,
      )
    return reservation
  }
  return {
    CreateCapacityReservationDateChangeQuote: action({
      input,
      isMutating: true,
      check({ CapacityReservationId: id, NewStartDate: startsAtMs, TagSpecification: tags }, { region }) {
        checkReservationTags(tags, KIND)
        checked(id, startsAtMs, region)
      },
      run(wish, { region }) {
        const { ClientToken: token, ...parameters } = wish
        const { CapacityReservationId: id, NewStartDate: startsAtMs } = wish
        const scope = `CreateCapacityReservationDateChangeQuote/${region}`
        const quote = ec2.tokens.once(scope, { token, parameters }, () =>
          ec2.dateChanges.make(checked(id, startsAtMs, region), startsAtMs, tagsFor(KIND, wish)),
        )
        return { capacityReservationModificationQuote: quoteWords(ec2, quote) }
      },
    }),
  }
}

function quoteWords(ec2: Ec2, quote: Quote): object {
  const { id, reservation, createdAtMs, startsAtMs, tags } = quote
  const { durationMs } = reservation.commitment!
  return {
    capacityReservationModificationQuoteId: id,
    capacityReservationId: reservation.id,
    createTime: new Date(createdAtMs),
    expirationTime: new Date(ec2.dateChanges.expiresAtMs(quote)),
    quoteState: 'active',
    currentConfiguration: {
      instanceCount: placesIn(reservation),
      reservationState: reservationState(reservation),
      startDate: new Date(reservation.startsAtMs),
      originalStartDate: new Date(ec2.dateChanges.originalStartMs(reservation)),
    },
    modificationTerms: {
      reservationUpdate: {
        newStartDate: new Date(startsAtMs),
        newCommitmentEndDate: new Date(startsAtMs + durationMs),
        newCommitmentDuration: durationMs / 1000,
      },
    },
    tagSet: tagWords(tags),
  }
}
