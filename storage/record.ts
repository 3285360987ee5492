import { CODES } from '../core/errors'
import { RECORD_KINDS, type RecordEntry, type RecordEntryOf, type RecordKind } from '../core/job/record'
import { Gaps, isRecord, putOnce, readDocument } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import { StoreError, type ObjectStore } from './store'

/** The number of the entry of a checked job; its submission is number 0. */
export const RESOLVED_SEQ = 1

/**
 * Puts an entry on the job's record, once. Returns the stored entry: an earlier one when a repeated activity had put it before. The stored
 * entry is authoritative. Throws a `StoreError` with the code `OTHER_HISTORY` for the number of another step, such as one after which the job ended.
 */
export async function putRecord<Kind extends RecordKind>(
  store: ObjectStore,
  jobId: string,
  entry: RecordEntryOf<Kind>,
): Promise<RecordEntryOf<Kind>> {
  const key = layout.record(jobId, entry.seq)
  const stored = await putOnce(store, key, entry, (text) => parseEntry(text, key) as RecordEntryOf<Kind>)
  if (stepOf(stored.kind) === stepOf(entry.kind)) return stored
  const message = `Step ${entry.seq} of ${jobId} was "${stored.kind}", not "${entry.kind}": its workflow was reset, and took other steps since. The job ends. Continue from its newest checkpoint: crucible submit --from ${jobId}.`
  throw new StoreError(message, { isTransient: false, code: CODES.otherHistory })
}

/**
 * Puts the end of an attempt or of a job on the record, also if a reset has led to other steps: the end that the record has counts, and
 * otherwise the entry follows the last one.
 */
export async function putEnd<Kind extends 'settled' | 'finished'>(
  store: ObjectStore,
  jobId: string,
  entry: RecordEntryOf<Kind>,
): Promise<RecordEntryOf<Kind>> {
  for (let { seq } = entry; ;) {
    try {
      return await putRecord(store, jobId, { ...entry, seq })
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== CODES.otherHistory) throw error
    }
    const records = await readRecords(store, jobId)
    const earlier = records.find(({ kind, attempt }) => kind === entry.kind && attempt === entry.attempt)
    if (earlier !== undefined) return earlier as RecordEntryOf<Kind>
    seq = records.at(-1)!.seq + 1
  }
}

/** A plan finds a place or not. */
function stepOf(kind: RecordKind): RecordKind {
  return kind === 'waiting' ? 'planned' : kind
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
  options: { afterSeq?: number; last?: number; known?: RecordCache } = {},
): Promise<RecordEntry[]> {
  return readEach(store, { jobId, ...options }, (_, read) => read())
}

type Read = () => Promise<RecordEntry | undefined>

async function readEach(
  store: ObjectStore,
  {
    jobId,
    afterSeq,
    last = Infinity,
    known = new Map(),
  }: { jobId: string; afterSeq?: number; last?: number; known?: RecordCache },
  via: (key: string, read: Read) => Promise<RecordEntry | undefined>,
): Promise<RecordEntry[]> {
  const keys: string[] = []
  for await (const { key } of store.list(layout.records(jobId))) {
    if (afterSeq === undefined || key > layout.record(jobId, afterSeq)) keys.push(key)
  }
  const wanted = last < keys.length ? keys.slice(-last) : keys
  const entries = await eachOf(wanted, async (key) => {
    const entry =
      known.get(key) ?? (await via(key, () => readDocument(store, key, (text) => parseEntry(text, key))))
    if (entry !== undefined) known.set(key, entry)
    return entry
  })
  return entries.filter((entry) => entry !== undefined)
}

/** The readable entries of a record, and the names of the others. */
export interface RecordSurvey {
  entries: RecordEntry[]
  /** Below the job's folder, such as `record/000003.json`. */
  unreadable: string[]
}

/** Like `readRecords`, for a reader who shows what can be read and names what cannot. */
export async function surveyRecords(
  store: ObjectStore,
  jobId: string,
  options: { afterSeq?: number; last?: number; known?: RecordCache } = {},
): Promise<RecordSurvey> {
  const gaps = new Gaps()
  const entries = await readEach(store, { jobId, ...options }, (key, read) =>
    gaps.read(key.slice(layout.job(jobId).length), async () => {
      const entry = await read()
      if (entry !== undefined && !hasForm(entry)) throw notOfKind(key, entry)
      return entry
    }),
  )
  return { entries, unreadable: gaps.names }
}

/** Whether the store has any entry of the job, readable or not. */
export async function hasRecord(store: ObjectStore, jobId: string): Promise<boolean> {
  for await (const _ of store.list(layout.records(jobId))) return true
  return false
}

/** Returns one entry, or `undefined` when it does not exist. */
export async function readRecord(
  store: ObjectStore,
  jobId: string,
  seq: number,
): Promise<RecordEntry | undefined> {
  const key = layout.record(jobId, seq)
  return readDocument(store, key, (text) => parseEntry(text, key))
}

/** Only this file writes the record, so the check is brief: it finds damage, and the entry of another job. */
function parseEntry(text: string, key: string): RecordEntry {
  const entry = JSON.parse(text) as Partial<RecordEntry> | null
  if (typeof entry?.seq !== 'number' || entry.kind === undefined || !RECORD_KINDS.includes(entry.kind)) {
    throw new Error('it is not an entry of a record')
  }
  const whole = entry as RecordEntry
  const [, jobId = ''] = key.split('/')
  if (layout.record(jobId, whole.seq) !== key || typeof whole.atMs !== 'number')
    throw new Error('it is not the entry of this number')
  const named = jobIn(whole)
  if (named !== undefined && named !== jobId) throw new Error('it is an entry of another job')
  return whole
}

function notOfKind(key: string, { kind }: RecordEntry): StoreError {
  return new StoreError(
    `The document ${key} cannot be read: it lacks parts of an entry of the kind ${kind}`,
    {
      isTransient: false,
      code: CODES.badDocument,
    },
  )
}

/** Whether the entry has the parts that every reader uses. */
function hasForm({ kind, data }: RecordEntry): boolean {
  if (!isRecord(data)) return false
  switch (kind) {
    case 'submitted':
      return isRecord(data.spec) && typeof data.submittedAtMs === 'number'
    case 'waiting':
    case 'planned':
      return isRecord(data.outcome) && (data.outcome.kind !== 'place' || isRecord(data.outcome.order))
    case 'settled':
      return typeof data.costMicroUsd === 'number' && Array.isArray(data.artifacts)
    case 'decided':
      return isRecord(data.verdict) && isRecord(data.verdict.decision)
    case 'finished':
      return isRecord(data.result) && isRecord(data.status) && Array.isArray(data.status.attempts)
    case 'resolved':
    case 'copied':
    case 'launched':
    case 'interrupted':
      return true
  }
}

/** The job that the entry itself names, if any. */
function jobIn({ kind, data }: RecordEntry): string | undefined {
  const { jobId, result } = (data ?? {}) as { jobId?: unknown; result?: { id?: unknown } }
  const named = kind === 'finished' ? result?.id : kind === 'submitted' ? jobId : undefined
  return typeof named === 'string' ? named : undefined
}
