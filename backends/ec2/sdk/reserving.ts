import {
  CancelCapacityReservationCommand,
  CreateCapacityReservationBySplittingCommand,
  CreateCapacityReservationCancellationQuoteCommand,
  CreateCapacityReservationCommand,
  CreateCapacityReservationDateChangeQuoteCommand,
  DescribeCapacityReservationCancellationQuotesCommand,
  ModifyCapacityReservationCommand,
  paginateDescribeCapacityBlockExtensionHistory,
  paginateDescribeCapacityBlockExtensionOfferings,
  PurchaseCapacityBlockCommand,
  PurchaseCapacityBlockExtensionCommand,
  type CapacityBlockExtension,
  type CapacityBlockExtensionOffering,
  type CapacityReservation,
  type CapacityReservationCancellationQuote,
  type CreateCapacityReservationCommandInput,
  type EC2Client,
} from '@aws-sdk/client-ec2'
import { HOUR_MS, SECOND_MS } from '../../../core/time/time'
import { AwsError, type Reservation } from './api'
import type {
  BoughtExtension,
  CancellationQuote,
  CreateRequest,
  ExtensionOffering,
  ReservingApi,
} from './api-reserving'
import { createCapacityApi } from './capacity'
import { call, callOnce } from './errors'
import { tagList } from './machine'
import { reservationOf } from './market'

const PLATFORM = 'Linux/UNIX' as const

interface BuyerClients {
  reading: EC2Client
  changing: EC2Client
}

/** The changing client must have `maxAttempts: 1`: by default the SDK sends a purchase three times. */
export function createReservingApi({ reading, changing }: BuyerClients): ReservingApi {
  const capacity = createCapacityApi(reading)
  return {
    blockTypes: (signal) => capacity.blockTypes(signal),
    offerings: (wish, signal) => capacity.offerings(wish, signal),
    extensionOfferings: (wish, signal) => call(signal, () => extensionOfferings(reading, wish, signal)),
    extensions: (signal) => call(signal, () => extensions(reading, signal)),
    buyBlock: ({ offering, tags, isTrial = false }, signal) =>
      (isTrial ? call : callOnce)(signal, async () => {
        const input = {
          CapacityBlockOfferingId: offering,
          InstancePlatform: PLATFORM,
          TagSpecifications: tagsOf(tags),
          DryRun: isTrial || undefined,
        }
        const { CapacityReservation: told } = await changing.send(
          new PurchaseCapacityBlockCommand(input),
          at(signal),
        )
        return shown(told)
      }),
    buyExtension: ({ offering, reservation, isTrial = false }, signal) =>
      (isTrial ? call : callOnce)(signal, async () => {
        const input = {
          CapacityBlockExtensionOfferingId: offering,
          CapacityReservationId: reservation,
          DryRun: isTrial || undefined,
        }
        const command = new PurchaseCapacityBlockExtensionCommand(input)
        const [bought] = (await changing.send(command, at(signal))).CapacityBlockExtensions ?? []
        if (bought === undefined)
          throw new AwsError('an answer without an extension', { code: 'Unknown', reach: 'unanswered' })
        return boughtOf(bought)
      }),
    ...hourlyCalls({ reading, changing }),
  }
}

function hourlyCalls({
  reading,
  changing,
}: BuyerClients): Pick<
  ReservingApi,
  'create' | 'modify' | 'split' | 'dateChangeQuote' | 'cancellationQuote' | 'cancel'
> {
  return {
    create: (request, signal) =>
      call(signal, async () => {
        const command = new CreateCapacityReservationCommand(createInput(request))
        return shown((await changing.send(command, at(signal))).CapacityReservation)
      }),
    modify: (id, { count, endsAtMs, start }, signal) =>
      call(signal, async () => {
        const input = {
          CapacityReservationId: id,
          InstanceCount: count,
          ...(endsAtMs !== undefined && endOf(endsAtMs ?? undefined)),
          ...(start !== undefined && {
            StartDate: new Date(start.startsAtMs),
            QuoteId: start.quote,
            AcceptModificationTerms: true,
          }),
        }
        await changing.send(new ModifyCapacityReservationCommand(input), at(signal))
      }),
    split: ({ source, count, token, tags }, signal) =>
      call(signal, async () => {
        const input = { SourceCapacityReservationId: source, InstanceCount: count, ClientToken: token }
        const command = new CreateCapacityReservationBySplittingCommand({
          ...input,
          TagSpecifications: tagsOf(tags),
        })
        return shown((await changing.send(command, at(signal))).DestinationCapacityReservation)
      }),
    dateChangeQuote: ({ reservation, startsAtMs, token }, signal) =>
      call(signal, async () => {
        const command = new CreateCapacityReservationDateChangeQuoteCommand({
          CapacityReservationId: reservation,
          NewStartDate: new Date(startsAtMs),
          ClientToken: token,
        })
        const { CapacityReservationModificationQuote: told } = await changing.send(command, at(signal))
        const update = told?.ModificationTerms?.ReservationUpdate
        return {
          id: told?.CapacityReservationModificationQuoteId ?? '',
          state: told?.QuoteState ?? '',
          startsAtMs: update?.NewStartDate?.getTime(),
          committedUntilMs: update?.NewCommitmentEndDate?.getTime(),
        }
      }),
    cancellationQuote: (request, signal) =>
      call(signal, () => cancellationQuote({ reading, changing }, request, signal)),
    cancel: (id, { quote }, signal) =>
      call(signal, async () => {
        const terms = quote !== undefined && {
          QuoteId: quote,
          ApplyCancellationCharges: 'commitment-wind-down' as const,
        }
        const command = new CancelCapacityReservationCommand({ CapacityReservationId: id, ...terms })
        await changing.send(command, at(signal))
      }),
  }
}

const at = (signal: AbortSignal): { abortSignal: AbortSignal } => ({ abortSignal: signal })

function tagsOf(
  tags: Record<string, string>,
): NonNullable<CreateCapacityReservationCommandInput['TagSpecifications']> {
  return [{ ResourceType: 'capacity-reservation', Tags: tagList(tags) }]
}

function endOf(
  endsAtMs: number | undefined,
): Pick<CreateCapacityReservationCommandInput, 'EndDate' | 'EndDateType'> {
  return endsAtMs === undefined
    ? { EndDateType: 'unlimited' }
    : { EndDateType: 'limited', EndDate: new Date(endsAtMs) }
}

/** The default of `InstanceMatchCriteria` is `open`: then any fitting machine of the account uses it up. */
function createInput(request: CreateRequest): CreateCapacityReservationCommandInput {
  const { token, type, count, zone, endsAtMs, later, tags } = request
  return {
    ClientToken: token,
    InstanceType: type,
    InstanceCount: count,
    AvailabilityZone: zone,
    InstancePlatform: PLATFORM,
    Tenancy: 'default',
    InstanceMatchCriteria: 'targeted',
    ...endOf(endsAtMs),
    ...(later !== undefined && {
      StartDate: new Date(later.startsAtMs),
      CommitmentDuration: Math.round(later.committedMs / SECOND_MS),
      DeliveryPreference: 'incremental',
    }),
    TagSpecifications: tagsOf(tags),
  }
}

/** Returns the reservation of an answer; an answer without one leaves it unknown. */
function shown(told: CapacityReservation | undefined): Reservation {
  if (told?.CapacityReservationId === undefined)
    throw new AwsError('an answer without a reservation', { code: 'Unknown', reach: 'unanswered' })
  return reservationOf(told)
}

async function extensionOfferings(
  ec2: EC2Client,
  { reservation, durationHours }: { reservation: string; durationHours: number },
  signal: AbortSignal,
): Promise<ExtensionOffering[]> {
  const wish = { CapacityReservationId: reservation, CapacityBlockExtensionDurationHours: durationHours }
  const found: ExtensionOffering[] = []
  for await (const page of paginateDescribeCapacityBlockExtensionOfferings({ client: ec2 }, wish, at(signal)))
    found.push(
      ...(page.CapacityBlockExtensionOfferings ?? []).map((told) => extensionOfferingOf(told, reservation)),
    )
  return found
}

function extensionOfferingOf(told: CapacityBlockExtensionOffering, reservation: string): ExtensionOffering {
  return {
    id: told.CapacityBlockExtensionOfferingId ?? '',
    reservation,
    type: told.InstanceType ?? '',
    count: told.InstanceCount ?? 0,
    zone: told.AvailabilityZone ?? '',
    startsAtMs: told.CapacityBlockExtensionStartDate?.getTime() ?? 0,
    endsAtMs: told.CapacityBlockExtensionEndDate?.getTime() ?? 0,
    lengthMs: (told.CapacityBlockExtensionDurationHours ?? 0) * HOUR_MS,
    upfrontFee: told.UpfrontFee ?? '',
    currency: told.CurrencyCode ?? '',
    tenancy: told.Tenancy ?? 'default',
  }
}

async function extensions(ec2: EC2Client, signal: AbortSignal): Promise<BoughtExtension[]> {
  const found: CapacityBlockExtension[] = []
  for await (const page of paginateDescribeCapacityBlockExtensionHistory({ client: ec2 }, {}, at(signal)))
    found.push(...(page.CapacityBlockExtensions ?? []))
  return found.map(boughtOf)
}

function boughtOf(told: CapacityBlockExtension): BoughtExtension {
  return {
    reservation: told.CapacityReservationId ?? '',
    state: told.CapacityBlockExtensionStatus ?? '',
    boughtAtMs: told.CapacityBlockExtensionPurchaseDate?.getTime() ?? 0,
    endsAtMs: told.CapacityBlockExtensionEndDate?.getTime() ?? 0,
  }
}

/** A new quote may be `pending` at first: then the provider's list has its terms a little later. */
async function cancellationQuote(
  { reading, changing }: BuyerClients,
  { reservation, token }: { reservation: string; token: string },
  signal: AbortSignal,
): Promise<CancellationQuote> {
  const command = new CreateCapacityReservationCancellationQuoteCommand({
    CapacityReservationId: reservation,
    ClientToken: token,
  })
  const made = (await changing.send(command, at(signal))).CapacityReservationCancellationQuote
  const id = made?.CapacityReservationCancellationQuoteId
  if (id === undefined || made?.QuoteState === 'active') return cancellationQuoteOf(made ?? {})
  const { CapacityReservationCancellationQuotes: [listed] = [] } = await reading.send(
    new DescribeCapacityReservationCancellationQuotesCommand({
      CapacityReservationCancellationQuoteIds: [id],
    }),
    at(signal),
  )
  return cancellationQuoteOf(listed ?? made!)
}

function cancellationQuoteOf(told: CapacityReservationCancellationQuote): CancellationQuote {
  return {
    id: told.CapacityReservationCancellationQuoteId ?? '',
    state: told.QuoteState ?? '',
    terms: (told.CancellationTerms ?? []).map((terms) => ({
      type: terms.CancellationType ?? '',
      chargedHours: terms.ChargeCommitmentDurationHours ?? 0,
      committedCount: terms.CommittedInstanceCount ?? 0,
      chargedUntilMs: terms.ChargeEndDate?.getTime(),
    })),
  }
}
