/** The invariants of purchases: what a provider sold, against what reservations and the money of a month say. */
import type { ReservationStatus } from '../../core/reservation/reserving'
import { reservationBudgetId, type TreasuryState } from '../../core/money/treasury'
import { sum } from './table'

/** What a provider sold, by its own books. */
export interface Sale {
  id: string
  /** The reservation that it was sold for. */
  intent: string
  /** Which request it came of. */
  send?: number
  upfrontMicroUsd: number
  /** Missing while the payment is open, false where it failed. */
  isPaid?: boolean
}

/** How a reservation ended. */
export interface Buyer {
  id: string
  status: ReservationStatus
  /** It did not come to an end in time. */
  isStuck?: boolean
}

export function breachesOfSales(
  sales: readonly Sale[],
  buyers: readonly Buyer[],
  treasuries: readonly (TreasuryState | undefined)[],
): string[] {
  return [
    ...buyers.flatMap((one) => breachesOfBuyer(sales, one)),
    ...strangers(sales, buyers),
    ...breachesOfMoney(sales, buyers, treasuries),
  ]
}

/** Sales beyond one for each request: a request has its effect once. */
export function soldTwice(sales: readonly Pick<Sale, 'intent' | 'send'>[]): number {
  return sales.length - new Set(sales.map(({ intent, send }) => `${intent}/${send}`)).size
}

/** What the months say was spent. */
export function spentIn(treasuries: readonly (TreasuryState | undefined)[]): number {
  return sum(treasuries.flatMap((treasury) => Object.values(treasury?.spent ?? {})))
}

function breachesOfBuyer(sales: readonly Sale[], { id, status, isStuck = false }: Buyer): string[] {
  const made = sales.filter(({ intent }) => intent === id)
  const paid = made.filter(({ isPaid }) => isPaid !== false)
  const wrong: string[] = []
  if (isStuck) wrong.push(`${id}: stuck as ${status.state}: ${status.message} ${status.trouble ?? ''}`)
  if (paid.length > 1) wrong.push(`${id}: bought ${paid.length} times`)
  if (soldTwice(made) > 0) wrong.push(`${id}: one purchase had an effect twice`)
  const held = status.reservation?.id
  const isHeld = status.state === 'scheduled'
  if (paid.length === 1 && !(isHeld && held === paid[0]!.id))
    wrong.push(`${id}: bought ${paid[0]!.id}, and is ${status.state} with ${held ?? 'nothing'}`)
  if (isHeld && !paid.some((one) => one.id === held)) wrong.push(`${id}: holds ${held}, which it did not buy`)
  if (status.undecided !== undefined) wrong.push(`${id}: an old question is still shown`)
  return wrong
}

function strangers(sales: readonly Sale[], buyers: readonly Buyer[]): string[] {
  return sales
    .filter(({ intent }) => !buyers.some(({ id }) => id === intent))
    .map(({ id, intent }) => `${id} was bought for ${intent}, which is no wish`)
}

/** Everything spent is a paid purchase, and nothing stays promised once a reservation is settled. */
function breachesOfMoney(
  sales: readonly Sale[],
  buyers: readonly Buyer[],
  treasuries: readonly (TreasuryState | undefined)[],
): string[] {
  const wrong: string[] = []
  const paid = sales.filter(({ isPaid }) => isPaid === true)
  const price = sum(paid.map(({ upfrontMicroUsd }) => upfrontMicroUsd))
  const spent = spentIn(treasuries)
  if (spent !== price) wrong.push(`the month says ${spent}, the provider ${price}`)
  for (const { id, status } of buyers) {
    const own = sum(paid.filter(({ intent }) => intent === id).map(({ upfrontMicroUsd }) => upfrontMicroUsd))
    if (status.spentMicroUsd !== own) wrong.push(`${id}: says ${status.spentMicroUsd}, the provider ${own}`)
  }
  const settled = buyers.filter(({ isStuck = false }) => !isStuck)
  const prefixes = settled.map(({ id }) => reservationBudgetId(id, 0).slice(0, -1))
  for (const treasury of treasuries)
    for (const id of Object.keys(treasury?.promised ?? {}))
      if (prefixes.some((prefix) => id.startsWith(prefix))) wrong.push(`${id} is still promised`)
  return wrong
}
