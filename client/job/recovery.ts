import type { Settlement } from '../../core/activities'
import { stopReason } from '../../core/job/attempt-record'
import type { Phase, RunnerPhase } from '../../core/documents'
import type { AttemptEnd } from '../../core/job/ledger'
import { ATTEMPTS_SHOWN_MAX } from '../../core/messages'
import type { RecordEntry } from '../../core/job/record'
import type { RecoveryView } from './job-view'
import type { AttemptDocumentsRead } from './view'

type Instant = number | null

/** The known facts about one attempt, over or not. */
interface Life {
  number: number
  phases: readonly Phase[]
  launchedAtMs: Instant
  firstStepAtMs: Instant
  settlement?: Settlement
}

/** The times at the end of an attempt's work. */
interface Ended {
  /** The last healthy sign. */
  wellAtMs: Instant
  /** The drain began, or the loss was known. */
  noticedAtMs: Instant
  /** Time at which nothing was left to save. */
  drainedAtMs: Instant
}

/** The recoveries of a job from its record and its newest attempt's documents. Pure. */
export function recoveriesOf(
  entries: readonly RecordEntry[],
  newest: AttemptDocumentsRead | undefined,
): RecoveryView[] {
  const lives = livesOf(entries, newest)
  return entries
    .flatMap(({ kind, attempt, data }) => {
      if (kind !== 'decided' || data.verdict.decision.kind !== 'again') return []
      const before = lives.find(({ number }) => number === attempt)
      return before?.settlement === undefined || !hasWorked(before) ? [] : [recovery(before, lives)]
    })
    .slice(-ATTEMPTS_SHOWN_MAX)
}

function livesOf(entries: readonly RecordEntry[], newest: AttemptDocumentsRead | undefined): Life[] {
  const settled = entries.flatMap(({ kind, attempt, data: settlement }): Life[] => {
    if (kind !== 'settled' || attempt === undefined) return []
    return [
      {
        number: attempt,
        phases: settlement.phases,
        // Time in a provider's queue is spent on acquiring a machine.
        launchedAtMs: settlement.billedFromAtMs ?? settlement.handle?.launchedAtMs ?? null,
        firstStepAtMs: settlement.times?.firstStepAtMs ?? null,
        settlement,
      },
    ]
  })
  if (newest === undefined || settled.some(({ number }) => number === newest.attempt)) return settled
  const { attempt: number, beat, machine } = newest
  const launchedAtMs = newest.billing?.fromAtMs ?? machine?.launchedAtMs ?? null
  return [
    ...settled,
    { number, phases: beat?.phases ?? [], launchedAtMs, firstStepAtMs: beat?.firstStepAtMs ?? null },
  ]
}

function recovery(before: Life, lives: readonly Life[]): RecoveryView {
  const settlement = before.settlement!
  const later = lives.filter(({ number }) => number > before.number)
  const next = later.find((life) => hasWorked(life) || life.settlement === undefined)
  const { wellAtMs, noticedAtMs, drainedAtMs } = endOf(before.phases, settlement)
  const launchedAtMs = next?.launchedAtMs ?? null
  const startedAtMs = beginOf(next?.phases, 'starting')
  const runningAtMs = beginOf(next?.phases, 'running')
  const firstStepAtMs = next?.firstStepAtMs ?? null
  const bootMs = between(launchedAtMs, startedAtMs)
  const totalMs = between(wellAtMs, firstStepAtMs)
  return {
    from: before.number,
    to: next?.number ?? null,
    cause: nameOf(settlement),
    detectMs: between(wellAtMs, noticedAtMs),
    drainMs: between(noticedAtMs, drainedAtMs),
    acquireMs: between(drainedAtMs, launchedAtMs),
    bootMs,
    restoreMs: between(startedAtMs, runningAtMs),
    firstStepMs: between(runningAtMs, firstStepAtMs),
    totalMs,
    overheadMs: totalMs === null || bootMs === null ? null : totalMs - bootMs,
    stepsLost: settlement.stepsLost ?? null,
  }
}

/** Whether an attempt has worked: only such an attempt can be recovered, or end a recovery. */
function hasWorked({ phases, firstStepAtMs, settlement }: Life): boolean {
  return beginOf(phases, 'running') !== null || firstStepAtMs !== null || settlement?.progress !== undefined
}

function endOf(phases: readonly Phase[], { end, times }: Settlement): Ended {
  if (times === undefined) return { wellAtMs: null, noticedAtMs: null, drainedAtMs: null }
  const { drain, finishedAtMs, lastBeatAtMs, noNoticeAtMs } = times
  // Written by the settlement: no stop was requested before the loss was known.
  const lostAtMs = drain?.reason === 'superseded' ? drain.atMs : null
  const drainingAtMs = beginOf(phases, 'draining')
  if (drainingAtMs !== null) {
    const asked = end.kind === 'stopped' && end.by === drain?.reason ? drain.atMs : drainingAtMs
    return {
      wellAtMs: causeOf(end) === 'interrupted' ? noNoticeAtMs : asked,
      noticedAtMs: drainingAtMs,
      drainedAtMs: finishedAtMs ?? lostAtMs,
    }
  }
  if (finishedAtMs === null) return { wellAtMs: lastBeatAtMs, noticedAtMs: lostAtMs, drainedAtMs: lostAtMs }
  // The workload ended, and the runner reported it.
  const endedAtMs = beginOf(phases, 'finishing')
  return { wellAtMs: endedAtMs, noticedAtMs: endedAtMs, drainedAtMs: finishedAtMs }
}

/** A change of machines that the provider's run limit requires is named as one: nothing was interrupted. */
function nameOf({ end, handle }: Settlement): string {
  if (end.kind !== 'stopped' || handle === null) return causeOf(end)
  return stopReason(end.by, handle.realised)
}

function causeOf(end: AttemptEnd): string {
  return end.kind === 'failed' ? end.failure.class : end.kind === 'stopped' ? end.by : end.kind
}

function beginOf(phases: readonly Phase[] | undefined, name: RunnerPhase): Instant {
  return phases?.find((phase) => phase.name === name)?.startedAtMs ?? null
}

/** Clocks of two machines may disagree: a negative part is unknown. */
function between(fromAtMs: Instant, toAtMs: Instant): number | null {
  return fromAtMs === null || toAtMs === null || toAtMs < fromAtMs ? null : toAtMs - fromAtMs
}
