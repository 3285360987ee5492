/**
 * Limits on figures of strangers: what a provider answers, and what a store holds. Nothing is bought or chosen, and no cost is counted, by a
 * figure beyond them: a comparison with `NaN` or with a text is false, so it would pass each limit on money.
 */
import type { MicroUsd } from './money/money'
import type { Offer } from './offer'
import type { CapacityQuote, OwnedReservation } from './reservation/reservation'
import type { PurchaseRule } from './reservation/reserving'

/** The end of the year 9998, so that a duration added to an instant stays within the dates that every part can write. */
const INSTANT_MAX_MS = 253_370_764_799_999
/** A billion dollars: sums of a million such amounts are exact. */
const AMOUNT_MAX: MicroUsd = 1e15
const COUNT_MAX = 1e6
/** Characters of a figure that are shown. It may be a long text. */
const SHOWN_MAX = 40

/** Whether a value is money: whole micro-dollars, from 0 to a billion dollars. */
export function isAmount(value: unknown): value is MicroUsd {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= AMOUNT_MAX
}

/** Whether a value is an instant or a duration in milliseconds, from 1970 to the year 9998. */
export function isInstant(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= INSTANT_MAX_MS
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= COUNT_MAX
}

/** Hardware and rates; the memory of a cluster and the prices of a year are far below. */
function isQuantity(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= AMOUNT_MAX
}

type Check = (value: unknown) => boolean
type Checks<T> = readonly (readonly [keyof T & string, Check])[]

const optional = (check: Check): Check => {
  return (value) => value === undefined || check(value)
}

const OFFER: Checks<Offer> = [
  ['priceMicroUsdPerHour', isAmount],
  ['priceMaxMicroUsdPerHour', optional(isAmount)],
  ['besideMicroUsdPerHour', optional(isAmount)],
  ['listPriceMicroUsdPerHour', optional(isAmount)],
  ['billedAtLeastMs', optional(isInstant)],
  ['billedInStepsOfMs', optional((value) => isInstant(value) && value > 0)],
  ['usableUntilMs', optional(isInstant)],
  ['runMsMax', optional(isInstant)],
  ['signedInUntilMs', optional(isInstant)],
  ['interruptionsPerHour', optional(isQuantity)],
  ['freePlaces', optional(isCount)],
]

const SHAPE: Checks<Offer['shape']> = [
  ['cpus', isQuantity],
  ['memoryGiB', isQuantity],
  ['diskGiB', optional(isQuantity)],
  ['diskMibPerSecond', optional((value) => isQuantity(value) && value !== 0)],
  ['gpus', isCount],
  ['gpuMemoryGiB', optional(isQuantity)],
]

const PLACES: Checks<NonNullable<Offer['reservation']>> = [
  ['free', isCount],
  ['total', isCount],
  ['startsAtMs', optional(isInstant)],
  ['endsAtMs', optional(isInstant)],
  ['idleMicroUsdPerHour', isAmount],
]

const TRANSFER: Checks<NonNullable<Offer['transfer']>> = [
  ['upMicroUsdPerGb', isQuantity],
  ['downMicroUsdPerGb', isQuantity],
  ['bytesPerSecond', (value) => isQuantity(value) && (value as number) > 0],
]

const QUOTE: Checks<CapacityQuote> = [
  ['count', (value) => isCount(value) && value !== 0],
  ['startsAtMs', isInstant],
  ['endsAtMs', optional(isInstant)],
  ['usableUntilMs', optional(isInstant)],
  ['upfrontMicro', isAmount],
  ['perHourMicro', isAmount],
  ['committedMs', optional(isInstant)],
  ['readAtMs', isInstant],
]

const OWNED: Checks<OwnedReservation> = [
  ['total', isCount],
  ['free', isCount],
  ['startsAtMs', optional(isInstant)],
  ['endsAtMs', optional(isInstant)],
  ['usableUntilMs', optional(isInstant)],
  ['createdAtMs', optional(isInstant)],
  ['idleMicroUsdPerHour', optional(isAmount)],
  ['upfrontMicroUsd', optional(isAmount)],
]

const RULE: Checks<PurchaseRule> = [
  ['upfrontMaxMicroUsd', optional(isAmount)],
  ['machineHourMaxMicroUsd', optional(isAmount)],
  ['unaskedMaxMicroUsd', optional(isAmount)],
  ['spendMaxMicroUsd', optional(isAmount)],
  ['extendMaxMicroUsd', optional(isAmount)],
  ['searchUntilAtMs', optional(isInstant)],
  ['idleMaxMs', optional(isInstant)],
]

/** The first figure of an offer that cannot be one, in words; `undefined` for an offer that can be chosen. */
export function offerFault(offer: Offer): string | undefined {
  const { shape, reservation, transfer } = offer
  return (
    faultIn(OFFER, offer) ??
    faultIn(SHAPE, shape) ??
    (reservation && faultIn(PLACES, reservation)) ??
    (transfer && faultIn(TRANSFER, transfer))
  )
}

/** Names the first invalid figure of a quote and its value. */
export function quoteFault(quote: CapacityQuote): string | undefined {
  return quote.fault ?? faultIn(QUOTE, quote)
}

/** Names the first invalid figure of a reservation and its value. */
export function ownedFault(owned: OwnedReservation): string | undefined {
  return faultIn(OWNED, owned)
}

/** Names the first invalid limit of a purchase rule and its value. */
export function ruleFault(rule: PurchaseRule): string | undefined {
  return faultIn(RULE, rule)
}

function faultIn<T extends object>(checks: Checks<T>, values: T): string | undefined {
  const wrong = checks.find(([name, check]) => !check(values[name]))
  return wrong && `${wrong[0]} is ${shown(values[wrong[0]])}`
}

/** A figure of a stranger, short enough for a sentence. */
export function shown(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? 'missing')
  return text.slice(0, SHOWN_MAX)
}
