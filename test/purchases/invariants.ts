import type { ReservationStatus } from '../../core/reservation/reserving'
import { reservationBudgetId, type TreasuryState } from '../../core/money/treasury'
import type { PurchaseWorld } from './world'

/** How one wish ended. */
export interface Ended {
  id: string
  owner: string
  status: ReservationStatus
  /** It did not come to an end in time. */
  isStuck?: true
}

/** What the provider really sold, compared with what the wishes and the money of the month say. */
export function breachesOf(
  { market }: PurchaseWorld,
  ended: readonly Ended[],
  treasuries: readonly (TreasuryState | undefined)[],
): string[] {
  return [
    ...ended.flatMap((one) => breachesOfWish(market.purchases, one)),
    ...strangers(market.purchases, ended),
    ...breachesOfMoney(market.purchases, ended, treasuries),
  ]
}

type Purchases = PurchaseWorld['market']['purchases']

function breachesOfWish(purchases: Purchases, { id, status, isStuck }: Ended): string[] {
  const made = purchases.filter(({ intent }) => intent === id)
  const paid = made.filter(({ isPaid }) => isPaid !== false)
  const wrong: string[] = []
  if (isStuck) wrong.push(`${id}: stuck as ${status.state}: ${status.message} ${status.trouble ?? ''}`)
  if (paid.length > 1) wrong.push(`${id}: bought ${paid.length} times`)
  const sends = new Set(made.map(({ send }) => send))
  if (sends.size < made.length) wrong.push(`${id}: one purchase had an effect twice`)
  const held = status.reservation?.id
  const isHeld = status.state === 'scheduled'
  if (paid.length === 1 && !(isHeld && held === paid[0]!.id))
    wrong.push(`${id}: bought ${paid[0]!.id}, and is ${status.state} with ${held ?? 'nothing'}`)
  if (isHeld && !paid.some((one) => one.id === held)) wrong.push(`${id}: holds ${held}, which it did not buy`)
  if (status.undecided !== undefined) wrong.push(`${id}: an old question is still shown`)
  return wrong
}

function strangers(purchases: Purchases, ended: readonly Ended[]): string[] {
  return purchases
    .filter(({ intent }) => !ended.some(({ id }) => id === intent))
    .map(({ id, intent }) => `${id} was bought for ${intent}, which is no wish`)
}

/** Everything spent is a paid purchase, and nothing stays promised once a wish is settled. */
function breachesOfMoney(
  purchases: Purchases,
  ended: readonly Ended[],
  treasuries: readonly (TreasuryState | undefined)[],
): string[] {
  const wrong: string[] = []
  const paid = purchases.filter(({ isPaid }) => isPaid === true)
  const price = paid.reduce((sum, { quote }) => sum + quote.upfrontMicro, 0)
  const spent = treasuries.reduce(
    (sum, treasury) => sum + Object.values(treasury?.spent ?? {}).reduce((all, one) => all + one, 0),
    0,
  )
  if (spent !== price) wrong.push(`the month says ${spent}, the provider ${price}`)
  for (const { id, status } of ended) {
    const ofWish = paid
      .filter(({ intent }) => intent === id)
      .reduce((sum, { quote }) => sum + quote.upfrontMicro, 0)
    if (status.spentMicroUsd !== ofWish)
      wrong.push(`${id}: says ${status.spentMicroUsd}, the provider ${ofWish}`)
  }
  for (const treasury of treasuries)
    for (const id of Object.keys(treasury?.promised ?? {}))
      if (
        ended.some(
          (one) => id.startsWith(reservationBudgetId(one.id, 0).slice(0, -1)) && one.isStuck === undefined,
        )
      )
        wrong.push(`${id} is still promised`)
  return wrong
}
