/** The cost of instances by the cloud's own meter, including disks and addresses. Tests compare other cost calculations with it. */
import { runsIn, type Run } from '../machines/history'
import { ADDRESS_USD_PER_HOUR, DISK_USD, HOURS_PER_MONTH } from '../prices/beside'
import type { PriceChange } from '../world/market'
import { billedSpeed } from './disks'
import type { Ec2 } from './ec2'
import type { Instance, Volume } from './model'
import {
  isBlock,
  reservationState,
  type CapacityReservation,
  type ReservationState,
} from './reservation-model'

export interface Bill {
  /** When the instance became `running`; one that never ran costs nothing. */
  fromMs?: number
  /** When the instance last began to shut down or to stop; missing while it is still billed. */
  untilMs?: number
  usd: number
}

const HOUR_MS = 3_600_000
const SECOND_MS = 1_000

/**
 * Bills each run by started seconds, for at least `billedAtLeast`, at the prices in force during the run. A stopped instance costs nothing.
 */
export function billOf(ec2: Ec2, instance: Instance): Bill {
  const runs = runsOf(instance)
  const [first, last] = [runs[0], runs.at(-1)]
  if (first === undefined) return { usd: 0 }
  const usd = runs.reduce((sum, run) => sum + costOfRun(ec2, instance, run), 0)
  return { fromMs: first.fromMs, ...(last?.untilMs === undefined ? {} : { untilMs: last.untilMs }), usd }
}

function runsOf(instance: Instance): Run[] {
  return runsIn(instance, ['running'])
}

function costOfRun(ec2: Ec2, instance: Instance, { fromMs, untilMs = ec2.nowMs }: Run): number {
  const seconds = Math.ceil((untilMs - fromMs) / SECOND_MS)
  const endMs = fromMs + Math.max(seconds * SECOND_MS, ec2.drawMs('billedAtLeast'))
  // Time charged beyond the end has the price at the end. The end counts as reported: in whole seconds.
  const toldMs = Math.max(fromMs, Math.floor(untilMs / SECOND_MS) * SECOND_MS)
  const beside = ((endMs - fromMs) / HOUR_MS) * besideUsdPerHour(instance)
  return costOf(pricesOf(ec2, instance, { fromMs, untilMs: toldMs }), fromMs, endMs) + beside
}

/** Price of disks and address: this cloud bills them while their instance runs, not while it starts and ends. */
function besideUsdPerHour({ volumes, publicIp }: Instance): number {
  const usdPerMonth = volumes.reduce((sum, volume) => sum + diskUsdPerMonth(volume), 0)
  return usdPerMonth / HOURS_PER_MONTH + (publicIp === undefined ? 0 : ADDRESS_USD_PER_HOUR)
}

function diskUsdPerMonth({ sizeGiB, speed }: Volume): number {
  const { iops, mibPerSecond } = billedSpeed(speed)
  return sizeGiB * DISK_USD.perGiBMonth + iops * DISK_USD.perIopsMonth + mibPerSecond * DISK_USD.perMibpsMonth
}

/** Returns the prices during a period, newest first. */
function pricesOf(
  { parts: { market } }: Ec2,
  instance: Instance,
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): PriceChange[] {
  const { region, subnet, type, capacity, place } = instance
  if (place !== undefined && isBlock(place)) return [{ atMs: fromMs, usdPerHour: 0 }]
  const pool = { region, zone: subnet.zone.name, type: type.name, capacity }
  if (capacity === 'on-demand') return [{ atMs: fromMs, usdPerHour: market.priceOf(pool) }]
  return market.priceHistory(pool, fromMs, untilMs)
}

/** The cost of a reservation without the instances in it. */
export interface ReservationBill {
  /** Paid for a block and its extensions, less what AWS has paid back. */
  upfrontUsd: number
  /** Cost so far of on-demand places in which nothing ran. */
  idleUsd: number
}

export function reservationBillOf(ec2: Ec2, reservation: CapacityReservation): ReservationBill {
  if (isBlock(reservation)) return { upfrontUsd: paidForBlock(reservation), idleUsd: 0 }
  const { region, zone, type, totals, stays } = reservation
  const span = activeSpan(reservation, ec2.nowMs)
  const reservedMs = totals.reduce((sum, { atMs, count }, i) => {
    const untilMs = totals[i + 1]?.atMs ?? Infinity
    return sum + count * overlapMs(span, { fromMs: atMs, untilMs })
  }, 0)
  const usedMs = stays.reduce((sum, { instance, fromMs, untilMs = Infinity }) => {
    const stay = { fromMs: Math.max(fromMs, span.fromMs), untilMs: Math.min(untilMs, span.untilMs) }
    return (
      sum +
      runsOf(instance).reduce(
        (ms, run) => ms + overlapMs(stay, { ...run, untilMs: run.untilMs ?? ec2.nowMs }),
        0,
      )
    )
  }, 0)
  const pool = { region, zone: zone.name, type: type.name, capacity: 'on-demand' as const }
  return { upfrontUsd: 0, idleUsd: ((reservedMs - usedMs) / HOUR_MS) * ec2.parts.market.priceOf(pool) }
}

function paidForBlock({ history, upfrontUsd, extensions, refundedUsd }: CapacityReservation): number {
  const isPaid = history.some(({ state }) => state === 'active' || state === 'scheduled')
  const paid = extensions.filter(({ status }) => status === 'payment-succeeded')
  return (isPaid ? upfrontUsd : 0) + paid.reduce((sum, { usd }) => sum + usd, 0) - refundedUsd
}

/** States with charges: a cancelled future-dated reservation is charged while it is `cancelling`. */
const CHARGED: readonly ReservationState[] = ['active', 'cancelling']

function activeSpan(reservation: CapacityReservation, nowMs: number): { fromMs: number; untilMs: number } {
  const { history } = reservation
  const fromMs = history.find(({ state }) => CHARGED.includes(state))?.atMs ?? nowMs
  const isCharged = CHARGED.includes(reservationState(reservation))
  return { fromMs, untilMs: isCharged ? nowMs : history.at(-1)!.atMs }
}

function overlapMs(a: { fromMs: number; untilMs: number }, b: { fromMs: number; untilMs: number }): number {
  return Math.max(0, Math.min(a.untilMs, b.untilMs) - Math.max(a.fromMs, b.fromMs))
}

function costOf(prices: PriceChange[], fromMs: number, endMs: number): number {
  let usd = 0
  let untilMs = endMs
  prices.forEach(({ atMs, usdPerHour }, i) => {
    // The oldest price was in force before that too.
    const sinceMs = i === prices.length - 1 ? fromMs : Math.min(atMs, untilMs)
    usd += ((untilMs - sinceMs) / HOUR_MS) * usdPerHour
    untilMs = sinceMs
  })
  return usd
}
