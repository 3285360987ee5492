import type { Capabilities } from '../../core/capabilities'
import { DISK_MIB_PER_SECOND } from '../../core/disk-speed'
import type { JobSpec } from '../../core/job/job'
import { formatUsd } from '../../core/money/money'
import {
  isInterruptible,
  openReservationInWords,
  priceInWords,
  signInEndInWords,
  type Offer,
} from '../../core/offer'
import {
  groupRejections,
  rejectionsInWords,
  silentName,
  type Placement,
  type Plan,
} from '../../core/job/plan'
import { holdInWords, idleInWords } from '../../core/reservation/hold'
import { formatShape } from '../../core/resources'
import { lossDespiteNotice, type Saving } from '../../core/job/saving'
import { formatDuration, formatInstant, HOUR_MS } from '../../core/time/time'
import type { Forecasted } from '../forecast/forecast'
import { chancesInWords, rangeInWords } from '../forecast/words'
import { runLimitInWords } from './run-limit'
import { transferReasons } from './transfer'
import { unmetRisks } from './unmet-keys'
import { speedInWords, unknownSpeedInWords, type WorkTerms } from './work'

/** A static price older than this is reported as old. */
const PRICE_AGE_NOTED_MS = 24 * HOUR_MS

/** Why an offer suits the job, best reason first. */
export function reasonsFor(offer: Offer, { spec }: Pick<WorkTerms, 'spec'>, expected: Forecasted): string[] {
  const { transfer, work } = expected
  const { priceMicroUsdPerHour: price } = offer
  const speed = speedInWords(work)
  const assumed = work.reference === undefined ? 'one hour' : `one hour on the ${work.reference}`
  return [
    moneyOf(offer, expected),
    rangeInWords(expected.forecast),
    ...chancesInWords(expected.forecast),
    ...(speed === undefined ? [] : [speed]),
    ...(transfer === undefined ? [] : transferReasons(offer, transfer)),
    formatShape(offer.shape),
    howBought(offer),
    ...(offer.stillBilled === undefined ? [] : [`still billed when off: ${offer.stillBilled}`]),
    ...[offer.note, openReservationInWords(offer)].filter((words) => words !== undefined),
  ].concat(
    spec.durationMs === undefined && price > 0 ? [`the job gives no duration: ${assumed} is assumed`] : [],
  )
}

function moneyOf(offer: Offer, expected: Forecasted): string {
  const { priceMicroUsdPerHour: price, besideMicroUsdPerHour: beside = 0, reservation } = offer
  const cost = `about ${formatUsd(expected.costMicroUsd)} in ${formatDuration(expected.durationMs)}`
  if (price === 0) {
    const isStoreFree = expected.costMicroUsd === expected.budgetedMicroUsd
    if (!isStoreFree)
      return `${reservation === undefined ? 'its machine costs nothing' : 'paid up front'}, ${cost} with its store`
    return reservation === undefined ? 'costs nothing' : 'paid up front: no further cost'
  }
  if (reservation !== undefined && price === beside)
    return `paid up front, except ${formatUsd(beside)}/h for ${besideInWords(offer)}, ${cost}`
  const part = beside === 0 ? '' : ` (with ${formatUsd(beside)} for ${besideInWords(offer)})`
  const bill = `${discountedInWords(offer)}${part}, ${cost}`
  const idle = reservation?.idleMicroUsdPerHour ?? 0
  return idle === 0 ? bill : `${bill}, billed even when idle: ${formatUsd(idle)}/h`
}

/** `disk and address`, `disk (1000 MiB/s) and address` */
function besideInWords({ shape: { diskMibPerSecond = 0 } }: Offer): string {
  return diskMibPerSecond <= DISK_MIB_PER_SECOND.min
    ? 'disk and address'
    : `disk (${diskMibPerSecond} MiB/s) and address`
}

/** `$2.21/h`, `$2.21/h, 10 % discount on $2.46/h` */
function discountedInWords({
  priceMicroUsdPerHour: price,
  listPriceMicroUsdPerHour: list,
}: Pick<Offer, 'priceMicroUsdPerHour' | 'listPriceMicroUsdPerHour'>): string {
  const words = `${formatUsd(price)}/h`
  if (list === undefined || list <= price) return words
  const percent = Math.round((1 - price / list) * 1_000) / 10
  return `${words}, ${percent} % discount on ${formatUsd(list)}/h`
}

function howBought(offer: Offer): string {
  const { capacityType, reservation } = offer
  const words =
    capacityType !== 'spot' && isInterruptible(offer) ? PREEMPTIBLE_IN_WORDS : HOW_BOUGHT[capacityType]
  if (reservation === undefined) return words
  const held = [holdInWords(offer), reservation.hold && idleInWords(offer)].filter(Boolean)
  return [`${words}, ${reservation.free} of ${reservation.total} free`, ...held].join(', ')
}

const PREEMPTIBLE_IN_WORDS = 'can be interrupted, although on demand'

const HOW_BOUGHT: Readonly<Record<Offer['capacityType'], string>> = {
  'on-demand': 'not interruptible',
  spot: 'cheaper, but can be interrupted at any time',
  reserved: 'already reserved',
}

/** Returns the risks of an offer. */
export function risksOf(
  offer: Offer,
  spec: JobSpec,
  at: {
    expected: Pick<Forecasted, 'interruptions' | 'work' | 'durationMs'>
    isShaky: boolean
    nowMs: number
    saving?: Saving
    capabilities: Capabilities
    hasBudget: boolean
  },
): string[] {
  const risks: string[] = []
  const unknownSpeed = unknownSpeedInWords(offer, at.expected.work)
  if (unknownSpeed !== undefined) risks.push(unknownSpeed)
  if (isInterruptible(offer)) {
    const count = at.expected.interruptions
    risks.push(`${interruptionsInWords(count)}; work since the last checkpoint is repeated`)
    if (at.isShaky) risks.push('this job recently lost a machine there, so another interruption is likely')
    const loss = at.saving && lossDespiteNotice(at.saving, spec.checkpoint.everyMs)
    if (loss !== undefined) risks.push(loss)
    if (spec.checkpoint.everyMs === undefined) risks.push('the job does not say how often it saves')
  }
  if (offer.runMsMax !== undefined) {
    risks.push(runLimitInWords(offer.runMsMax, spec))
  } else if (offer.usableUntilMs !== undefined) {
    const left = formatDuration(offer.usableUntilMs - at.nowMs)
    risks.push(
      `its reservation ends at ${formatInstant(offer.usableUntilMs)}, in ${left}; unfinished work then resumes elsewhere from its checkpoint`,
    )
  }
  const signIn = signInEndInWords(offer, { durationMs: at.expected.durationMs, nowMs: at.nowMs })
  if (signIn !== undefined) risks.push(signIn)
  if (at.capabilities.billsUntil === 'terminate' && at.hasBudget) risks.push(BILLED_ON)
  if (at.capabilities.queues === true)
    risks.push("the launch may wait in the provider's queue, which costs nothing")
  if (at.capabilities.imageRunner === 'provider' && spec.imageLogin !== undefined)
    risks.push('its provider runs the image with its own registry login, so `image_login` is not used')
  risks.push(...unmetRisks(spec, at.capabilities))
  // Availability is unknown, unless it is a reservation, which reports its free places.
  if (offer.availability === 'unknown' && offer.reservation === undefined)
    risks.push('availability is unknown until launch')
  const ageMs = at.nowMs - offer.priceSource.observedAtMs
  if (offer.priceSource.kind === 'static' && ageMs > PRICE_AGE_NOTED_MS) {
    risks.push(`the price is ${formatDuration(ageMs)} old`)
  }
  return risks
}

const BILLED_ON =
  'it is billed until our call ends it, so its cost may exceed the budget while the control plane, the store or the provider is down; `crucible gc --alone` on another host limits that'

function interruptionsInWords(count: number): string {
  if (count >= 0.95) return `about ${Math.round(count)} interruption${count < 1.5 ? '' : 's'}`
  return `${count < 0.01 ? 'less than 1' : Math.round(count * 100)} % chance of an interruption`
}

/** A placement in one line: `local spot at $0.12/h (16 cpus, 64 GiB)`. */
export function summaryOf({ offer }: Placement): string {
  const where = offer.place === '' ? offer.type : `${offer.type} in ${offer.place}`
  const price = priceInWords(offer)
  return `${offer.backend} ${offer.capacityType}, ${where}, ${price}`
}

/** Why a plan has no placement, in one sentence that names each reason once. */
export function whyNone(plan: Plan): string {
  const silent = plan.silentBackends.map((one) => `${silentName(one)}: ${one.reason}`)
  const all = [...rejectionsInWords(groupRejections(plan.rejections)), ...silent]
  return all.length === 0 ? 'no backend has any offer' : all.join('; ')
}
