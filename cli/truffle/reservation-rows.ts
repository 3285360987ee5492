import {
  durationHoursOf,
  offeringUsableUntil,
  priceOf,
  freeIn,
  usableUntilOf,
  type BlockOffering,
  type OfferingCoverage,
  type Owned,
} from '../../backends/ec2/capacity'
import { formatDuration, HOUR_MS } from '../../core/time/time'
import { plural } from '../kit/words'
import type { Row } from './answer'
import { usdInWords } from '../../core/money/money'
import { iso, minute } from './rows'

export const ODCR_COLUMNS = [
  'reservation_type',
  'reservation_id',
  'instance_type',
  'region',
  'availability_zone',
  'total_capacity',
  'available_capacity',
  'used_capacity',
  'state',
  'tenancy',
  'platform',
  'ebs_optimized',
  'instance_match_criteria',
  'interruptible',
  'owner_id',
  'start_date',
  'end_date',
  'on_demand_price',
  'hourly_cost',
  'idle_hourly_cost',
  'tags',
]

export function odcrRow({ region, reservation, usdPerHour }: Owned): Row {
  const { id, type, zone, total, state, tenancy, platform } = reservation
  const free = freeIn(reservation)
  const money = (count: number): number | null =>
    usdPerHour === undefined ? null : Math.round(usdPerHour * count * 10_000) / 10_000
  // Before a reservation is active, none of it is free, used or billed.
  const isActive = state === 'active'
  return {
    reservation_type: 'odcr',
    reservation_id: id,
    instance_type: type,
    region,
    availability_zone: zone,
    total_capacity: total,
    available_capacity: free,
    used_capacity: isActive ? total - free : 0,
    state,
    tenancy,
    platform,
    ebs_optimized: reservation.isEbsOptimized ?? false,
    instance_match_criteria: reservation.matching ?? null,
    interruptible: reservation.isInterruptible,
    owner_id: reservation.owner ?? null,
    start_date: iso(reservation.startsAtMs),
    end_date: iso(reservation.endsAtMs),
    on_demand_price: usdPerHour ?? null,
    hourly_cost: isActive ? money(total) : 0,
    idle_hourly_cost: isActive ? money(free) : 0,
    tags: reservation.tags ?? {},
  }
}

export const BLOCK_COLUMNS = [
  'reservation_type',
  'capacity_block_id',
  'reservation_id',
  'instance_type',
  'instance_count',
  'available_capacity',
  'region',
  'availability_zone',
  'start_date',
  'end_date',
  'usable_until',
  'duration_hours',
  'state',
  'reservation_fee',
  'ultra_cluster_placement',
  'tenancy',
  'platform',
  'owner_id',
  'tags',
]

export function blockRow({ region, reservation }: Owned): Row {
  const { id, type, zone, total, state, tenancy, platform } = reservation
  const free = freeIn(reservation)
  return {
    reservation_type: 'capacity-block',
    capacity_block_id: reservation.blockId ?? id,
    reservation_id: id,
    instance_type: type,
    instance_count: total,
    available_capacity: free,
    region,
    availability_zone: zone,
    start_date: iso(reservation.startsAtMs),
    end_date: iso(reservation.endsAtMs),
    usable_until: iso(usableUntilOf(reservation)),
    duration_hours: durationHoursOf(reservation) ?? null,
    state,
    // No call of EC2 returns the paid amount.
    reservation_fee: null,
    // AWS places every Capacity Block in an UltraCluster; no call shows it.
    ultra_cluster_placement: true,
    tenancy,
    platform,
    owner_id: reservation.owner ?? null,
    tags: reservation.tags ?? {},
  }
}

export const OFFERING_COLUMNS = [
  'offering_id',
  'instance_type',
  'instance_count',
  'region',
  'availability_zone',
  'start_date',
  'end_date',
  'usable_until',
  'duration_hours',
  'upfront_fee',
  'currency_code',
  'price_per_day',
  'price_per_instance_hour',
  'price_per_useful_hour',
  'short_hours',
  'ultra_cluster_placement',
  'tenancy',
  'reserve_command',
  'purchase_command',
]

type ForSaleRow = OfferingCoverage & { region: string; value: BlockOffering }

export function offeringRow({ region, value, perUsefulHour, shortMs }: ForSaleRow): Row {
  const { perDay, perInstanceHour } = priceOf(value)
  return {
    offering_id: value.id,
    instance_type: value.type,
    instance_count: value.count,
    region,
    availability_zone: value.zone,
    start_date: iso(value.startsAtMs),
    end_date: iso(value.endsAtMs),
    usable_until: iso(offeringUsableUntil(value)),
    duration_hours: durationHoursOf(value) ?? null,
    upfront_fee: Number(value.upfrontFee),
    currency_code: value.currency,
    price_per_day: perDay,
    price_per_instance_hour: perInstanceHour,
    price_per_useful_hour: perUsefulHour === undefined ? null : rounded(perUsefulHour),
    short_hours: rounded(shortMs / HOUR_MS),
    ultra_cluster_placement: true,
    tenancy: value.tenancy,
    reserve_command: reserveCommand(region, value),
    purchase_command: purchaseCommand(region, value),
  }
}

/** The command that searches for such a block, asks, buys it once and watches it. */
export function reserveCommand(region: string, offering: BlockOffering): string {
  const { type, count, startsAtMs, upfrontFee } = offering
  const hours = Math.max(1, Math.floor(durationHoursOf(offering) ?? DAY_HOURS))
  return reserveCommandOf({ type, count, region, hours, startsAtMs, usd: Number(upfrontFee) })
}

export interface ReserveWords {
  type: string
  count: number
  region: string
  hours: number
  startsAtMs: number
  /** The most that is paid. */
  usd: number
}

export function reserveCommandOf({ type, count, region, hours, startsAtMs, usd }: ReserveWords): string {
  const duration = hours % DAY_HOURS === 0 ? `${hours / DAY_HOURS}d` : `${hours}h`
  // The reservation may be this offering, or one that begins soon after it.
  const latest = new Date(Math.ceil(startsAtMs / HOUR_MS) * HOUR_MS + HOUR_MS)
    .toISOString()
    .replace('.000Z', 'Z')
  return (
    `crucible reservations reserve --type ${type} --count ${count} --for ${duration} --region ${region} ` +
    `--start-by ${latest} --max-upfront ${usd}`
  )
}

const rounded = (amount: number): number => Math.round(amount * 10_000) / 10_000

export function purchaseCommand(region: string, { id }: BlockOffering): string {
  return purchaseCommandOf(id, region)
}

export function purchaseCommandOf(id: string, region: string): string {
  return `aws ec2 purchase-capacity-block --capacity-block-offering-id ${id} --instance-platform Linux/UNIX --region ${region}`
}

/** The lines above the table of on-demand reservations. */
export function odcrSummary(owned: readonly Owned[]): string[] {
  const active = owned.filter(({ reservation }) => reservation.state === 'active')
  const total = sum(active.map(({ reservation }) => reservation.total))
  const free = sum(active.map(({ reservation }) => freeIn(reservation)))
  const priced = active.filter(({ usdPerHour }) => usdPerHour !== undefined)
  const cost = (count: (one: Owned) => number): number =>
    sum(priced.map((one) => count(one) * one.usdPerHour!))
  return [
    `Total Reservations: ${owned.length}`,
    typesLine(owned),
    `Total Capacity: ${plural(total, 'instance')}`,
    `Available: ${plural(free, 'instance')}${total === 0 ? '' : ` (${((free / total) * 100).toFixed(1)}% free)`}`,
    ...(priced.length === 0
      ? []
      : [
          `Cost: ${usdInWords(cost(({ reservation }) => reservation.total))}/h, billed whether used or not; ` +
            `unused: ${usdInWords(cost(({ reservation }) => freeIn(reservation)))}/h`,
        ]),
  ]
}

/** The lines above the table of Capacity Blocks. */
export function blockSummary(owned: readonly Owned[]): string[] {
  const instances = sum(owned.map(({ reservation }) => reservation.total))
  const free = sum(owned.map(({ reservation }) => freeIn(reservation)))
  return [
    `Total Blocks: ${owned.length}`,
    typesLine(owned),
    `Total Capacity: ${plural(instances, 'instance')}`,
    `Available: ${plural(free, 'instance')}`,
    durationLine(owned.flatMap(({ reservation }) => durationHoursOf(reservation) ?? [])),
  ]
}

function typesLine(owned: readonly Owned[]): string {
  const types = [...new Set(owned.map(({ reservation }) => reservation.type))].sort()
  return `Instance Types: ${types.length}${types.length === 0 ? '' : ` (${types.join(', ')})`}`
}

const DAY_HOURS = 24

function durationLine(hours: readonly number[]): string {
  if (hours.length === 0) return 'Duration Range: -'
  const [least, most] = [Math.min(...hours), Math.max(...hours)]
  const days = (value: number): string => String(Number((value / DAY_HOURS).toFixed(1)))
  if (least === most) return `Duration Range: ${least} hours (${days(least)} days)`
  return `Duration Range: ${least}-${most} hours (${days(least)}-${days(most)} days)`
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

export const ODCR_HEAD = [
  'Instance Type',
  'Region',
  'AZ',
  'Total',
  'Available',
  'Used',
  'State',
  'Ends',
  'Reservation ID',
]

export function odcrCells({ region, reservation }: Owned): string[] {
  const { type, zone, total, state, id, endsAtMs } = reservation
  const free = freeIn(reservation)
  const used = state === 'active' ? total - free : 0
  const percent = total === 0 ? 0 : Math.round((used / total) * 100)
  return [
    type,
    region,
    zone,
    String(total),
    String(free),
    `${used} (${percent}%)`,
    state,
    endsAtMs === undefined ? 'never' : minute(endsAtMs),
    id,
  ]
}

export const BLOCK_HEAD = [
  'Instance Type',
  'Count',
  'Available',
  'AZ',
  'Start',
  'End',
  'Usable Until',
  'Duration',
  'State',
  'Block ID',
]

export function blockCells({ reservation }: Owned): string[] {
  const { type, total, zone, startsAtMs, endsAtMs, state, blockId, id } = reservation
  const free = freeIn(reservation)
  const hours = durationHoursOf(reservation)
  return [
    type,
    String(total),
    String(free),
    zone,
    minute(startsAtMs),
    minute(endsAtMs),
    minute(usableUntilOf(reservation)),
    hours === undefined ? '-' : `${hours}h`,
    state,
    blockId ?? id,
  ]
}

export const OFFERING_HEAD = [
  'Offering ID',
  'Instance Type',
  'Count',
  'AZ',
  'Start',
  'End',
  'Hours',
  'Upfront',
  'Per Day',
  'Per Useful h',
  'Short',
]

export function offeringCells({ value, perUsefulHour, shortMs }: ForSaleRow): string[] {
  const { perDay } = priceOf(value)
  const money = (amount: number): string =>
    value.currency === 'USD' ? usdInWords(amount) : `${amount} ${value.currency}`
  return [
    value.id,
    value.type,
    String(value.count),
    value.zone,
    minute(value.startsAtMs),
    minute(value.endsAtMs),
    String(durationHoursOf(value) ?? '-'),
    money(Number(value.upfrontFee)),
    money(perDay),
    perUsefulHour === undefined ? '-' : money(perUsefulHour),
    shortMs === 0 ? '-' : formatDuration(shortMs),
  ]
}
