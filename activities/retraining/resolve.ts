import { createHash } from 'node:crypto'
import type { Client } from '@temporalio/client'
import { datesOfRun } from '../../core/retraining/run-dates'
import type { RetrainingActivities, RunEntry, RunRef } from '../../core/retraining/run'
import { retrainScheduleId } from '../../core/queues'
import { calendarEntries, WRITTEN_AHEAD_MS, writtenFrom } from '../../core/retraining/schedule-dates'
import type { RetrainSpec } from '../../core/retraining/retraining'
import { hasRunEnded, putRunEntry, readRun, readRunStart } from '../../storage/schedules'
import type { ObjectStore } from '../../storage/store'
import type { RetrainingDeps } from './activities'
import { isKnown, notAllowed, usePermission } from './permission'

type Input = Parameters<RetrainingActivities['resolveRun']>[0]

type Started = RunEntry & { data: Pick<Input, 'workflowId' | 'runId' | 'input'> & { run: RunRef } }

/** Resolves which run this workflow is, and that its schedule allows it: the first run of a date is named by it, later ones also get a letter. */
export async function resolveRun(deps: RetrainingDeps, input: Input): Promise<RunRef> {
  const { store, now, client } = deps
  const { schedule, spec } = input.input
  const nowMs = now()
  const dates = datesOfRun(spec, input.scheduledAtMs, nowMs)
  const begun = await startsOf(store, schedule, dates.nominal)
  for (const stored of begun) {
    if (isOwn(input, stored)) return unlessOver(deps, input, stored)
    if (await isSetBack(deps, input, stored)) return continued(deps, input, stored)
  }
  await usePermission(
    deps,
    input,
    begun.map(({ data: { workflowId, run } }) => ({ workflowId, opensAtMs: run.dates.opensAtMs })),
  )
  await renewDates(client, { spec, name: schedule, nowMs }).catch(() => undefined)
  for (const letter of ['', ...LETTERS]) {
    const id = `${dates.nominal}${letter}`
    const jobPrefix = `${shortened(schedule)}-${dates.nominal.replaceAll('-', '')}${letter}`
    const data: Started['data'] = {
      workflowId: input.workflowId,
      runId: input.runId,
      run: { id, jobPrefix, dates },
      input: input.input,
    }
    const summary = `Run for ${dates.nominal}, with data from ${dates.window.start} up to ${dates.window.end}`
    const entry: Started = { seq: 0, atMs: nowMs, kind: 'started', summary, data }
    const stored = await putRunEntry(store, { schedule, run: id }, entry)
    if (isOwn(input, stored)) return stored.data.run
  }
  throw new Error(`${schedule} ran more than ${LETTERS.length} times for ${dates.nominal}`)
}

/** The first entries of the runs of a day, in the order of their letters. */
async function startsOf(store: ObjectStore, schedule: string, nominal: string): Promise<Started[]> {
  const found: Started[] = []
  for (const letter of ['', ...LETTERS]) {
    const started = await readRunStart(store, schedule, `${nominal}${letter}`)
    if (started === undefined) break
    found.push(started as Started)
  }
  return found
}

function isOwn({ runId, firstRunId }: Input, { data }: Started): boolean {
  return [runId, firstRunId].includes(data.runId)
}

/** A run that was reset continues, unless it is over. */
async function unlessOver(
  { store }: RetrainingDeps,
  { input: { schedule } }: Input,
  { data: { run } }: Started,
): Promise<RunRef> {
  if (await hasRunEnded(store, schedule, run.id))
    throw notAllowed(`The run ${run.id} of ${schedule} is over.`)
  return run
}

/**
 * Whether the server began this run before and lost that, because it was restored from an older backup and starts the date again. Then it
 * is the same run, with the same reservations and jobs; a different run would buy again.
 */
async function isSetBack(
  { client, store }: RetrainingDeps,
  { workflowId, input: { schedule } }: Input,
  { data }: Started,
): Promise<boolean> {
  if (data.workflowId !== workflowId) return false
  const entries = await readRun(store, schedule, data.run.id)
  if (entries.some(({ kind }) => kind === 'finished')) return false
  return !(await isKnown(client, { workflowId, runId: data.runId }))
}

/** Continues the record after the entries of the lost history. */
async function continued(
  { store, now }: RetrainingDeps,
  { runId, workflowId, input }: Input,
  { data: { run } }: Started,
): Promise<RunRef> {
  const at = { schedule: input.schedule, run: run.id }
  const entries = await readRun(store, input.schedule, run.id)
  const begun = entries.find(
    ({ kind, data }) => kind === 'started' && (data as Started['data']).runId === runId,
  )
  const seq = begun?.seq ?? (entries.at(-1)?.seq ?? 0) + 1
  const summary = 'Begins again: the server has lost its history'
  const data = { workflowId, runId, run, input }
  await putRunEntry(store, at, { seq, atMs: now(), kind: 'started', summary, data })
  return { ...run, firstSeq: seq + 1 }
}

const LETTERS = 'bcdefghijklmnopqrstuvwxyz'

/** The ids of jobs have 40 characters; names that begin alike stay different. */
function shortened(name: string): string {
  const readable = /^[a-z]/.test(name) ? name : `m-${name}`
  if (readable.length <= NAME_MAX) return readable
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 4)
  return `${readable.slice(0, NAME_MAX - 5)}-${digest}`
}

const NAME_MAX = 20

/** Writes the dates of the next years into the schedule again, once a third of them is used up. */
async function renewDates(
  client: Client,
  { spec, name, nowMs }: { spec: RetrainSpec; name: string; nowMs: number },
): Promise<boolean> {
  const handle = client.schedule.getHandle(retrainScheduleId(name))
  const held = await handle.describe()
  const years = (held.spec.calendars ?? [])
    .flatMap(({ year }) => year ?? [])
    .map((each) => (typeof each === 'object' ? each.start : each))
  const lastYear = Math.max(...years.filter((year) => typeof year === 'number'), 0)
  if (lastYear >= new Date(nowMs + (WRITTEN_AHEAD_MS * 2) / 3).getUTCFullYear()) return false
  const calendars = calendarEntries(spec, { fromMs: writtenFrom(nowMs), nowMs })
  await handle.update((previous) => ({ ...previous, spec: { calendars, timezone: 'UTC' } }))
  return true
}
