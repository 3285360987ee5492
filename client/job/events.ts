import type { Billing, Phase } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { formatUsd } from '../../core/money/money'
import type { RecordEntry } from '../../core/job/record'
import { formatDuration, formatInstant, SECOND_MS } from '../../core/time/time'
import { parseBeat, parseDrain, parseLimits, parseRestores } from '../../intake/documents'
import { Gaps, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readBillingStrictly, readMachineStrictly } from '../../storage/machines'
import { eachOf } from '../../storage/parallel'
import { surveyRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import type { Context } from '../context'
import { readDiagnosis } from './diagnosis'
import { attemptsOf } from './logs'
import { noSuchJob } from './read-view'
import { gapsInWords } from './view'

/** An event of a job. @experimental */
export interface JobEvent {
  atMs: number
  /** Number of the attempt; null if the event concerns none. */
  attempt: number | null
  /** A kind of record entry, or a report of a document or of the machine. */
  kind:
    | RecordEntry['kind']
    | 'machine'
    | 'rebalance'
    | 'diagnosis'
    | 'stop-requested'
    | 'limits'
    | 'phase'
    | 'restored'
    | 'warning'
  /** Text for a person, in one sentence. */
  text: string
  /** Additional text of several lines. */
  detail?: string
}

/** A job's events from its record, the documents of its attempts and the reports of their machines, in order of time. */
export async function eventsOf(context: Context, jobId: string): Promise<JobEvent[]> {
  const { store } = context
  const { entries, unreadable } = await surveyRecords(store, jobId)
  if (entries.length + unreadable.length === 0) throw await noSuchJob(context, jobId)
  const gaps = new Gaps()
  gaps.names.push(...unreadable)
  const attempts = await attemptsOf(store, jobId)
  const settled = new Set(entries.filter(({ kind }) => kind === 'settled').map(({ attempt }) => attempt))
  const told = await eachOf(attempts, (attempt) =>
    documentEvents(store, { jobId, attempt, isSettled: settled.has(attempt), gaps }),
  )
  if (!gaps.isEmpty) context.gaps.push(gapsInWords(gaps.names)!)
  // The sort is stable: at the same time, the record comes first.
  return [...entries.flatMap(recordEvents), ...told.flat()].sort((a, b) => a.atMs - b.atMs)
}

/** A job's record: the submission, and every decision with its inputs. */
export async function recordOf({ store }: Context, jobId: string): Promise<RecordEntry[]> {
  return (await surveyRecords(store, jobId)).entries
}

function recordEvents(entry: RecordEntry): JobEvent[] {
  const { atMs, kind, attempt = null, summary } = entry
  const event: JobEvent = { atMs, attempt, kind, text: summary }
  if (entry.kind !== 'settled') return [event]
  return [...entry.data.phases.map((phase) => phaseEvent(attempt, phase)), event]
}

function phaseEvent(attempt: number | null, { name, startedAtMs, durationMs }: Phase): JobEvent {
  return { atMs: startedAtMs, attempt, kind: 'phase', text: `${name} for ${formatDuration(durationMs)}` }
}

async function documentEvents(
  store: ObjectStore,
  { jobId, attempt, isSettled, gaps }: { jobId: string; attempt: number; isSettled: boolean; gaps: Gaps },
): Promise<JobEvent[]> {
  const reads: [name: string, read: () => Promise<JobEvent[]>][] = [
    ['machine.json', () => machineEvents(store, jobId, attempt)],
    ['beat.json', () => beatEvents(store, { jobId, attempt, isSettled })],
    ['restores.json', () => restoreEvents(store, jobId, attempt)],
    ['diagnosis.json', () => diagnosisEvents(store, jobId, attempt)],
    ['drain.json', () => drainEvents(store, jobId, attempt)],
    ['limits', () => limitEvents(store, jobId, attempt)],
  ]
  const events = await Promise.all(
    reads.map(async ([name, read]) => (await gaps.read(`attempts/${attempt}/${name}`, read)) ?? []),
  )
  return events.flat()
}

async function machineEvents(store: ObjectStore, jobId: string, attempt: number): Promise<JobEvent[]> {
  const [machine, billing] = await Promise.all([
    readMachineStrictly(store, { jobId, attempt }),
    readBillingStrictly(store, { jobId, attempt }),
  ])
  if (machine === undefined) return []
  const { capacityType, type, place, priceMicroUsdPerHour } = machine.realised
  const where = [machine.backend, capacityType, type, place].filter((part) => part !== '').join(' ')
  const text = `Launched ${where} at ${formatUsd(priceMicroUsdPerHour)}/h (${machine.id})`
  const launched: JobEvent = { atMs: machine.launchedAtMs, attempt, kind: 'machine', text }
  return [launched, ...queueEvents(attempt, machine, billing)]
}

/** Shorter waits are part of every launch. */
const QUEUE_TOLD_MS = SECOND_MS

function queueEvents(
  attempt: number,
  { launchedAtMs }: MachineHandle,
  billing: Billing | undefined,
): JobEvent[] {
  if (billing === undefined) return []
  const { fromAtMs } = billing
  if (fromAtMs === null)
    return [
      { atMs: launchedAtMs, attempt, kind: 'machine', text: 'Queued by the provider, which costs nothing' },
    ]
  const waitedMs = fromAtMs - launchedAtMs
  if (waitedMs < QUEUE_TOLD_MS) return []
  const text = `The machine began after ${formatDuration(waitedMs)} in the provider's queue: billing starts`
  return [{ atMs: fromAtMs, attempt, kind: 'machine', text }]
}

async function beatEvents(
  store: ObjectStore,
  { jobId, attempt, isSettled }: { jobId: string; attempt: number; isSettled: boolean },
): Promise<JobEvent[]> {
  const beat = await readDocument(store, layout.beat(jobId, attempt), parseBeat)
  if (beat === undefined) return []
  const events = isSettled ? [] : (beat.phases ?? []).map((phase) => phaseEvent(attempt, phase))
  const last = events.at(-1)
  if (last !== undefined) last.text += ' so far'
  if (beat.warning != null)
    events.push({ atMs: beat.warning.sinceMs, attempt, kind: 'warning', text: beat.warning.text })
  if (beat.rebalanceAtMs === undefined) return events
  const text = 'The provider warned that it may interrupt the machine soon (rebalance recommendation)'
  return [...events, { atMs: beat.rebalanceAtMs, attempt, kind: 'rebalance', text }]
}

/** Which checkpoint it was restored from and why: several entries after falling back. */
async function restoreEvents(store: ObjectStore, jobId: string, attempt: number): Promise<JobEvent[]> {
  const key = layout.restores(jobId, attempt)
  const list = await readDocument(store, key, parseRestores)
  return (list?.restores ?? []).map(({ checkpoint, state, why, atMs, outcome, message }) => {
    const proof = state === 'complete' ? state : 'provisional'
    const failed =
      outcome === 'failed' ? `; then the program failed${message === null ? '' : `: ${message}`}` : ''
    const text = `Restored checkpoint ${checkpoint.id} (${proof}): ${why}${failed}`
    return { atMs, attempt, kind: 'restored', text }
  })
}

async function diagnosisEvents(store: ObjectStore, jobId: string, attempt: number): Promise<JobEvent[]> {
  const diagnosis = await readDiagnosis(store, jobId, attempt)
  if (diagnosis === undefined) return []
  const { atMs, machine, lastWords, text: detail } = diagnosis
  const text = `The machine left no result; its diagnosis (${machine})`
  return [
    {
      atMs,
      attempt,
      kind: 'diagnosis',
      text: lastWords === undefined ? text : `${text}: ${lastWords}`,
      detail,
    },
  ]
}

async function drainEvents(store: ObjectStore, jobId: string, attempt: number): Promise<JobEvent[]> {
  const drain = await readDocument(store, layout.drain(jobId, attempt), parseDrain)
  // A drain is also written after the end of every attempt, so that a late machine does not run; that one is not an event.
  if (drain === undefined || drain.reason === 'superseded') return []
  const text = `Asked to save and stop (${drain.reason}) within ${formatDuration(drain.windowMs)}`
  const events: JobEvent[] = [{ atMs: drain.requestedAtMs, attempt, kind: 'stop-requested', text }]
  for await (const { key } of store.list(layout.shorterDrains(jobId, attempt))) {
    const shorter = await readDocument(store, key, parseDrain)
    if (shorter === undefined) continue
    const sooner = `Asked to stop earlier, within ${formatDuration(shorter.windowMs)}`
    events.push({ atMs: shorter.requestedAtMs, attempt, kind: 'stop-requested', text: sooner })
  }
  return events
}

async function limitEvents(store: ObjectStore, jobId: string, attempt: number): Promise<JobEvent[]> {
  const events: JobEvent[] = []
  for await (const { key, modifiedAtMs } of store.list(`${layout.attempt(jobId, attempt)}limits/`)) {
    const limits = await readDocument(store, key, parseLimits)
    if (limits === undefined) continue
    const words = [
      limits.deadlineAtMs === null ? 'no deadline' : `deadline ${formatInstant(limits.deadlineAtMs)}`,
      limits.budget === null ? 'no budget' : `${formatUsd(limits.budget.microUsd)} for the attempt`,
    ]
    events.push({ atMs: modifiedAtMs, attempt, kind: 'limits', text: `New limits: ${words.join(', ')}` })
  }
  return events
}
