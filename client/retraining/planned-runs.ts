import { DAY_MS } from '../../core/time/time'
import { nextRuns } from '../../core/retraining/run-dates'
import { eachOf } from '../../storage/parallel'
import { scheduleNames, surveyRevisions } from '../../storage/schedules'
import { Gaps } from '../../storage/json'
import type { Context } from '../context'
import { noteGaps } from '../job/list-gaps'

/** A run of a retraining schedule that has not begun. */
export interface PlannedRun {
  schedule: string
  date: string
  opensAtMs: number
  durationMs: number
}

/** Maximum number of listed runs, more than a calendar shows of one schedule. */
const RUNS_MAX = 24

/** Runs of all retraining schedules whose windows open before an instant. */
export async function plannedRuns(context: Context, toMs: number): Promise<PlannedRun[]> {
  const gaps = new Gaps()
  const found = await eachOf(await scheduleNames(context.store), async (schedule): Promise<PlannedRun[]> => {
    const newest = (await surveyRevisions(context.store, schedule, gaps)).at(-1)
    if (newest === undefined || newest.kind === 'deleted') return []
    const { spec } = newest.input
    const reserved = spec.capacity?.steps.find((step) => step.kind !== 'unreserved')
    const durationMs = reserved?.durationMs ?? DAY_MS
    return nextRuns(spec, context.now(), RUNS_MAX)
      .runs.filter(({ opensAtMs }) => opensAtMs < toMs)
      .map(({ date, opensAtMs }) => ({ schedule, date, opensAtMs, durationMs }))
  })
  noteGaps(context, gaps)
  return found.flat()
}
