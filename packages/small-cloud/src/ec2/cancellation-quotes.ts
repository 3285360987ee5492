/** Quotes for the cancellation of future-dated reservations. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, filter, list, paging, tagSpecification, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Xml } from '../wire/xml'
import { DAY_MS, HOUR_MS } from './block-rules'
import type { Ec2 } from './ec2'
import { chosen, page, select } from './filters'
import { tagsFor } from './launch-fields'
import type { Tags } from './model'
import { changeable } from './reservation-changes'
import {
  commitmentEndMs,
  needsQuote,
  placesIn,
  reservationState,
  type CapacityReservation,
  type ReservationState,
} from './reservation-model'
import { checkReservationTags } from './reservation-tags'
import { tagWords } from './tags'

interface Quote {
  id: string
  reservation: CapacityReservation
  createdAtMs: number
  /** State of the reservation when the quote was made. */
  was: { count: number; state: ReservationState }
  count: number
  chargedHours: number
  chargedUntilMs: number
  tags: Tags
}

const KIND = 'capacity-reservation-cancellation-quote'
const VALID_MS = DAY_MS

export class CancellationQuotes {
  private readonly quotes = new Map<string, Quote>()

  constructor(private readonly ec2: Ec2) {}

  /** Quotes the charge now: the rest of the commitment, or a share of it before the delivery. */
  make(reservation: CapacityReservation, tags: Tags): Quote {
    const { nowMs } = this.ec2
    const { durationMs, count } = reservation.commitment!
    const state = reservationState(reservation)
    const chargedMs =
      state === 'active'
        ? commitmentEndMs(reservation)! - nowMs
        : durationMs * this.ec2.parts.world.cancellationShare
    const quote: Quote = {
      id: this.ec2.parts.ids.resource('crcq'),
      reservation,
      createdAtMs: nowMs,
      count,
      tags,
      was: { count: placesIn(reservation), state },
      chargedHours: Math.ceil(chargedMs / HOUR_MS),
      chargedUntilMs: nowMs + chargedMs,
    }
    this.quotes.set(quote.id, quote)
    return quote
  }

  in(region: string): Quote[] {
    return [...this.quotes.values()].filter(({ reservation }) => reservation.region === region)
  }

  /** A quote is good for a day, and for the state in which the reservation was. */
  stateOf({ createdAtMs, was, reservation }: Quote): 'active' | 'expired' {
    const isValid = this.ec2.nowMs < createdAtMs + VALID_MS && reservationState(reservation) === was.state
    return isValid ? 'active' : 'expired'
  }

  /** Returns the quote for a cancellation. Throws if it is unknown, of another reservation, or expired. */
  forCancellation(id: string, reservation: CapacityReservation): Quote {
    const quote = this.quotes.get(id)
    if (quote?.reservation !== reservation)
      throw new ApiError('InvalidParameterValue', `There is no quote '${id}' for '${reservation.id}'.`)
    if (this.stateOf(quote) !== 'active')
      throw new ApiError('InvalidParameterValue', `The quote '${id}' has expired.`)
    return quote
  }
}

export function quoteActions(ec2: Ec2): Record<string, Action> {
  return {
    CreateCapacityReservationCancellationQuote: createQuote(ec2),
    DescribeCapacityReservationCancellationQuotes: describeQuotes(ec2),
  }
}

const scopeIn = (region: string): string => `CreateCapacityReservationCancellationQuote/${region}`

function createQuote(ec2: Ec2): Action {
  const quotable = (region: string, id: string): CapacityReservation => {
    const reservation = changeable(ec2, region, id)
    if (needsQuote(reservation, ec2.nowMs)) return reservation
    throw new ApiError(
      'OperationNotPermitted',
      `The capacity reservation '${id}' is not within a commitment: its cancellation needs no quote.`,
    )
  }
  return action({
    input: z.strictObject({
      ...dryRun,
      CapacityReservationId: text,
      ClientToken: text.optional(),
      TagSpecification: list(tagSpecification).optional(),
    }),
    isMutating: true,
    check({ CapacityReservationId: id, TagSpecification: tags, ClientToken: token }, { region }) {
      checkReservationTags(tags, KIND)
      if (!ec2.tokens.knows(scopeIn(region), token)) quotable(region, id)
    },
    run(wish, { region }) {
      const { ClientToken: token, ...parameters } = wish
      const quote = ec2.tokens.once(scopeIn(region), { token, parameters }, () =>
        ec2.quotes.make(quotable(region, wish.CapacityReservationId), tagsFor(KIND, wish)),
      )
      return { capacityReservationCancellationQuote: quoteWords(ec2, quote) }
    },
  })
}

function describeQuotes(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...paging,
      Filter: list(filter).default([]),
      CapacityReservationCancellationQuoteId: list(text).default([]),
    }),
    run({ CapacityReservationCancellationQuoteId: ids, Filter, ...wish }, { region }) {
      const code = 'InvalidCapacityReservationCancellationQuoteId.NotFound'
      const wanted = chosen(ec2.quotes.in(region), ids, { by: ({ id }) => id, code, what: 'quote ID' })
      const found = select(wanted, Filter, {
        'capacity-reservation-id': ({ reservation }) => reservation.id,
        'quote-state': (quote) => ec2.quotes.stateOf(quote),
      })
      const { items, nextToken } = page(found, wish, { most: 1000 })
      return {
        capacityReservationCancellationQuoteSet: items.map((each) => quoteWords(ec2, each)),
        nextToken,
      }
    },
  })
}

function quoteWords(ec2: Ec2, quote: Quote): Xml {
  return {
    capacityReservationCancellationQuoteId: quote.id,
    capacityReservationId: quote.reservation.id,
    createTime: new Date(quote.createdAtMs),
    expirationTime: new Date(quote.createdAtMs + VALID_MS),
    quoteState: ec2.quotes.stateOf(quote),
    currentConfiguration: { instanceCount: quote.was.count, reservationState: quote.was.state },
    cancellationTermSet: [
      {
        cancellationType: 'commitment-wind-down',
        reservationState: 'cancelling',
        committedInstanceCount: quote.count,
        chargeCommitmentDurationHours: quote.chargedHours,
        chargeEndDate: new Date(quote.chargedUntilMs),
      },
    ],
    tagSet: tagWords(quote.tags),
  }
}
