import { defined, without } from '../../core/defined'
import type { Offer } from '../../core/offer'
import type { BackendAnswer } from '../../core/job/plan'
import { reservationOfWish } from '../../core/job/waiting'
import {
  isOfReservation,
  type AwaitedJob,
  type NamedReservation,
  type ReservationHold,
} from '../../core/reservation/hold'
import { Gaps } from '../../storage/json'
import { layout } from '../../storage/layout'
import { eachOf } from '../../storage/parallel'
import { RESOLVED_SEQ } from '../../storage/record'
import { claimOf, lastReservationEntry, readHolder } from '../../storage/reservations'
import { hasRunEnded } from '../../storage/schedules'
import type { ReservationStatus } from '../../core/reservation/reserving'
import type { ObjectStore } from '../../storage/store'
import { holderOf, recentLine } from '../../storage/waiting-line'
import { FORGET_TURN_MS, FORGET_WAITER_MS } from './waiting-line'

/** Adds to each offer of a reservation for whom its places are kept. `jobId` is the job that asks. */
export async function withHolds(
  store: ObjectStore,
  answers: readonly BackendAnswer[],
  { jobId, nowMs }: { jobId: string; nowMs: number },
): Promise<BackendAnswer[]> {
  const reserved = answers.flatMap(({ offers }) => offers.filter(isReserved))
  if (reserved.length === 0) return [...answers]
  const naming = await namingJobs(store, jobId)
  const held = await eachOf(reserved, async (offer) => {
    const hold = await holdOf(store, offer, nowMs)
    const kept = { ...offer, reservation: { ...offer.reservation!, ...defined({ hold }) } }
    const count = naming.filter(({ name }) => isOfReservation(kept, name)).length
    if (count > 0) kept.reservation.namedByWaiting = count
    return [offer, kept] as const
  })
  const byOffer = new Map<Offer, Offer>(held)
  return answers.map((answer) => ({
    ...answer,
    offers: answer.offers.map((offer) => byOffer.get(offer) ?? offer),
  }))
}

const isReserved = ({ reservationId, reservation }: Offer): boolean =>
  reservationId !== undefined && reservation !== undefined

/**
 * Returns the other jobs in line that name a reservation, and those whose order for a place is on its way. Jobs that vanished without an
 * end are excluded.
 */
async function namingJobs(store: ObjectStore, self: string): Promise<{ jobId: string; name: string }[]> {
  const { waiters, turns } = await recentLine(store)
  const newestMs = Math.max(...waiters.map((one) => one.seenAtMs), ...turns.map((one) => one.takenAtMs))
  const named = <T extends { wish: string }>(all: readonly T[], isCurrent: (one: T) => boolean) =>
    all.filter((one) => reservationOfWish(one.wish) !== undefined && isCurrent(one))
  const ordering = named(turns, (one) => newestMs - one.takenAtMs <= FORGET_TURN_MS)
  const jobs = [
    ...named(waiters, (one) => newestMs - one.seenAtMs <= FORGET_WAITER_MS),
    ...(await eachOf(ordering, async ({ key, wish }) => ({ jobId: await holderOf(store, key), wish }))),
  ]
  const byJob = new Map(jobs.map(({ jobId = '', wish }) => [jobId, reservationOfWish(wish)!]))
  byJob.delete(self)
  byJob.delete('')
  return [...byJob].map(([jobId, name]) => ({ jobId, name }))
}

/**
 * Returns the holder of a reservation. A claim counts more than the purpose of the purchase, because a reservation may serve another
 * request later. With an unreadable document, the places are kept for an unknown owner, and other reservations are not affected.
 */
async function holdOf(
  store: ObjectStore,
  { backend, reservationId, reservation }: Offer,
  nowMs: number,
): Promise<ReservationHold | undefined> {
  const gaps = new Gaps()
  const claim = await gaps.read('claim', () => claimOf(store, { backend, ownedId: reservationId! }))
  const intent = claim ?? reservation!.intent ?? (gaps.isEmpty ? undefined : reservationId!)
  if (intent === undefined) return undefined
  const holder = (await gaps.read('holder', () => readHolder(store, intent))) ?? {}
  const { awaited } = holder as ReservationHold
  const isAwaited = awaited !== undefined && (await isToCome(store, awaited, nowMs))
  return { reservation: intent, ...(isAwaited ? holder : without(holder as ReservationHold, ['awaited'])) }
}

/** Whether a job is still to come. Once it is resolved, it asks for its place itself. */
async function isToCome(
  store: ObjectStore,
  { jobId, untilMs, schedule, run }: AwaitedJob,
  nowMs: number,
): Promise<boolean> {
  if (nowMs >= untilMs || (await store.head(layout.record(jobId, RESOLVED_SEQ))) !== undefined) return false
  // Without a readable end, the job counts as still to come.
  return (await new Gaps().read(run, () => hasRunEnded(store, schedule, run))) !== true
}

/** Returns facts about a reservation that a job names, if no offer belongs to it. */
export async function namedReservation(
  store: ObjectStore,
  name: string | undefined,
  answers: readonly BackendAnswer[],
): Promise<NamedReservation | undefined> {
  if (name === undefined) return undefined
  if (answers.some(({ offers }) => offers.some((offer) => isOfReservation(offer, name)))) return undefined
  const claims = await eachOf(answers, ({ backend }) => claimOf(store, { backend, ownedId: name }))
  const last = await lastReservationEntry(store, claims.find((claim) => claim !== undefined) ?? name)
  if (last === undefined) return { state: 'unknown' }
  if (last.kind !== 'over') return { state: 'open', message: last.summary }
  return { state: 'over', message: (last.data as Partial<ReservationStatus>).message ?? last.summary }
}
