/** Retraining schedules in the store: versions of their files, and the records of their runs. */
import type { PromotedModel } from '../core/retraining/retraining'
import type { RetrainInput, RetrainResult, RunEntry } from '../core/retraining/run'
import { Gaps, isRecord, parserOf, putDocument, putDocumentIfAbsent, readDocument, type Parse } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import { StoreError, type ObjectStore } from './store'

/** `schedules/<name>/revisions/<n>.json`: put once. */
export interface ScheduleRevision {
  revision: number
  atMs: number
  by: string
  kind: 'created' | 'updated' | 'secrets' | 'deleted'
  input: Omit<RetrainInput, 'carry'>
}

const parseRevision = (name: string): Parse<ScheduleRevision> =>
  parserOf<ScheduleRevision>(
    `a revision of ${name}`,
    ({ revision, atMs, kind, input }) =>
      typeof revision === 'number' &&
      typeof atMs === 'number' &&
      typeof kind === 'string' &&
      isRecord(input) &&
      input.schedule === name,
  )
const parseRunEntry = parserOf<RunEntry>(
  'an entry of a run',
  ({ seq, kind }) => typeof seq === 'number' && typeof kind === 'string',
)
const parseModel = parserOf<PromotedModel>(
  'a version of a model',
  ({ seq, jobId, run, digest }) => typeof seq === 'number' && [jobId, run, digest].every(isText),
)
const parsePromotionClaim = parserOf<PromotionClaim>(
  'a claim to promote',
  ({ number, workflowId, run }) => typeof number === 'number' && [workflowId, run].every(isText),
)

const isText = (value: unknown): boolean => typeof value === 'string'

/** Whether the last entry of a run has the parts that are shown. */
function isResult(data: unknown): boolean {
  if (!isRecord(data)) return false
  const { state, message, costMicroUsd, warnings, jobs } = data as Partial<RetrainResult>
  return (
    [state, message].every(isText) &&
    typeof costMicroUsd === 'number' &&
    Array.isArray(warnings) &&
    Array.isArray(jobs)
  )
}

/** Returns all revisions of a schedule, oldest first. */
export async function readRevisions(store: ObjectStore, name: string): Promise<ScheduleRevision[]> {
  const keys = await keysUnder(store, layout.scheduleRevisions(name))
  const read = await eachOf(keys, (key) => readDocument(store, key, parseRevision(name)))
  return read.filter((revision) => revision !== undefined)
}

/** Like `readRevisions`, without those that cannot be read. */
export async function surveyRevisions(
  store: ObjectStore,
  name: string,
  gaps: Gaps,
): Promise<ScheduleRevision[]> {
  const keys = await keysUnder(store, layout.scheduleRevisions(name))
  const parse = parseRevision(name)
  return gaps.readEach(keys, (key) =>
    readDocument(store, key, (text) => {
      const revision = parse(text)
      if (!isRecord(revision.input.spec?.calendar)) throw new Error('it has no calendar')
      return revision
    }),
  )
}

/** The number of the newest revision, readable or not; 0 without one. */
export async function newestRevision(store: ObjectStore, name: string): Promise<number> {
  const newest = (await keysUnder(store, layout.scheduleRevisions(name))).sort().at(-1)
  return newest === undefined ? 0 : Number(/(\d{6})\.json$/.exec(newest)?.[1] ?? 0)
}

/** Puts the next revision. Returns false if another client was first. */
export async function putRevision(store: ObjectStore, revision: ScheduleRevision): Promise<boolean> {
  const { schedule } = revision.input
  return putDocumentIfAbsent(store, layout.scheduleRevision(schedule, revision.revision), revision)
}

/** Names of all schedules that this store ever had. */
export async function scheduleNames(store: ObjectStore): Promise<string[]> {
  return store.listFolders(layout.schedules())
}

/**
 * Puts an entry on the record of a run, once. Returns the stored one, which a repeated activity may have put earlier. An entry of another
 * kind comes from a reset history that had progressed further; then this entry gets the next free number.
 */
export async function putRunEntry<T extends RunEntry>(
  store: ObjectStore,
  { schedule, run }: { schedule: string; run: string },
  entry: T,
): Promise<T> {
  for (let { seq } = entry; ; seq++) {
    const key = layout.runRecord(schedule, run, seq)
    const numbered = { ...entry, seq }
    if (await putDocumentIfAbsent(store, key, numbered)) return numbered
    const stored = (await readDocument(store, key, parseRunEntry)) as T | undefined
    if (stored === undefined) return numbered
    if (stored.kind === entry.kind) return stored
  }
}

/** The first entry of a run; `undefined` before it has begun. */
export async function readRunStart(
  store: ObjectStore,
  schedule: string,
  run: string,
): Promise<RunEntry | undefined> {
  return readDocument(store, layout.runRecord(schedule, run, 0), parseRunEntry)
}

/** The record of a run, in order. */
export async function readRun(store: ObjectStore, schedule: string, run: string): Promise<RunEntry[]> {
  const keys = await keysUnder(store, `${layout.scheduleRuns(schedule)}${run}/`)
  const read = await eachOf(keys, (key) => readDocument(store, key, parseRunEntry))
  return read.filter((entry) => entry !== undefined)
}

/** Whether a run has its last entry. */
export async function hasRunEnded(store: ObjectStore, schedule: string, run: string): Promise<boolean> {
  const last = (await keysUnder(store, `${layout.scheduleRuns(schedule)}${run}/`)).sort().at(-1)
  if (last === undefined) return false
  return (await readDocument(store, last, parseRunEntry))?.kind === 'finished'
}

function parseShownEntry(text: string): RunEntry {
  const entry = parseRunEntry(text)
  if (entry.kind === 'finished' && !isResult(entry.data)) throw new Error('it is not the result of a run')
  return entry
}

/** A run with its result; null while it is active. */
export interface RecordedRun {
  id: string
  startedAtMs: number
  result: RetrainResult | null
}

/** The newest runs of a schedule, newest first, as far as their entries can be read. */
export async function readRuns(
  store: ObjectStore,
  { schedule, count }: { schedule: string; count: number },
  gaps = new Gaps(),
): Promise<RecordedRun[]> {
  const ids = (await store.listFolders(layout.scheduleRuns(schedule))).sort().reverse().slice(0, count)
  return eachOf(ids, async (id) => {
    const keys = await keysUnder(store, `${layout.scheduleRuns(schedule)}${id}/`)
    const entries = await gaps.readEach(keys, (key) => readDocument(store, key, parseShownEntry))
    const last = entries.find(({ kind }) => kind === 'finished')
    return {
      id,
      startedAtMs: entries[0]?.atMs ?? 0,
      result: last === undefined ? null : (last.data as RetrainResult),
    }
  })
}

/** The model in production under a name; `undefined` before the first promotion. */
export async function readProduction(store: ObjectStore, model: string): Promise<PromotedModel | undefined> {
  const newest = (await keysUnder(store, layout.models(model))).at(-1)
  return newest === undefined ? undefined : readDocument(store, newest, parseModel)
}

/**
 * Puts a model into production as the next number of the chain, which exactly one writer gets. If the run has already done so, nothing
 * changes. `check` throws if the model must not replace the current one.
 */
export async function promote(
  store: ObjectStore,
  name: string,
  {
    check,
    ...model
  }: Omit<PromotedModel, 'seq' | 'previousSeq'> & {
    check?: (current: PromotedModel | undefined) => void
  },
): Promise<PromotedModel> {
  for (let tries = 0; tries < PROMOTIONS_MAX; tries++) {
    const chain = await readChain(store, name)
    const done = chain.find(({ run, schedule }) => run === model.run && schedule === model.schedule)
    const current = chain.at(-1)
    if (done === undefined) check?.(current)
    const promoted: PromotedModel = done ?? {
      ...model,
      seq: (current?.seq ?? 0) + 1,
      previousSeq: current?.seq ?? null,
    }
    const isPut =
      done !== undefined || (await putDocumentIfAbsent(store, layout.model(name, promoted.seq), promoted))
    if (!isPut) continue
    await copyProduction(store, name)
    return promoted
  }
  throw new StoreError(`The model ${name} is promoted by many runs at once.`, { isTransient: true })
}

/** Says that a run promotes; the newest of a model counts. */
export interface PromotionClaim {
  /** 1, 2, ...; each is put once. */
  number: number
  atMs: number
  schedule: string
  run: string
  workflowId: string
}

export async function readPromotionClaim(
  store: ObjectStore,
  model: string,
): Promise<PromotionClaim | undefined> {
  const newest = (await keysUnder(store, layout.promotionClaims(model))).at(-1)
  return newest === undefined ? undefined : readDocument(store, newest, parsePromotionClaim)
}

/** Puts the next claim. Returns false if another run was first. */
export async function putPromotionClaim(
  store: ObjectStore,
  model: string,
  claim: PromotionClaim,
): Promise<boolean> {
  return putDocumentIfAbsent(store, layout.promotionClaim(model, claim.number), claim)
}

/** Returns all models that were put into production under a name, oldest first. */
export async function readChain(store: ObjectStore, model: string): Promise<PromotedModel[]> {
  const keys = await keysUnder(store, layout.models(model))
  const read = await eachOf(keys, (key) => readDocument(store, key, parseModel))
  return read.filter((promoted) => promoted !== undefined)
}

/** A run that has lost its claim may still be promoting: the later one tries again. */
const PROMOTIONS_MAX = 20

/**
 * Copies the highest entry of the chain, and repeats this until it is the highest, so that the last of two writers leaves the correct one.
 */
async function copyProduction(store: ObjectStore, name: string): Promise<void> {
  for (let written: number | undefined; ;) {
    const current = await readProduction(store, name)
    if (current === undefined || current.seq === written) return
    await putDocument(store, layout.production(name), current)
    written = current.seq
  }
}

async function keysUnder(store: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  return keys
}
