import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow'
import { failureFrom, isNotAllowed } from '../../core/failure'
import type { JobInput } from '../../core/messages'
import type { RetrainInput, RetrainResult } from '../../core/retraining/run'
import { isReservationFinal } from '../../core/reservation/reserving'
import { formatDuration, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { setAttributes } from '../attributes'
import { forever } from '../forever'
import { retraining } from './activities'
import { getCapacity } from './capacity'
import { prepare, runPart, type PartEnd } from './jobs'
import { judgeAndPromote, type RunEnd } from './model'
import { giveBack, releaseAll } from './release'
import { RetrainRun } from './run'
import { train } from './training'

/** Delay after which the late start of a run is reported. */
const LATE_MS = HOUR_MS
/** The job is prepared this long before its window, so that it starts within seconds of the opening. */
const PREPARE_MS = 5 * MINUTE_MS

/**
 * Runs one date of a schedule: gets capacity, checks, waits for the window, trains, evaluates, promotes or keeps the old model, and
 * reports. It always ends with a message; the model in production only changes after its gate.
 */
export async function retrain(input: RetrainInput): Promise<RetrainResult> {
  const run = new RetrainRun(input)
  return CancellationScope.nonCancellable(async () => {
    const end = await live(run).catch((error: unknown) => lastWord(run, error))
    return finish(run, end)
  })
}

async function live(run: RetrainRun): Promise<RunEnd> {
  await resolve(run)
  for (;;) {
    const refusal = await getCapacity(run)
    if (run.stop !== undefined) return run.stop
    if (refusal !== undefined) return { state: 'failed', message: refusal }
    await check(run)
    const prepared = await waitForWindow(run)
    if (run.stop !== undefined) return run.stop
    if (run.isCapacityLost) {
      await lost(run)
      continue
    }
    run.move('training', 'Training.')
    const end = await train(run, prepared)
    if (run.stop !== undefined) return run.stop
    if (end.kind === 'failed') return { state: 'failed', message: end.message }
    if (end.kind === 'trained') {
      run.update({ model: end.trained.model })
      return judgeAndPromote(run, end.trained)
    }
    await lost(run)
  }
}

/** Determines the dates, unless an earlier run of the workflow has done it. */
async function resolve(run: RetrainRun): Promise<void> {
  if (run.status.run !== undefined) return
  const { schedule, owner } = run.input
  setAttributes({ name: schedule, owner, state: 'starting', reason: 'starting' })
  const { workflowId, runId, firstExecutionRunId, searchAttributes } = workflowInfo()
  // The server sets this search attribute for scheduled starts.
  const [scheduledAt] = (searchAttributes['TemporalScheduledStartTime'] ?? []) as (Date | undefined)[]
  const scheduledAtMs = scheduledAt?.getTime() ?? run.status.startedAtMs
  const firstRunId = firstExecutionRunId === runId ? undefined : firstExecutionRunId
  const input = { input: run.input, workflowId, runId, scheduledAtMs, firstRunId }
  run.resolved(await forever(() => retraining.resolveRun(input), run))
  const { notes, isByHand } = run.run.dates
  const lateMs = Date.now() - (scheduledAt?.getTime() ?? Date.now())
  const late = `It begins ${formatDuration(lateMs)} after its date: the previous run was not over, the server was down, or it is a backfill.`
  const words = [...(isByHand ? [] : notes), ...(lateMs >= LATE_MS ? [late] : [])]
  run.warn(...words)
}

async function lost(run: RetrainRun): Promise<void> {
  run.placement = undefined
  run.isChecked = false
  const why = isReservationFinal(run.notice?.state ?? 'searching')
    ? run.notice!.message
    : 'its place is lost.'
  run.warn(`The capacity is lost: ${why} The next step of the file is tried.`)
  // Its places may be gone while it is still held, and then it costs money in addition to the next one.
  await giveBack(run)
}

/** Checks the needs of the training, and rehearses it if the file says so, early enough for a person to react. */
async function check(run: RetrainRun): Promise<void> {
  const { checkMs } = run.input.spec
  if (run.trainings > 0 || run.placement === undefined) return
  await wait(run, openingOf(run) - checkMs, { summary: 'until the checks' })
  if (isDisturbed(run)) return
  if (!run.isChecked) await checkPlace(run)
  if (!isDisturbed(run) && !run.isRehearsed) await rehearse(run)
}

async function checkPlace(run: RetrainRun): Promise<void> {
  run.move('checking', 'Checking what the training needs.')
  const { problems } = await forever(
    () => retraining.checkRun({ ...run.task(), placement: run.placement! }),
    run,
  )
  run.warn(...problems)
  run.isChecked = true
}

/** Reserved capacity and the window do not wait for a rehearsal; a run that is late or by hand on other capacity does. */
async function rehearse(run: RetrainRun): Promise<void> {
  const untilAtMs = openingOf(run) - PREPARE_MS
  const isWaitedFor = run.placement?.kind === 'open' && openingOf(run) <= Date.now()
  if (run.input.spec.rehearsal === undefined || !(isWaitedFor || untilAtMs > Date.now())) return
  run.move('checking', 'Rehearsing the training.')
  const cut = { isDone: false }
  const until = async (isOver: () => boolean): Promise<void> => {
    const isEarly = (): boolean => isOver() || run.isCapacityLost
    if (isWaitedFor) await condition(isEarly)
    else await condition(isEarly, untilAtMs - Date.now(), { summary: 'until the rehearsal must end' })
    cut.isDone = !isOver()
  }
  const end = await runPart(run, { part: 'rehearsal' }, { until })
  run.isRehearsed = true
  if (end.isSucceeded || run.stop !== undefined) return
  const why = run.isCapacityLost ? 'the capacity was lost' : 'the window opens soon'
  run.warn(cut.isDone ? `The rehearsal was ended early: ${why}.` : `The rehearsal failed: ${end.message}`)
}

/** Returns the prepared training once the window is open, or earlier by a person's word, or if its capacity is lost. */
async function waitForWindow(run: RetrainRun): Promise<JobInput | PartEnd> {
  await wait(run, openingOf(run) - PREPARE_MS, { summary: 'until the window is near' })
  const { placement } = run
  if (placement === undefined || run.stop !== undefined || run.isCapacityLost) return NOTHING
  // A training for another placement is another job. A reset history reuses the job id that it prepared.
  const number = run.trainings + 1
  const prepared = await prepare(run, { part: 'training', placement, number })
  run.trainings = number
  await wait(run, openingOf(run), { summary: 'until the window opens', isPrepared: true })
  return prepared
}

/** Result if nothing was prepared: the run searches again, or ends. */
const NOTHING: PartEnd = { jobId: '', isSucceeded: false, message: '' }

/** Returns the window, and the capacity in it. */
function openingOf({ run, placement, isStartedNow }: RetrainRun): number {
  const startsAtMs = placement?.kind === 'reserved' ? (placement.reservation.startsAtMs ?? 0) : 0
  return Math.max(isStartedNow ? 0 : run.dates.opensAtMs, startsAtMs)
}

const isDisturbed = (run: RetrainRun): boolean => run.stop !== undefined || run.isCapacityLost

async function wait(
  run: RetrainRun,
  untilAtMs: number,
  { summary, isPrepared = false }: { summary: string; isPrepared?: boolean },
): Promise<void> {
  const { isStartedNow } = run
  if (untilAtMs <= Date.now() || isDisturbed(run)) return
  run.move('waiting', `Waiting ${summary}.`, untilAtMs)
  const isWoken = (): boolean => isDisturbed(run) || run.isStartedNow !== isStartedNow
  // A fresh history would prepare another job.
  const isLong = (): boolean => !isPrepared && run.isLong
  await condition(() => isWoken() || isLong(), untilAtMs - Date.now(), { summary })
  if (!isWoken() && isLong()) await run.continueFresh()
}

/**
 * Errors that would close the workflow silently end the run instead. A bug in our code does not close it. A run that its schedule does not
 * allow has no record.
 */
function lastWord(run: RetrainRun, error: unknown): RunEnd {
  if (!(error instanceof TemporalFailure)) throw error
  const { message } = failureFrom(error)
  if (isNotAllowed(error)) {
    run.move('failed', message)
    throw error
  }
  return { state: 'failed', message: `Internal error: ${message}` }
}

async function finish(run: RetrainRun, { state, message }: RunEnd): Promise<RetrainResult> {
  await releaseAll(run)
  run.update({ endedAtMs: Date.now() })
  run.move(state, message)
  run.tell()
  await run.told()
  const { schedule, startedAtMs, warnings, jobs, model, verdict, promoted } = run.status
  const result = await forever(
    () =>
      retraining.finishRun({
        ...run.task(),
        result: {
          schedule,
          run: run.run,
          state,
          message,
          warnings,
          jobs,
          startedAtMs,
          costMicroUsd: run.spentMicroUsd,
          capacityMicroUsd: run.capacityMicroUsd,
          model,
          verdict,
          promoted,
        },
      }),
    run,
  )
  await condition(allHandlersFinished)
  if (state === 'cancelled') throw new CancelledFailure(message, [result])
  if (state !== 'failed') return result
  throw ApplicationFailure.create({
    type: 'retraining-failed',
    message,
    nonRetryable: true,
    details: [result],
  })
}
