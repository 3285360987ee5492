import type { LookContext } from '../../backends/backend'
import { BackendError, failureOf } from '../../backends/errors'
import { CODES } from '../../core/errors'
import { isAmount } from '../../core/figures'
import { formatUsd } from '../../core/money/money'
import { isHeld, type ReleaseTerms, type ReservationOrder } from '../../core/reservation/reservation'
import { SHARE_DEFAULT } from '../../core/reservation/hold'
import type { PurchaseRule } from '../../core/reservation/reserving'
import type {
  BuyCapacityTask,
  CapacitySurvey,
  CapacityVerdict,
  FindPurchaseOutcome,
  HoldInput,
  HoldOutcome,
  LookForCapacityInput,
  ReleaseTask,
  ReservationTask,
  ReservingActivities,
} from '../../core/reservation/activities'
import { judgeHold } from '../../planner/reserving/hold'
import { judgeCapacity, rankQuotes } from '../../planner/reserving/judge'
import { quoteInWords } from '../../planner/reserving/words'
import {
  claimedReservations,
  claimReservation,
  lastReservationEntry,
  putHolder,
} from '../../storage/reservations'
import { Purchases } from '../../storage/purchases'
import { allBeating } from '../heartbeat'
import { wakeNext } from '../waking'
import { changeReservation, splitReservation } from './changing'
import { note, reservingOf, type ReservingDeps } from './deps'
import { lookForExtension } from './ending'
import { decidePurchase, findPurchase, purchase, type PurchaseDeps } from './purchase'
import { undecidedAmong } from './undecided'

/** The activities of reservations of one backend; every call is refused if it sells none. */
export function createReservingActivities(deps: ReservingDeps): ReservingActivities {
  return allBeating<ReservingActivities>({
    surveyCapacity: (input, signal) => surveyCapacity(deps, input, signal),
    lookForCapacity: (input, signal) => lookForCapacity(deps, input, signal),
    buyCapacity: (input, signal) => buyCapacity(deps, input, signal),
    findPurchase: (input, signal) => findOnRecord(deps, input, signal),
    decidePurchase: async (input, signal) => {
      const outcome = await decidePurchase(purchaseDeps(deps), input, signal)
      const summary = `${input.by}: ${foundInWords(outcome)}`
      await note(deps, input, { kind: 'decided', summary, data: { ownedId: input.ownedId, outcome } })
      return outcome
    },
    holdReservation: (input, signal) => holdReservation(deps, input, signal),
    releaseReservation: (input, signal) => releaseReservation(deps, input, signal),
    lookForExtension: (input, signal) => lookForExtension(deps, input, signal),
    changeReservation: (input, signal) => changeReservation(deps, input, signal),
    splitReservation: (input, signal) => splitReservation(deps, input, signal),
  })
}

function purchaseDeps(deps: ReservingDeps): PurchaseDeps {
  const { store, now, purchaseLimitMs } = deps
  return { reserving: reservingOf(deps), store, now, purchaseLimitMs }
}

/** Searches all parts of a provider. A part that does not answer is not one without capacity. */
function lookEverywhere(
  signal: AbortSignal,
  within?: readonly string[],
): { look: LookContext; unseen: () => string[] } {
  const failures = new Map<string, string>()
  return {
    look: {
      signal,
      within,
      unseen: (place, error) => void failures.set(place, failureOf(error).message),
    },
    unseen: () => [...failures].map(([place, message]) => `${place}: ${message}`),
  }
}

/** Records the holder before any capacity is held, so that none of its places is ever free for everyone. */
function noteHolder(
  { store }: ReservingDeps,
  { reservationId, owner, rule }: ReservationTask & { rule: PurchaseRule },
): Promise<void> {
  const { share = SHARE_DEFAULT, awaited } = rule
  return putHolder(store, reservationId, { owner, share, awaited })
}

async function lookForCapacity(
  deps: ReservingDeps,
  input: LookForCapacityInput,
  signal: AbortSignal,
): Promise<CapacityVerdict> {
  const { backend, store, now } = deps
  const reserving = reservingOf(deps)
  const { wish, rule, reservationId, deployment, approved, isFirst, earlierMicroUsd = 0 } = input
  await checkNotOver(deps, reservationId)
  await noteHolder(deps, input)
  const { sends, open } = await sentBefore(deps, reservationId, input.sends)
  if (open !== undefined) return resumed(open, { sends, account: await reserving.account({ signal }) })
  const { look, unseen } = lookEverywhere(signal, wish.regions)
  let unsold: string | undefined
  const [account, owned, quotes, claims] = await Promise.all([
    reserving.account({ signal }),
    reserving.reservations(look),
    reserving.reservable(wish, look).catch((error: unknown) => {
      const { class: failureClass, message, hint } = failureOf(error)
      if (failureClass !== 'invalid') throw error
      unsold = [message, hint].filter(Boolean).join('. ')
      return []
    }),
    claimedReservations(store, backend.name),
  ])
  const facts = {
    wish,
    rule,
    reservationId,
    deployment,
    account,
    sends,
    owned,
    quotes,
    claims,
    // Undecided purchases are read after the list, because a purchase is marked before it can show.
    undecided: await undecidedAmong(store, owned, { reservationId, backend: backend.name }),
    earlierMicroUsd,
  }
  const verdict = judgeCapacity({
    ...facts,
    unseen: unseen(),
    nowMs: now(),
    approved,
    unsold,
    isFirst,
  })
  await note(deps, input, {
    kind: 'looked',
    summary: verdict.message,
    data: {
      ...facts,
      claims: Object.fromEntries(claims),
      undecided: Object.fromEntries(facts.undecided),
      approved,
      verdict,
    },
  })
  if (verdict.kind !== 'adopt') return verdict
  const { id } = verdict.reservation
  const owner = await claimReservation(store, { backend: backend.name, ownedId: id, intent: reservationId })
  if (owner === reservationId) {
    const isOwn = verdict.reservation.intent === reservationId
    return isOwn ? { ...verdict, ...(await purchaseOf(deps, reservationId, id)) } : verdict
  }
  throw new BackendError({ class: 'transient', message: `${owner} claimed ${id} first; searching again.` })
}

/** A signed input is used up when its reservation is over: a copy of it, or a reset, searches and buys nothing again. */
async function checkNotOver({ store }: ReservingDeps, id: string): Promise<void> {
  if ((await lastReservationEntry(store, id))?.kind !== 'over') return
  throw new BackendError({ class: 'auth', code: CODES.notAllowed, message: `The reservation ${id} is over.` })
}

async function surveyCapacity(
  deps: ReservingDeps,
  { wish, rule = {} }: Parameters<ReservingActivities['surveyCapacity']>[0],
  signal: AbortSignal,
): Promise<CapacitySurvey> {
  const reserving = reservingOf(deps)
  const { look, unseen } = lookEverywhere(signal)
  const [account, owned, quotes] = await Promise.all([
    reserving.account({ signal }),
    reserving.reservations(look),
    wish === undefined ? [] : reserving.reservable(wish, look),
  ])
  return {
    account,
    owned,
    quotes: wish === undefined ? [] : rankQuotes({ wish, rule }, quotes),
    unseen: unseen(),
  }
}

/**
 * Returns the purchases of the request that its workflow does not know, because its history was reset: how many have certainly ended, and
 * the first that was sent and may have been made.
 */
async function sentBefore(
  { store, now }: ReservingDeps,
  intent: string,
  known: number,
): Promise<{ sends: number; open?: ReservationOrder }> {
  const purchases = new Purchases(store, now)
  for (let send = known + 1; ; send++) {
    const mark = await purchases.read({ intent, send })
    if (mark === undefined) return { sends: send - 1 }
    const effect = await purchases.effect({ intent, send })
    const isOpen = mark.kind === 'sent' && effect?.kind !== 'no-effect'
    if (isOpen) return { sends: send - 1, open: mark.order }
  }
}

function resumed(
  order: ReservationOrder,
  known: Pick<CapacityVerdict, 'account' | 'sends'>,
): CapacityVerdict {
  const message = `Purchase ${order.send} was sent before, and its outcome is unknown.`
  return { ...known, kind: 'resume', order, message, alternatives: [], unseen: [] }
}

/** Which purchase made it: a history that was set back does not know. */
async function purchaseOf(
  { store, now }: ReservingDeps,
  intent: string,
  ownedId: string,
): Promise<{ send: number; month?: string }> {
  const purchases = new Purchases(store, now)
  let last: ReservationOrder | undefined
  for (let send = 1; ; send++) {
    const [mark, effect] = [await purchases.read({ intent, send }), await purchases.effect({ intent, send })]
    if (mark === undefined) return { send: Math.max(1, send - 1), month: last?.month }
    last = mark.kind === 'sent' ? mark.order : last
    if (effect?.kind === 'bought' && effect.reservationId === ownedId) return { send, month: last?.month }
  }
}

async function buyCapacity(
  deps: ReservingDeps,
  input: BuyCapacityTask,
  signal: AbortSignal,
): ReturnType<ReservingActivities['buyCapacity']> {
  const { order } = input
  const { quote, send } = order
  await note(deps, input, {
    kind: 'sent',
    summary: `Purchase ${send}: ${quoteInWords(quote)} for ${formatUsd(quote.upfrontMicro)} upfront`,
    data: order,
  })
  return purchase(purchaseDeps(deps), order, signal)
}

async function findOnRecord(
  deps: ReservingDeps,
  input: BuyCapacityTask,
  signal: AbortSignal,
): Promise<FindPurchaseOutcome> {
  const outcome = await findPurchase(purchaseDeps(deps), input.order, signal)
  await note(deps, input, { kind: 'searched-for-purchase', summary: foundInWords(outcome), data: outcome })
  return outcome
}

function foundInWords(outcome: FindPurchaseOutcome): string {
  switch (outcome.kind) {
    case 'found':
      return `The purchase was made: ${outcome.reservation.id}.`
    case 'no-effect':
      return `Nothing was bought. ${outcome.failure.message}`
    case 'absent':
      return outcome.saw
  }
}

async function holdReservation(
  deps: ReservingDeps,
  input: HoldInput,
  signal: AbortSignal,
): Promise<HoldOutcome> {
  const { ref, held, rule, reservationId, elapsedMs = 0 } = input
  const all = await reservingOf(deps).reservations({ signal, within: [ref.region] })
  const reservation = all.find(({ id }) => id === ref.id)
  const strays = all.filter(
    ({ id, intent, deployment, phase }) =>
      id !== ref.id && intent === reservationId && deployment === input.deployment && isHeld(phase),
  )
  const facts = { reservation, held, reservationId, rule, elapsedMs, strays }
  const outcome = judgeHold({ ...facts, nowMs: deps.now() })
  const isNews = outcome.held.state !== held.state || outcome.warning !== undefined || outcome.next !== 'hold'
  if (isNews)
    await note(deps, input, { kind: 'held', summary: outcome.warning ?? outcome.message, data: outcome })
  // Free places of an active reservation are capacity for waiting jobs.
  const isFree = reservation?.phase === 'active' && reservation.free > 0
  if (isFree && (isNews || reservation.free > (held.reservation?.free ?? 0)))
    await wakeNext(deps, deps.backend.name).catch(() => undefined)
  return outcome
}

async function releaseReservation(
  deps: ReservingDeps,
  input: ReleaseTask,
  signal: AbortSignal,
): Promise<void> {
  const { ref, chargeMaxMicroUsd, reason } = input
  const reserving = reservingOf(deps)
  const terms: ReleaseTerms = await reserving.releaseTerms(ref, { signal })
  if (!isAmount(terms.chargeMicroUsd) || terms.chargeMicroUsd > chargeMaxMicroUsd)
    throw new BackendError({
      class: 'invalid',
      message: `Giving back ${ref.id} still costs ${formatUsd(terms.chargeMicroUsd)}, and ${formatUsd(chargeMaxMicroUsd)} is accepted. Accept it with --max-charge, or keep the reservation.`,
    })
  await reserving.release(ref, terms, { signal })
  await note(deps, input, { kind: 'released', summary: `Gave back ${ref.id}: ${reason}`, data: terms })
}
