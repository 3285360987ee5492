import { SHARES, type ReservationHolder } from '../core/reservation/hold'
import type { ReservationInput, ReservationStatus } from '../core/reservation/reserving'
import type { ReservationEntry } from '../core/reservation/activities'
import {
  ignoreUnreadable,
  isRecord,
  parserOf,
  putDocument,
  putDocumentIfAbsent,
  putOnce,
  readDocument,
  type Gaps,
  type Parse,
} from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** Puts an entry on the record of a reservation, once. Returns the stored one, which a repeated activity may have put before. */
export async function putReservationEntry(
  store: ObjectStore,
  id: string,
  entry: ReservationEntry,
): Promise<ReservationEntry> {
  return putOnce(store, layout.reservationRecord(id, entry.seq), entry, parserFor(id))
}

/** Records a request, so that it is known without its workflow. The first one counts and is returned. */
export async function putRequest(
  store: ObjectStore,
  input: ReservationInput,
  summary = `${input.wish.count} × ${input.wish.types.join(' or ')}, ${input.wish.kind}`,
): Promise<ReservationInput> {
  const { reservationId, submittedAtMs: atMs } = input
  const entry: ReservationEntry = { seq: 0, atMs, kind: 'requested', data: input, summary }
  return (await putReservationEntry(store, reservationId, entry)).data as ReservationInput
}

/** Removes a request whose workflow never began. If anything but the request is stored of the reservation, nothing is removed. */
export async function forgetRequest(store: ObjectStore, id: string): Promise<void> {
  const entry = layout.reservationRecord(id, 0)
  const webhook = layout.reservationWebhook(id)
  for await (const { key } of store.list(layout.reservation(id))) if (key !== entry && key !== webhook) return
  await store.delete(webhook)
  await store.delete(entry)
}

/** The record of a reservation, in order. With `gaps`, for a reader: without the entries that cannot be read or shown. */
export async function readReservationEntries(
  store: ObjectStore,
  id: string,
  gaps?: Gaps,
): Promise<ReservationEntry[]> {
  const keys: string[] = []
  for await (const { key } of store.list(layout.reservationRecords(id))) keys.push(key)
  if (gaps !== undefined)
    return gaps.readEach(keys, (key) => readDocument(store, key, (text) => shown(parserFor(id)(text))))
  const entries = await eachOf(keys, (key) => readDocument(store, key, parserFor(id)))
  return entries.filter((entry) => entry !== undefined)
}

/** Whether a reservation has a record, readable or not. */
export async function hasReservation(store: ObjectStore, id: string): Promise<boolean> {
  for await (const _ of store.list(layout.reservationRecords(id))) return true
  return false
}

/** The last entry on the record of a reservation; `undefined` without any. */
export async function lastReservationEntry(
  store: ObjectStore,
  id: string,
): Promise<ReservationEntry | undefined> {
  let last: string | undefined
  for await (const { key } of store.list(layout.reservationRecords(id)))
    if (last === undefined || key > last) last = key
  return last === undefined ? undefined : readDocument(store, last, parserFor(id))
}

/** Records once for whom a reservation holds its capacity. */
export async function putHolder(store: ObjectStore, id: string, holder: ReservationHolder): Promise<void> {
  await putDocumentIfAbsent(store, layout.reservationHolder(id), holder)
}

/** Changes who may use idle places; the rest stays as recorded. */
export async function changeShare(
  store: ObjectStore,
  id: string,
  { owner, share }: Pick<ReservationHolder, 'owner' | 'share'>,
): Promise<void> {
  const holder = (await readHolder(store, id)) ?? { owner }
  await putDocument(store, layout.reservationHolder(id), { ...holder, share })
}

export async function readHolder(store: ObjectStore, id: string): Promise<ReservationHolder | undefined> {
  return readDocument(store, layout.reservationHolder(id), parseHolder)
}

const parseHolder = parserOf<ReservationHolder>('the holder of a reservation', ({ owner, share, awaited }) =>
  [
    typeof owner === 'string',
    share === undefined || SHARES.includes(share),
    awaited === undefined || (isRecord(awaited) && typeof awaited.untilMs === 'number'),
  ].every(Boolean),
)

/** The ids of all reservations, in no order. */
export async function reservationIds(store: ObjectStore): Promise<string[]> {
  const folder = layout.reservations()
  const ids = new Set<string>()
  for await (const { key } of store.list(folder)) ids.add(key.slice(folder.length).split('/')[0]!)
  return [...ids]
}

/** Claims an owned reservation for a request. Returns the request that has it. */
export async function claimReservation(
  store: ObjectStore,
  { backend, ownedId, intent }: { backend: string; ownedId: string; intent: string },
): Promise<string> {
  const key = layout.reservationClaim(backend, ownedId)
  if (await putDocumentIfAbsent(store, key, { intent })) return intent
  return (await claimOf(store, { backend, ownedId })) ?? intent
}

/** Returns the request that has claimed an owned reservation. */
export async function claimOf(
  store: ObjectStore,
  { backend, ownedId }: { backend: string; ownedId: string },
): Promise<string | undefined> {
  const key = layout.reservationClaim(backend, ownedId)
  return (await readDocument(store, key, parseClaim))?.intent
}

/**
 * Returns the owned reservations that serve a request, by the provider's id. A reservation whose claim is unreadable belongs to an unknown
 * request.
 */
export async function claimedReservations(store: ObjectStore, backend: string): Promise<Map<string, string>> {
  const folder = layout.reservationClaims(backend)
  const keys: string[] = []
  for await (const { key } of store.list(folder)) keys.push(key)
  const claims = await eachOf(keys, async (key) => {
    const claim = await readDocument(store, key, parseClaim).catch(ignoreUnreadable)
    return [key.slice(folder.length, -'.json'.length), claim?.intent ?? ''] as const
  })
  return new Map(claims)
}

const parseClaim = parserOf<{ intent: string }>('a claim', ({ intent }) => typeof intent === 'string')

const parseEntry = parserOf<ReservationEntry>(
  'an entry of a record',
  ({ seq, kind, data }) => typeof seq === 'number' && typeof kind === 'string' && isRecord(data),
)

/** Finds damage, and the entry of another reservation. */
function parserFor(id: string): Parse<ReservationEntry> {
  return (text) => {
    const entry = parseEntry(text)
    const { reservationId, id: status } = entry.data as Partial<ReservationInput & ReservationStatus>
    const named = entry.kind === 'over' ? status : entry.kind === 'requested' ? reservationId : undefined
    if (named !== undefined && named !== id) throw new Error('it is an entry of another reservation')
    return entry
  }
}

/** Returns an entry that has the parts that are shown. */
function shown(entry: ReservationEntry): ReservationEntry {
  const { wish } = entry.data as Partial<ReservationInput>
  const hasWish = entry.kind === 'requested' || entry.kind === 'over'
  if (hasWish && !(isRecord(wish) && Array.isArray(wish.types))) throw new Error('it lacks parts of its kind')
  return entry
}
