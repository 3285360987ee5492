/** Runs of retraining schedules: their present and past states, and requests to them. */
import { withLimit } from '../deadline'
import { randomUUID } from 'node:crypto'
import { failureFrom } from '../../core/failure'
import { STATUS_QUERY, type UpdateReceipt } from '../../core/messages'
import { nextRuns, type ScheduledRun } from '../../core/retraining/run-dates'
import {
  APPROVE_MODEL_UPDATE,
  REJECT_MODEL_UPDATE,
  SKIP_RUN_UPDATE,
  START_NOW_UPDATE,
} from '../../core/retraining/requests'
import type { RetrainState, RetrainStatus } from '../../core/retraining/run'
import type { PromotedModel, RetrainSpec } from '../../core/retraining/retraining'
import { eachOf } from '../../storage/parallel'
import {
  readProduction,
  readRuns,
  scheduleNames,
  surveyRevisions,
  type RecordedRun,
  type ScheduleRevision,
} from '../../storage/schedules'
import { Gaps } from '../../storage/json'
import { layout } from '../../storage/layout'
import { putPause, type PauseMark } from '../../storage/schedule-permits'
import type { Context } from '../context'
import { CrucibleError, isTemporals, toCrucibleError } from '../errors'
import { permitted } from './permits'
import { handleOf, heldSchedule, type ScheduleState } from './schedule-handles'
import { noteGaps } from '../job/list-gaps'
import { checkStore } from '../store-trouble'
import { checkSchedule, currentOf } from './schedules'
import { UPDATE_LIMIT_MS } from '../updates'

/** @experimental */
export interface ScheduleSummary {
  name: string
  revision: number
  owner: string
  /** `gone`: in the store, but Temporal does not have it. */
  state: 'active' | 'paused' | 'gone' | 'unknown'
  next: ScheduledRun | null
  last: RecordedRun | null
}

/**
 * Returns all schedules, by name. `context.gaps` names the documents that cannot be read; a schedule without a readable revision is missing,
 * and the newest readable one stands for a damaged one.
 */
export async function listSchedules(context: Context): Promise<ScheduleSummary[]> {
  const names = await scheduleNames(context.store)
  if (names.length === 0) await checkStore(context)
  const gaps = new Gaps()
  const found = await eachOf(names, async (name) => {
    const newest = (await surveyRevisions(context.store, name, gaps)).at(-1)
    return newest === undefined || newest.kind === 'deleted' ? undefined : summaryOf(context, newest, gaps)
  })
  noteGaps(context, gaps)
  return found.filter((summary) => summary !== undefined)
}

async function summaryOf(
  context: Context,
  { revision, input }: ScheduleRevision,
  gaps: Gaps,
): Promise<ScheduleSummary> {
  const { schedule: name, spec, owner } = input
  const [held, [last]] = await Promise.all([
    heldOrUnknown(context, name),
    readRuns(context.store, { schedule: name, count: 1 }, gaps),
  ])
  const [next] = nextRuns(spec, context.now(), 1).runs
  return { name, revision, owner, state: stateOf(held), next: next ?? null, last: last ?? null }
}

function stateOf(held: ScheduleState | 'unknown' | undefined): ScheduleSummary['state'] {
  if (held === undefined) return 'gone'
  if (held === 'unknown') return held
  return held.isPaused ? 'paused' : 'active'
}

/** Reads Temporal's part of a schedule, or returns unknown values while the server is down; the store has most facts. */
async function heldOrUnknown(context: Context, name: string): Promise<ScheduleState | 'unknown' | undefined> {
  try {
    return await heldSchedule(context, name)
  } catch (error) {
    if (toCrucibleError(error).kind === 'unavailable') return 'unknown'
    throw error
  }
}

/** @experimental */
export interface ScheduleView extends ScheduleSummary {
  spec: RetrainSpec
  note: string | null
  /** Starts that Temporal announces; null if it does not answer. */
  nextStartsAtMs: number[] | null
  /** Runs that begin once the previous one is over; null if Temporal does not answer. */
  waiting: number | null
  /** Dates without a run since the schedule was created: the previous run was not over, or the server was down for too long. */
  skipped: { overlapped: number; missed: number } | null
  /** Active runs that answer. */
  running: RetrainStatus[]
  /** Number of active runs that do not answer; null if Temporal does not say which runs are active. */
  silentRuns: number | null
  production: PromotedModel | null
  revisions: Pick<ScheduleRevision, 'revision' | 'atMs' | 'by' | 'kind'>[]
}

export async function showSchedule(context: Context, name: string): Promise<ScheduleView> {
  const gaps = new Gaps()
  const current = await currentOf(context, name, gaps)
  const { spec } = current.input
  const [summary, held, revisions] = await Promise.all([
    summaryOf(context, current, gaps),
    heldOrUnknown(context, name),
    surveyRevisions(context.store, name, new Gaps()),
  ])
  const known = held === 'unknown' ? undefined : held
  const running = (await runningOf(context, known)).map(({ status }) => status)
  const production = await productionOf(context, spec, gaps)
  noteGaps(context, gaps)
  return {
    ...summary,
    spec,
    note: known?.note ?? null,
    nextStartsAtMs: known?.nextStartsAtMs ?? null,
    waiting: known?.waiting ?? null,
    skipped: known === undefined ? null : { overlapped: known.overlapped, missed: known.missed },
    running,
    silentRuns: known === undefined ? null : known.running.length - running.length,
    production,
    revisions: revisions.map(({ revision, atMs, by, kind }) => ({ revision, atMs, by, kind })),
  }
}

async function productionOf(
  { store }: Context,
  { promotion }: RetrainSpec,
  gaps: Gaps,
): Promise<PromotedModel | null> {
  if (promotion === undefined) return null
  const { model } = promotion
  return (await gaps.read(layout.models(model), () => readProduction(store, model))) ?? null
}

interface RunningRun {
  workflowId: string
  status: RetrainStatus
}

/** The runs that go on and answer; one that no worker serves does not. */
async function runningOf(context: Context, held: ScheduleState | undefined): Promise<RunningRun[]> {
  if (held === undefined || held.running.length === 0) return []
  const client = await context.temporal()
  const found = await eachOf(held.running, (workflowId) =>
    withLimit(client, STATUS_LIMIT_MS, () =>
      client.workflow.getHandle(workflowId).query<RetrainStatus>(STATUS_QUERY),
    ).then(
      (status) => ({ workflowId, status }),
      () => undefined,
    ),
  )
  return found.filter((run) => run !== undefined)
}

const STATUS_LIMIT_MS = 3_000

/** @experimental */
export interface ScheduleHistory {
  name: string
  production: PromotedModel | null
  running: RetrainStatus[]
  runs: RecordedRun[]
}

/** The newest runs with their models and costs. Works without a Temporal server, and for a deleted schedule. */
export async function scheduleHistory(
  context: Context,
  name: string,
  count: number,
): Promise<ScheduleHistory> {
  const gaps = new Gaps()
  const newest = (await surveyRevisions(context.store, name, gaps)).at(-1)
  const { input } = newest ?? (await currentOf(context, name, gaps))
  const held = await heldOrUnknown(context, name)
  const runs = await readRuns(context.store, { schedule: name, count }, gaps)
  const production = await productionOf(context, input.spec, gaps)
  noteGaps(context, gaps)
  return {
    name,
    production,
    running: (await runningOf(context, held === 'unknown' ? undefined : held)).map(({ status }) => status),
    runs,
  }
}

/** Stops new runs. The store has the pause too, so that it holds against a request to Temporal without the deployment's key. */
export async function pauseSchedule(context: Context, name: string, note: string): Promise<void> {
  await checkSchedule(context, name)
  // Temporal first: it starts no run from then on, whatever happens to the store.
  await handleOf(await context.temporal(), name).pause(note)
  await context.compareClocks()
  await putPause(context.store, name, pauseMark(context, 'paused'))
}

export async function resumeSchedule(context: Context, name: string, note: string): Promise<void> {
  await currentOf(context, name)
  await context.compareClocks()
  await putPause(context.store, name, pauseMark(context, 'resumed'))
  await handleOf(await context.temporal(), name).unpause(note)
}

function pauseMark({ now, config }: Context, kind: PauseMark['kind']): PauseMark {
  return { kind, atMs: now(), by: config.owner }
}

/** Starts a run now, outside the calendar. */
export async function triggerSchedule(context: Context, name: string): Promise<void> {
  await currentOf(context, name)
  await context.compareClocks()
  const handle = handleOf(await context.temporal(), name)
  await permitted(context, name, [{ kind: 'trigger' }], () => handle.trigger('ALLOW_ALL'))
}

const WAITS = { states: ['awaiting-approval'], one: 'waits for approval', many: 'wait for approval' } as const

/** Requests to a run: the update, the states in which it is allowed, and the name of a run in these states. */
const WORDS = {
  approve: { ...WAITS, update: APPROVE_MODEL_UPDATE },
  reject: { ...WAITS, update: REJECT_MODEL_UPDATE },
  skip: {
    update: SKIP_RUN_UPDATE,
    states: ['starting', 'searching', 'waiting', 'checking'],
    one: 'can be skipped',
    many: 'can be skipped',
  },
  'start-now': {
    update: START_NOW_UPDATE,
    states: ['waiting', 'checking'],
    one: 'waits for its window',
    many: 'wait for their windows',
  },
} as const satisfies Record<
  string,
  { update: string; states: readonly RetrainState[]; one: string; many: string }
>

/** @experimental */
export type RunWord = keyof typeof WORDS

/**
 * Sends a request to the one matching run of a schedule, or to the run with the id `run`. Throws `usage` if no run matches, or several do.
 */
export async function tellRun(
  context: Context,
  name: string,
  { word, reason, run }: { word: RunWord; reason?: string; run?: string },
): Promise<UpdateReceipt> {
  await currentOf(context, name)
  const running = await runningOf(context, await heldSchedule(context, name))
  const { update, states } = WORDS[word]
  const meant = running.filter(
    ({ status }) =>
      (states as readonly RetrainState[]).includes(status.state) &&
      (run === undefined || status.run?.id === run),
  )
  if (meant.length !== 1) throw notOneRun(name, { word, run, running, meant })
  const client = await context.temporal()
  const args = [{ by: context.config.owner, reason }]
  try {
    return await withLimit(client, UPDATE_LIMIT_MS, () =>
      client.workflow
        .getHandle(meant[0]!.workflowId)
        .executeUpdate<UpdateReceipt, [object]>(update, { updateId: randomUUID(), args: args as [object] }),
    )
  } catch (error) {
    if (isTemporals(error, 'WorkflowUpdateFailedError'))
      throw new CrucibleError('failed', failureFrom(error).message, { cause: error })
    throw error
  }
}

function notOneRun(
  name: string,
  {
    word,
    run,
    running,
    meant,
  }: { word: RunWord; run?: string | undefined } & Record<'running' | 'meant', RunningRun[]>,
): CrucibleError {
  const { one, many } = WORDS[word]
  const ids = meant.map(({ status }) => status.run?.id).filter((id) => id !== undefined)
  if (meant.length > 1)
    return new CrucibleError('usage', `Several runs of ${name} ${many}: ${ids.join(', ')}.`, {
      hint: `Choose one: --run ${ids[0] ?? 'RUN'}.`,
    })
  const seen = running.map(({ status }) => `${status.run?.id ?? 'a new run'} is ${status.state}`).join(', ')
  const which = run === undefined ? `No run of ${name} ${one}` : `No run ${run} of ${name} ${one}`
  return new CrucibleError('usage', `${which}${seen === '' ? '' : `: ${seen}`}.`, {
    hint: `See its runs with \`crucible schedule show ${name}\`.`,
  })
}
