import { isAmount, isInstant } from '../core/figures'
import type { AttemptRecord } from '../core/job/ledger'
import type { RecordEntry } from '../core/job/record'
import type { JobResult, JobStatus } from '../core/messages'
import { settledAttempt, attemptOf } from '../core/job/attempt-record'
import type { CostPart, JobCosts } from '../core/money/job-costs'
import { spendOver } from '../core/money/meter'
import type { MicroUsd } from '../core/money/money'
import { Gaps, ignoreBadDocument, parserOf, putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { readMarket } from './market'
import { readRecord, readRecords, RESOLVED_SEQ } from './record'
import type { ObjectStore } from './store'

/** Puts the costs of a job that is over, once. Returns false if they exist. */
export async function putJobCosts(
  store: ObjectStore,
  { status, result, budgetMonth }: { status: JobStatus; result: JobResult; budgetMonth?: string | undefined },
): Promise<boolean> {
  const { id: jobId, name, owner } = status
  const { state, finishedAtMs, costMicroUsd } = result
  const entry = await readRecord(store, jobId, RESOLVED_SEQ).catch(ignoreBadDocument)
  const resolved = entry?.kind === 'resolved' ? entry.data : undefined
  const costs: JobCosts = {
    version: 1,
    jobId,
    name,
    owner,
    state,
    finishedAtMs,
    budgetMonth: budgetMonth ?? resolved?.month,
    costMicroUsd,
    tags: resolved?.spec.tags,
    parts: [],
  }
  const key = layout.jobCosts(costs)
  if ((await store.head(key)) !== undefined) return false
  return putDocumentIfAbsent(store, key, { ...costs, parts: await partsOf(store, status) })
}

/** Returns the costs of a month, or of all months, and the names of documents that cannot be read. */
export async function readJobCosts(
  store: ObjectStore,
  month?: string,
): Promise<{ costs: JobCosts[]; unreadable: string[] }> {
  const keys: string[] = []
  for await (const { key } of store.list(layout.costs(month))) keys.push(key)
  const gaps = new Gaps()
  const costs = await gaps.readEach(keys, (key) => readDocument(store, key, parseCosts))
  return { costs, unreadable: gaps.names }
}

const parseCosts = parserOf<JobCosts>(
  'the costs of a job',
  ({ jobId, finishedAtMs, costMicroUsd, tags, parts }) =>
    typeof jobId === 'string' &&
    isInstant(finishedAtMs) &&
    isAmount(costMicroUsd) &&
    Object.values(tags ?? {}).every((tag) => typeof tag === 'string') &&
    Array.isArray(parts) &&
    parts.every(isPart),
)

function isPart(part: Partial<CostPart> | null): boolean {
  const list = part?.listMicroUsd
  return isAmount(part?.costMicroUsd) && isInstant(part.machineMs) && (list === null || isAmount(list))
}

async function partsOf(store: ObjectStore, status: JobStatus): Promise<CostPart[]> {
  const { id, attempts, attemptsTotal, spentMicroUsd } = status
  const needsRecord = attempts.length < attemptsTotal || attempts.some((one) => !isAtListPrice(one))
  const entries = needsRecord ? await readRecords(store, id) : []
  const all = attempts.length < attemptsTotal ? attemptsIn(entries) : attempts
  const parts = new Map<string, CostPart>()
  for (const attempt of all) {
    const { backend, realised, costMicroUsd } = attempt
    // An attempt without a machine costs nothing, unless its machine was never found.
    if (realised === undefined && costMicroUsd === 0) continue
    const { capacityType } = realised ?? attempt
    const key = `${backend}:${capacityType}`
    const part = parts.get(key) ?? { backend, capacityType, costMicroUsd: 0, machineMs: 0, listMicroUsd: 0 }
    const list = await listPriceOf(store, attempt, entries)
    parts.set(key, {
      ...part,
      costMicroUsd: part.costMicroUsd + costMicroUsd,
      machineMs: part.machineMs + timeOf(attempt),
      listMicroUsd: part.listMicroUsd === null || list === null ? null : part.listMicroUsd + list,
    })
  }
  const known = [...parts.values()].reduce((sum, part) => sum + part.costMicroUsd, 0)
  // Attempts that the record has lost.
  const rest: CostPart = {
    backend: '',
    capacityType: 'on-demand',
    costMicroUsd: spentMicroUsd - known,
    machineMs: 0,
    listMicroUsd: null,
  }
  return rest.costMicroUsd > 0 ? [...parts.values(), rest] : [...parts.values()]
}

/** Every attempt of the record that was settled. */
function attemptsIn(entries: readonly RecordEntry[]): AttemptRecord[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'planned' || entry.data.outcome.kind !== 'place') return []
    const { order } = entry.data.outcome
    const settled = entries.find(({ kind, attempt }) => kind === 'settled' && attempt === order.attempt)
    return settled?.kind === 'settled' ? [settledAttempt(attemptOf(order), settled.data)] : []
  })
}

const isAtListPrice = ({ realised, costMicroUsd }: AttemptRecord): boolean =>
  realised === undefined ? costMicroUsd === 0 : realised.capacityType === 'on-demand'

function timeOf({ billedFromAtMs, launchedAtMs, endedAtMs }: AttemptRecord): number {
  const fromAtMs = billedFromAtMs ?? launchedAtMs
  return fromAtMs === undefined || endedAtMs === undefined ? 0 : Math.max(0, endedAtMs - fromAtMs)
}

/** Price of an attempt's time on demand: of its own machine, otherwise of the same type in the offers that its plan read. */
async function listPriceOf(
  store: ObjectStore,
  attempt: AttemptRecord,
  entries: readonly RecordEntry[],
): Promise<MicroUsd | null> {
  if (isAtListPrice(attempt)) return attempt.costMicroUsd
  const { backend, realised, number } = attempt
  const plan = entries.find((entry) => entry.kind === 'planned' && entry.attempt === number)
  const readings = plan?.kind === 'planned' ? (plan.data.facts?.market ?? []) : []
  const reading = readings.find((one) => one.backend === backend)
  const answer = reading && (await readMarket(store, reading).catch(ignoreBadDocument))
  if (realised === undefined) return null
  const { type, place } = realised
  const same = (answer?.offers ?? []).filter(
    (offer) => offer.type === type && offer.capacityType === 'on-demand',
  )
  const offer = same.find((one) => one.place === place) ?? same[0]
  if (offer === undefined || timeOf(attempt) === 0) return null
  const { priceMicroUsdPerHour, billedAtLeastMs, billedInStepsOfMs } = offer
  return spendOver(timeOf(attempt), priceMicroUsdPerHour, { billedAtLeastMs, billedInStepsOfMs })
}
