/** Retraining schedules as Temporal holds them. */
import type * as temporal from '@temporalio/client'
import { isDeepStrictEqual } from 'node:util'
import { isCoded } from '../../core/errors'
import { ORCHESTRATOR_QUEUE, retrainScheduleId, WORKFLOW_TYPES } from '../../core/queues'
import type { RetrainInput } from '../../core/retraining/run'
import type { Overlap } from '../../core/retraining/retraining'
import {
  calendarEntries,
  CATCH_UP_MS,
  writtenFrom,
  type CalendarEntry,
} from '../../core/retraining/schedule-dates'
import { stamped } from '../../core/stamps'
import { isOpenStatus } from '../../core/workflow-status'
import type { ScheduleRevision } from '../../storage/schedules'
import type { Context } from '../context'

const OVERLAP_POLICY = {
  queue: 'BUFFER_ALL',
  skip: 'SKIP',
  allow: 'ALLOW_ALL',
} as const satisfies Record<Overlap, string>

/** Temporal's copy of a revision. */
interface TemporalSchedule {
  spec: { calendars: CalendarEntry[]; timezone: string }
  policies: { overlap: (typeof OVERLAP_POLICY)[Overlap]; catchupWindow: number }
  action: {
    type: 'startWorkflow'
    workflowType: string
    workflowId: string
    taskQueue: string
    args: unknown[]
    staticSummary: string
  }
}

/** @param fromMs dates before it are left out */
export function scheduleOf(
  { input }: ScheduleRevision,
  nowMs: number,
  fromMs = writtenFrom(nowMs),
): TemporalSchedule {
  const { spec, schedule: name } = input
  return {
    spec: { calendars: calendarEntries(spec, { fromMs, nowMs }), timezone: 'UTC' },
    policies: { overlap: OVERLAP_POLICY[spec.overlap], catchupWindow: CATCH_UP_MS },
    action: {
      type: 'startWorkflow',
      workflowType: WORKFLOW_TYPES.retrain,
      workflowId: retrainScheduleId(name),
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
      staticSummary: `retraining of ${name}`,
    },
  }
}

/** Makes the schedule in Temporal equal to this revision. Returns false if it already was. */
export async function establish(context: Context, revision: ScheduleRevision): Promise<boolean> {
  const client = await context.temporal()
  const { schedule: name } = revision.input
  const wanted = scheduleOf(revision, context.now())
  try {
    await client.schedule.create({ scheduleId: retrainScheduleId(name), ...wanted })
    return true
  } catch (error) {
    if (!isNamed(error, 'ScheduleAlreadyRunning')) throw error
  }
  const handle = handleOf(client, name)
  const held = await handle.describe().catch(ignoreForeign)
  const [input] = (held?.action.args ?? []) as [RetrainInput?]
  if (input !== undefined && isDeepStrictEqual(input, revision.input)) return false
  await handle.update(({ state }) => ({ ...withStamp(wanted), state }))
  return true
}

/** Ignores a schedule that this deployment did not sign, because it is replaced. */
function ignoreForeign(error: unknown): undefined {
  if (isCoded(error, 'seal')) return undefined
  throw error
}

/** Adds the stamp to an update: the client's interceptors stamp only creations. */
export function withStamp<S extends { action: { workflowType: string; args: unknown[] } }>(schedule: S): S {
  const { action } = schedule
  const args = stamped(action.args, { kind: 'schedule', name: action.workflowType })
  return { ...schedule, action: { ...action, args } }
}

/** Whether an error comes from Temporal's SDK, by its name, without loading the SDK. */
export function isNamed(error: unknown, name: 'ScheduleAlreadyRunning' | 'ScheduleNotFoundError'): boolean {
  return error instanceof Error && error.name === name
}

export function handleOf(client: temporal.Client, name: string): temporal.ScheduleHandle {
  return client.schedule.getHandle(retrainScheduleId(name))
}

/** A schedule as Temporal holds it, or that it does not. @experimental */
export interface ScheduleState {
  isPaused: boolean
  note: string | null
  nextStartsAtMs: number[]
  /** Runs that begin once the previous one is over. */
  waiting: number
  /** Dates without a run because the previous one was not over, since the schedule was created. */
  overlapped: number
  /** Dates without a run because the server was away for too long, since the schedule was created. */
  missed: number
  /** Workflow ids of the runs that go on, those by hand included. */
  running: string[]
}

export async function heldSchedule(context: Context, name: string): Promise<ScheduleState | undefined> {
  const client = await context.temporal()
  try {
    const { state, info, raw } = await handleOf(client, name).describe()
    const followed = info.runningActions.flatMap((action) =>
      action.type === 'startWorkflow' ? [action.workflow.workflowId] : [],
    )
    return {
      isPaused: state.paused,
      note: state.note ?? null,
      nextStartsAtMs: info.nextActionTimes.map((date) => date.getTime()),
      waiting: Number(raw.info?.bufferSize ?? 0),
      overlapped: info.numActionsSkippedOverlap,
      missed: info.numActionsMissedCatchupWindow,
      running: [...new Set([...followed, ...(await listedRuns(client, name))])],
    }
  } catch (error) {
    if (isNamed(error, 'ScheduleNotFoundError')) return undefined
    throw error
  }
}

/** A schedule does not follow runs that may overlap others, as those by hand do. The server's list has them a moment later. */
async function listedRuns(client: temporal.Client, name: string): Promise<string[]> {
  const query = `TemporalScheduledById = '${retrainScheduleId(name)}'`
  const found: string[] = []
  for await (const { workflowId, status } of client.workflow.list({ query }))
    if (isOpenStatus(status.name)) found.push(workflowId)
  return found
}
