import { WorkflowNotFoundError } from '@temporalio/client'
import { BackendError } from '../../backends/errors'
import { CODES } from '../../core/errors'
import { runsBetween, START_SLACK_MS } from '../../core/retraining/run-dates'
import type { RetrainingActivities } from '../../core/retraining/run'
import { CATCH_UP_MS } from '../../core/retraining/schedule-dates'
import { CLOCK_SLACK_MS, formatInstant, HOUR_MS } from '../../core/time/time'
import {
  dateUse,
  putUse,
  readPauses,
  readPermits,
  type PauseMark,
  type PermitUse,
} from '../../storage/schedule-permits'
import { readRevisions, type ScheduleRevision } from '../../storage/schedules'
import type { RetrainingDeps } from './activities'

type Input = Parameters<RetrainingActivities['resolveRun']>[0]

/** A recorded run of the day. */
interface EarlierRun {
  workflowId: string
  opensAtMs: number
}

/** Tolerated time between a request for a run and its start. */
const TRIGGER_WITHIN_MS = HOUR_MS

/**
 * Uses up the permission of a run: a date of the calendar, or a run that the owner has asked for. The store decides, and not Temporal, whose
 * schedules, dates and inputs can be copied and changed without the deployment's key. Throws a failure with the code `NOT_ALLOWED` if the
 * schedule was deleted or revised, or if nothing is left that allows this run; and a `transient` one before its date. Repeated for the same
 * run, it changes nothing.
 *
 * @param earlier the recorded runs of the day, which show the dates that runs of Crucible 0.1.0 have used up
 */
export async function usePermission(
  deps: RetrainingDeps,
  input: Input,
  earlier: readonly EarlierRun[],
): Promise<void> {
  const { store, now } = deps
  const { schedule } = input.input
  const life = await currentLife(deps, schedule)
  const current = life.findLast(({ atMs }) => atMs <= input.scheduledAtMs) ?? life[0]!
  checkRevision(input, { life, current })
  const { scheduledAtMs } = input
  const { spec } = current.input
  const [date] = runsBetween(spec, scheduledAtMs - START_SLACK_MS, scheduledAtMs + START_SLACK_MS).runs
  const uses = (what: string): Promise<boolean> => take(deps, input, { what, earlier })
  const permits = (await readPermits(store, schedule)).filter(({ atMs }) => atMs >= life[0]!.atMs)
  for (const permit of permits) {
    if (permit.kind !== 'backfill' || !isAt(permit, input) || !(await uses(permit.id))) continue
    await uses(dateUse(permit.startsAtMs))
    return
  }
  if (date !== undefined) {
    const { startsAtMs, opensAtMs } = date
    const earlyMs = startsAtMs - CLOCK_SLACK_MS - now()
    if (earlyMs > 0) throw tooEarly(startsAtMs, earlyMs)
    const isTaken = earlier.some((run) => run.opensAtMs === opensAtMs)
    const isDue = await isOfCalendar(deps, { life, current, startsAtMs })
    if (isDue && !isTaken && (await uses(dateUse(startsAtMs)))) return
  }
  const triggers = permits.filter(({ kind }) => kind === 'trigger')
  const startedAtMs = triggers.length === 0 ? 0 : await startOf(deps, input)
  for (const { id, atMs } of triggers)
    if (Math.abs(startedAtMs - atMs) <= TRIGGER_WITHIN_MS && (await uses(id))) return
  throw notAllowed(
    date === undefined
      ? `No unused request or date allows this run of ${schedule}.`
      : `The run of ${schedule} for ${date.date} was made, was not due, or is no longer.`,
    `\`crucible schedule trigger ${schedule}\` and \`backfill\` start one.`,
  )
}

/** The revisions since the schedule was last created. */
async function currentLife({ store }: RetrainingDeps, schedule: string): Promise<ScheduleRevision[]> {
  const revisions = await readRevisions(store, schedule)
  const newest = revisions.at(-1)
  if (newest === undefined) throw notAllowed(`The store has no schedule ${schedule}.`)
  if (newest.kind === 'deleted') {
    const { by, atMs } = newest
    throw notAllowed(`The schedule ${schedule} was deleted by ${by} at ${formatInstant(atMs)}.`)
  }
  return revisions.slice(revisions.findLastIndex(({ kind }) => kind === 'deleted') + 1)
}

/** A run may have a newer revision than its date had, if it waited for the run before. */
function checkRevision(
  { input: { schedule, revision } }: Input,
  { life, current }: { life: readonly ScheduleRevision[]; current: ScheduleRevision },
): void {
  if (revision >= current.revision && life.some((each) => each.revision === revision)) return
  const { by, atMs } = current
  throw notAllowed(
    `${schedule} has revision ${current.revision} since ${formatInstant(atMs)} (${by}), and this run has ${revision}.`,
    'If `crucible schedule update` was interrupted, repeat it.',
  )
}

/** Whether the calendar starts a run at this instant: since the creation, not in a pause, and not too late. */
async function isOfCalendar(
  { store, now }: RetrainingDeps,
  {
    life,
    current,
    startsAtMs,
  }: { life: readonly ScheduleRevision[]; current: ScheduleRevision; startsAtMs: number },
): Promise<boolean> {
  const { schedule, spec } = current.input
  const createdAtMs = life[0]!.atMs
  if (startsAtMs < createdAtMs - CLOCK_SLACK_MS) return false
  // A run that waits for the one before it may begin at any time later.
  if (spec.overlap !== 'queue' && now() > startsAtMs + CATCH_UP_MS + HOUR_MS) return false
  const isSince = ({ atMs }: PauseMark): boolean => atMs >= createdAtMs && atMs <= startsAtMs
  return (await readPauses(store, schedule)).findLast(isSince)?.kind !== 'paused'
}

function isAt({ startsAtMs }: { startsAtMs: number }, { scheduledAtMs }: Input): boolean {
  return Math.abs(startsAtMs - scheduledAtMs) <= START_SLACK_MS
}

/** When the server started the workflow, which may have waited for a worker since. */
async function startOf({ client }: RetrainingDeps, { workflowId, runId }: Input): Promise<number> {
  return (await client.workflow.getHandle(workflowId, runId).describe()).startTime.getTime()
}

/** Whether this run uses up a date or a permit, or has done so. */
async function take(
  deps: RetrainingDeps,
  { input: { schedule }, workflowId, runId, firstRunId = runId }: Input,
  { what, earlier }: { what: string; earlier: readonly EarlierRun[] },
): Promise<boolean> {
  const { store, client, now } = deps
  const own: PermitUse = { workflowId, runId: firstRunId, atMs: now() }
  const use = await putUse(store, { schedule, what }, own)
  if (use.runId === firstRunId) return true
  // A server that was restored from a backup starts a date again, under the same workflow id, whose run it has lost before it was recorded.
  const isLost = use.workflowId === workflowId && !earlier.some((run) => run.workflowId === workflowId)
  return isLost && !(await isKnown(client, use))
}

/** Whether the server has a run of a workflow. */
export async function isKnown(
  client: RetrainingDeps['client'],
  { workflowId, runId }: Pick<PermitUse, 'workflowId' | 'runId'>,
): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowId, runId).describe()
    return true
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false
    throw error
  }
}

function tooEarly(startsAtMs: number, earlyMs: number): BackendError {
  const message = `The run begins at ${formatInstant(startsAtMs)}.`
  return new BackendError({ class: 'transient', message, retryAfterMs: earlyMs })
}

export function notAllowed(message: string, hint?: string): BackendError {
  return new BackendError({ class: 'auth', code: CODES.notAllowed, message, hint })
}
