import type { ReservationHolder } from '../core/reservation/hold'
import type { ReservationInput } from '../core/reservation/reserving'
import type { ReservationEntry } from '../core/reservation/activities'
import { putDocument, putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** Puts an entry on the record of a reservation, once. Returns the stored one, which a repeated activity may have put before. */
export async function putReservationEntry(
  store: ObjectStore,
  id: string,
  entry: ReservationEntry,
): Promise<ReservationEntry> {
  const key = layout.reservationRecord(id, entry.seq)
  if (await putDocumentIfAbsent(store, key, entry)) return entry
  return (await readDocument(store, key, parse)) ?? entry
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

/** The record of a reservation, in order. */
export async function readReservationEntries(store: ObjectStore, id: string): Promise<ReservationEntry[]> {
  const keys: string[] = []
  for await (const { key } of store.list(layout.reservationRecords(id))) keys.push(key)
  const entries = await eachOf(keys, (key) => readDocument(store, key, parse))
  return entries.filter((entry) => entry !== undefined)
}

/** The last entry on the record of a reservation; `undefined` without any. */
export async function lastReservationEntry(
  store: ObjectStore,
  id: string,
): Promise<ReservationEntry | undefined> {
  let last: string | undefined
  for await (const { key } of store.list(layout.reservationRecords(id)))
    if (last === undefined || key > last) last = key
  return last === undefined ? undefined : readDocument(store, last, parse)
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
  return readDocument(store, layout.reservationHolder(id), (text) => JSON.parse(text) as ReservationHolder)
}

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
  return (await readDocument(store, key, (text) => JSON.parse(text) as { intent: string }))?.intent
}

/** Returns the owned reservations that serve a request, by the provider's id. */
export async function claimedReservations(store: ObjectStore, backend: string): Promise<Map<string, string>> {
  const folder = layout.reservationClaims(backend)
  const keys: string[] = []
  for await (const { key } of store.list(folder)) keys.push(key)
  const claims = await eachOf(keys, async (key) => {
    const claim = await readDocument(store, key, (text) => JSON.parse(text) as { intent: string })
    return [key.slice(folder.length, -'.json'.length), claim?.intent ?? ''] as const
  })
  return new Map(claims)
}

function parse(text: string): ReservationEntry {
  return JSON.parse(text) as ReservationEntry
}
