import { BackendError } from '../../backends/errors'
import type { AttemptTimes, SettleInput, Settlement } from '../../core/activities'
import type { CheckpointNews } from '../../core/job/checkpoint'
import { defined } from '../../core/defined'
import { CODES } from '../../core/errors'
import type { Beat, Diagnosis, Drain, RunnerResult } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import type { AttemptEnd } from '../../core/job/ledger'
import type { Observation } from '../../core/observation'
import { CLOCK_SLACK_MS } from '../../core/time/time'
import { peakOf } from '../../core/job/own-memory'
import type { Order } from '../../core/job/plan'
import { refusalIn } from '../../core/store-refusal'
import { stepsLost } from '../../core/job/steps-lost'
import { endFromLoss, endFromResult, endOfStart, type Lost } from '../../planner/policy/ending'
import { newestCheckpoint } from '../../storage/checkpoints'
import { deleteHandOvers } from '../../storage/hand-overs'
import { ignoreBadDocument } from '../../storage/json'
import { putOwnMemory } from '../../storage/own-memory'
import { StoreError, type ObjectStore } from '../../storage/store'
import { CHECKPOINT_PARSERS } from '../../intake/documents'
import { AttemptDocuments } from '../documents'
import { withLastWords } from './diagnosis'
import { Ending, readResult, type EndingDeps, type ReadResult } from './end-machines'
import { costOfAll, costOfUnseen, timesBilled, type EndedMachine } from './cost'
import { assertOver, fence } from './fence'

type Deps = EndingDeps

/**
 * Ensures that nothing of an attempt runs, however it ended, and computes the facts about it. The job may continue only afterwards, so that
 * two attempts are never live. Idempotent.
 */
export async function settleAttempt(
  deps: Deps,
  input: SettleInput,
  signal: AbortSignal,
): Promise<Settlement> {
  const { jobId, attempt } = input.order
  const documents = new AttemptDocuments(deps.store, { jobId, attempt }, deps.now)
  await askToStop(documents, input).catch((error: unknown) => endWithoutStore(deps, input, { error, signal }))
  const known = input.handle ?? (await documents.readMachine()) ?? null
  try {
    const ending = new Ending(deps, input, { documents, signal })
    const { machines, over, isUnseen } = await ending.find(known)
    const lasts = await ending.endAll(machines)
    await assertOver(deps, input, { documents, handle: machines[0], signal })
    // The order's process never saw the machine; the provider reports its state.
    const asked = isUnseen ? { ...input, end: null } : input
    const ended = over.map(({ endedAtMs }): Observation => ({ state: 'gone', endedAtMs }))
    return await conclude(deps, asked, {
      documents,
      signal,
      diagnosis: ending.diagnosis,
      machines: [...machines, ...over.map(({ handle }) => handle)],
      lasts: [...lasts, ...ended],
    })
  } catch (error) {
    // The provider does not answer. A machine whose lease has certainly expired has stopped: the job may continue, and garbage
    // collection removes the rest.
    if (!(error instanceof BackendError) || known === null) throw error
    const { isFenced, atMs } = await fence(deps, input, { documents, handle: known, signal })
    if (!isFenced) throw error
    const over = (await documents.readEnded()).filter(({ endedAtMs }) => endedAtMs !== null)
    const isBilledOn = deps.backend.capabilities.billsUntil === 'terminate'
    const ended = [known, ...over.map(({ handle }) => handle).filter(({ id }) => id !== known.id)]
    const lasts = ended.map(({ id }): Observation => {
      const recorded = over.find(({ handle }) => handle.id === id)
      const endedAtMs = recorded?.endedAtMs ?? (isBilledOn ? undefined : atMs)
      return { state: 'gone', endedAtMs }
    })
    return conclude(deps, input, { documents, signal, machines: ended, lasts })
  }
}

/** An attempt that was lost while its machine drained may have requested a longer window than its job grants now. */
async function askToStop(documents: AttemptDocuments, input: SettleInput): Promise<void> {
  const { windowMs, drainReason } = input
  const drain = { reason: drainReason ?? 'superseded', windowMs }
  // A drained machine has had its window, so the provider ends it at once.
  if (windowMs === 0) await documents.putDrain(drain)
  else await documents.shortenDrain(drain)
}

/**
 * Ends the machine of a cancelled job that has had its window, through its provider, while the store is away: nothing else tells it to stop.
 * Throws the store's error, so that the settlement is repeated until the store answers.
 */
async function endWithoutStore(
  { backend }: Deps,
  { handle, drainReason, windowMs }: SettleInput,
  { error, signal }: { error: unknown; signal: AbortSignal },
): Promise<never> {
  if (error instanceof StoreError && drainReason === 'cancelled' && windowMs === 0 && handle !== null)
    await backend.terminate(handle, { signal })
  throw error
}

interface Facts {
  documents: AttemptDocuments
  signal: AbortSignal
  machines: MachineHandle[]
  lasts: Observation[]
  diagnosis?: Diagnosis | undefined
}

async function conclude(deps: Deps, input: SettleInput, facts: Facts): Promise<Settlement> {
  const { store, now } = deps
  const { documents, machines, lasts, diagnosis, signal } = facts
  // No send can have an effect at this point. Machines delete most of these documents.
  await deleteHandOvers(store, input.order)
  const [result, beat, checkpoint, drain] = await Promise.all([
    readResult(documents),
    documents.readBeat().catch(ignoreBadDocument),
    newestCheckpoint(store, input.order.jobId, CHECKPOINT_PARSERS.manifest),
    documents.readDrain(),
  ])
  const [handle = null] = machines
  const hasSpoken = beat !== undefined || result !== undefined
  const lastWordAtMs = result?.result?.finishedAtMs ?? beat?.clockMs
  const isUncertain = deps.backend.capabilities.ends === 'requested'
  const billed = await timesBilled(input, documents, {
    machines,
    lasts,
    hasSpoken,
    beat,
    nowMs: now(),
    // A machine whose end was only requested ran at least until it last spoke.
    ranUntilMs: isUncertain ? (lastWordAtMs ?? 0) : 0,
  })
  const [first] = billed
  const progress = result?.result?.progress ?? beat?.progress ?? undefined
  const restoredFrom = result?.result?.restoredFrom ?? beat?.restoredFrom ?? undefined
  const end = endOf(input, { result, last: lasts[0], first, hasSpoken })
  await keepOwnMemory(store, input.order, { end, beat })
  return {
    end: told(end, { diagnosis, hasSpoken, last: lasts[0] }),
    handle,
    ...(handle === null
      ? { costMicroUsd: await costOfUnseen(input, documents, lastWordAtMs) }
      : await costOfAll(deps.backend, input, { machines: billed, signal })),
    ...(input.order.runner.queueMs !== undefined && defined({ billedFromAtMs: first?.fromAtMs })),
    endedAtMs: first?.toAtMs,
    restoredFrom,
    ...newsOf(result?.result ?? beat),
    checkpoint,
    progress,
    trackers: (result?.result ?? beat)?.trackers,
    stepsLost: stepsLost({
      isDone: end.kind === 'succeeded',
      progress,
      restoredFrom,
      checkpoint,
      isCheckpointStepKnown: checkpoint?.isStepKnown !== false,
    }),
    artifacts: result?.result?.artifacts ?? [],
    phases: result?.result?.phases ?? beat?.phases ?? [],
    times: timesOf(result?.result, beat, drain),
  }
}

/** Later plans only gain by it, so no trouble of the store matters. */
async function keepOwnMemory(
  store: ObjectStore,
  { jobId, attempt, codeSha256, runner: { run, bundle } }: Order,
  { end, beat }: { end: AttemptEnd; beat: Beat | undefined },
): Promise<void> {
  const hasTrained = end.kind === 'succeeded' || beat?.firstStepAtMs != null
  const peak = beat && peakOf(beat.gpus)
  if (!hasTrained || peak === undefined || bundle === null) return
  const memory = { jobId, run, bundleSha256: codeSha256 ?? bundle.sha256, ...peak }
  await putOwnMemory(store, memory, { atMs: beat!.clockMs, attempt }).catch(() => undefined)
}

function newsOf(
  last: CheckpointNews | undefined,
): Pick<Settlement, 'restoredBecause' | 'checkpointState' | 'warning'> {
  const { restoredBecause, checkpointState, warning } = last ?? {}
  return {
    restoredBecause,
    checkpointState,
    warning: warning == null ? undefined : warning,
  }
}

/** The runner's last report counts: a lost machine has left no result, but its last beat has the data. */
function timesOf(
  result: RunnerResult | undefined,
  beat: Beat | undefined,
  drain: Drain | undefined,
): AttemptTimes {
  return {
    firstStepAtMs: result?.firstStepAtMs ?? beat?.firstStepAtMs ?? null,
    firstStep: result?.firstStep ?? beat?.firstStep ?? undefined,
    noNoticeAtMs: result?.noNoticeAtMs ?? beat?.noNoticeAtMs ?? null,
    lastBeatAtMs: beat?.clockMs ?? null,
    finishedAtMs: result?.finishedAtMs ?? null,
    drain: drain === undefined ? null : { reason: drain.reason, atMs: drain.requestedAtMs },
  }
}

/** Returns the end with the machine's own words. A machine that ended itself before its runner reported never started one. */
function told(
  end: AttemptEnd,
  {
    diagnosis,
    hasSpoken,
    last,
  }: { diagnosis: Diagnosis | undefined; hasSpoken: boolean; last: Observation | undefined },
): AttemptEnd {
  if (end.kind !== 'failed') return end
  const { class: failureClass } = end.failure
  const isOwnEnd = failureClass === 'interrupted' && last?.cause === 'ended'
  const refusal = isOwnEnd && diagnosis !== undefined ? refusalIn(diagnosis.text) : undefined
  if (refusal !== undefined) return endOfStart(refusal)
  const isUnstarted = isOwnEnd && !hasSpoken
  if (isUnstarted && diagnosis?.lastWords !== undefined) return endOfStart(diagnosis.lastWords)
  return { ...end, failure: withLastWords(end.failure, diagnosis) }
}

/**
 * Returns the end of an attempt. The runner's result takes precedence, then the attempt's observation, then the provider's report on the
 * machine.
 */
function endOf(
  input: SettleInput,
  {
    result,
    last,
    first,
    hasSpoken,
  }: {
    result: ReadResult
    last: Observation | undefined
    first: EndedMachine | undefined
    hasSpoken: boolean
  },
): AttemptEnd {
  if (result?.result !== undefined) {
    const end = endFromResult(result.result)
    // A runner that stops because we ended its attempt does not know the reason.
    const isOurs = end.kind === 'stopped' && end.by === 'superseded'
    return isOurs && input.end !== null ? input.end : end
  }
  if (result !== undefined) {
    const failure = { class: 'damaged' as const, message: result.complaint, code: CODES.badDocument }
    return { kind: 'failed', isLaunched: true, failure }
  }
  if (input.end !== null) return input.end
  if (first !== undefined && last?.state === 'gone' && !isEndedByUs(input, last))
    return endFromLoss(last, { hasSpoken, ...timeOf(input, first) })
  return { kind: 'stopped', by: input.drainReason ?? 'superseded' }
}

/** Whether an earlier try of the settlement of a cancelled job has ended a machine, as far as its provider says. */
function isEndedByUs({ drainReason }: SettleInput, { cause = 'unknown' }: Observation): boolean {
  return drainReason === 'cancelled' && (cause === 'ended' || cause === 'unknown')
}

/** Returns whether a machine was only queued, and whether its time was up when it ended. */
function timeOf(
  { order: { runner } }: SettleInput,
  { fromAtMs, toAtMs }: EndedMachine,
): Pick<Lost, 'wasOnlyQueued' | 'isTimeUp'> {
  const { usableUntilMs = Infinity, runMsMax = Infinity } = runner
  const untilMs = Math.min(usableUntilMs, (fromAtMs ?? Infinity) + runMsMax)
  return { wasOnlyQueued: fromAtMs === undefined, isTimeUp: toAtMs >= untilMs - CLOCK_SLACK_MS }
}
