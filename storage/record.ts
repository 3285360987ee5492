import { RECORD_KINDS, type RecordEntry, type RecordEntryOf, type RecordKind } from '../core/job/record'
import { putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import { StoreError, type ObjectStore } from './store'

/** The number of the entry of a checked job; its submission is number 0. */
export const RESOLVED_SEQ = 1

/**
 * Puts an entry on the job's record, once. Returns the stored entry: an earlier one when a repeated activity had put it before. The stored
 * entry is authoritative.
 */
export async function putRecord<Kind extends RecordKind>(
  store: ObjectStore,
  jobId: string,
  entry: RecordEntryOf<Kind>,
): Promise<RecordEntryOf<Kind>> {
  const key = layout.record(jobId, entry.seq)
  if (await putDocumentIfAbsent(store, key, entry)) return entry
  const earlier = await readDocument(store, key, parseEntry)
  // Each number is one step of the job, so an earlier entry with it has the same kind.
  if (earlier !== undefined) return earlier as RecordEntryOf<Kind>
  throw new StoreError(`The record ${key} disappeared: another program deletes objects in this store.`, {
    isTransient: true,
  })
}

/** Entries by their keys. They never change, so who looks again reads only the new ones. */
export type RecordCache = Map<string, RecordEntry>

/**
 * Returns the record of a job, in order: all of it, only the entries after a number, or only the last few of those. Takes the known entries
 * from `known`, and adds the others to it.
 */
export async function readRecords(
  store: ObjectStore,
  jobId: string,
  {
    afterSeq,
    last = Infinity,
    known = new Map(),
  }: { afterSeq?: number; last?: number; known?: RecordCache } = {},
): Promise<RecordEntry[]> {
  const keys: string[] = []
  for await (const { key } of store.list(layout.records(jobId))) {
    if (afterSeq === undefined || key > layout.record(jobId, afterSeq)) keys.push(key)
  }
  const wanted = last < keys.length ? keys.slice(-last) : keys
  const entries = await eachOf(wanted, async (key) => {
    const entry = known.get(key) ?? (await readDocument(store, key, parseEntry))
    if (entry !== undefined) known.set(key, entry)
    return entry
  })
  return entries.filter((entry) => entry !== undefined)
}

/** Returns one entry, or `undefined` when it does not exist. */
export async function readRecord(
  store: ObjectStore,
  jobId: string,
  seq: number,
): Promise<RecordEntry | undefined> {
  return readDocument(store, layout.record(jobId, seq), parseEntry)
}

/** Only this file writes and reads the record, so a brief check of its shape suffices. */
function parseEntry(text: string): RecordEntry {
  const entry = JSON.parse(text) as Partial<RecordEntry> | null
  if (typeof entry?.seq !== 'number' || entry.kind === undefined || !RECORD_KINDS.includes(entry.kind)) {
    throw new Error('it is not an entry of a record')
  }
  return entry as RecordEntry
}
