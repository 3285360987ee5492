/** Upfront payments of Capacity Blocks and their extensions. */
import { HOUR_MS, LEAD_MS, MINUTE_MS } from './block-rules'
import type { Ec2 } from './ec2'

export interface Payment {
  /** Time at which the outcome is known. */
  atMs: number
  succeeds: boolean
}

/** EC2 gives up a payment that is not made within this time. */
const WITHIN_MS = 12 * HOUR_MS
/** A block must be paid for this long before its start. */
const BEFORE_START_MS = 5 * MINUTE_MS
/** An extension must be paid for this long before the end of its block. */
const BEFORE_END_MS = 35 * MINUTE_MS

export interface Payable {
  region: string
  zone: string
  type: string
}

/** Decides on the payment of a block. A block of a world file may begin earlier than EC2 sells one. */
export function blockPayment(ec2: Ec2, what: Payable, startsAtMs: number): Payment {
  const isSoon = startsAtMs - ec2.nowMs < LEAD_MS
  return payment(ec2, what, isSoon ? Infinity : startsAtMs - BEFORE_START_MS)
}

/** Decides on the payment of an extension, which begins when its block ends. */
export function extensionPayment(ec2: Ec2, what: Payable, startsAtMs: number): Payment {
  return payment(ec2, what, startsAtMs - BEFORE_END_MS)
}

function payment(ec2: Ec2, { region, zone, type }: Payable, deadlineMs: number): Payment {
  const { faults } = ec2.parts
  const occasion = { service: 'ec2', region, zone, type, capacity: 'reserved' }
  const lateMs = faults.strike('payment-late', occasion).reduce((sum, { by }) => sum + by, 0)
  const paidAtMs = ec2.nowMs + ec2.drawMs('payment') + lateMs
  const untilMs = Math.min(deadlineMs, ec2.nowMs + WITHIN_MS)
  const fails = faults.first('payment-fails', occasion) !== undefined
  return { atMs: Math.min(paidAtMs, untilMs), succeeds: !fails && paidAtMs <= untilMs }
}
