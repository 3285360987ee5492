import { createHash } from 'node:crypto'
import type { Client } from '@temporalio/client'
import { datesOfRun } from '../../core/run-dates'
import type { RetrainingActivities, RunEntry, RunRef } from '../../core/retrain-run'
import { retrainScheduleId } from '../../core/queues'
import { calendarEntries, WRITTEN_AHEAD_MS, writtenFrom } from '../../core/schedule-dates'
import type { RetrainSpec } from '../../core/retraining'
import { putRunEntry } from '../../storage/schedules'
import type { RetrainingDeps } from './activities'

type Input = Parameters<RetrainingActivities['resolveRun']>[0]

/** The run that this workflow is: the first one of its date is named by it, later ones also get a letter. */
export async function resolveRun(deps: RetrainingDeps, input: Input): Promise<RunRef> {
  const { store, now, client } = deps
  const { schedule, spec } = input.input
  const nowMs = now()
  const dates = datesOfRun(spec, input.scheduledAtMs, nowMs)
  await renewDates(client, { spec, name: schedule, nowMs }).catch(() => undefined)
  for (const letter of ['', ...LETTERS]) {
    const id = `${dates.nominal}${letter}`
    const jobPrefix = `${shortened(schedule)}-${dates.nominal.replaceAll('-', '')}${letter}`
    const data = {
      workflowId: input.workflowId,
      runId: input.runId,
      run: { id, jobPrefix, dates },
      input: input.input,
    }
    const summary = `Run for ${dates.nominal}, with data from ${dates.window.start} up to ${dates.window.end}`
    const entry: RunEntry & { data: typeof data } = { seq: 0, atMs: nowMs, kind: 'started', summary, data }
    const stored = await putRunEntry(store, { schedule, run: id }, entry)
    if (stored.data.runId === input.runId) return stored.data.run
  }
  throw new Error(`${schedule} ran more than ${LETTERS.length} times for ${dates.nominal}`)
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
export async function renewDates(
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
