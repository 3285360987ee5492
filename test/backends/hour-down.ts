import { WatchLoop } from '../../activities/watch/loop'
import type { Backend } from '../../backends/backend'
import type { WatchInput } from '../../core/activities'
import type { Beat, RunnerResult } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import { until } from '../support/until'

/** A running job and its provider. */
export interface Watched {
  backend: Backend
  store: ObjectStore
  order: Order
  handle: MachineHandle
  /** How often the provider was asked about its machines. */
  asked: () => number
  trouble: () => unknown
  recover: () => unknown
}

/** Watches a healthy job through an hour in which its provider does not answer, and to its end. */
export async function watchAnHour(at: Watched): Promise<{ told: unknown[]; during: unknown; end: unknown }> {
  const { order, handle } = at
  let nowMs = Date.now()
  let outcome: unknown
  const loop = new WatchLoop(
    at.backend,
    at.store,
    () => nowMs,
    () => nowMs,
  )
  const told: unknown[] = []
  loop.onProviderTrouble = (failure) => told.push(failure?.class)
  const timing = { ...DEFAULT_TIMING, observeMs: 1, beatMs: 1 }
  const input: WatchInput = { order, handle, timing, isRunning: true }
  const leaving = new AbortController()
  void loop.watch(input, leaving.signal).then(
    (over) => (outcome = over),
    (error: unknown) => (outcome = error),
  )
  const passes = async (beatSeq: number): Promise<void> => {
    await beat(at, { seq: beatSeq, clockMs: nowMs })
    const before = at.asked()
    await until(() => {
      // Its pace is kept by this clock.
      nowMs += SECOND_MS / 10
      return at.asked() >= before + 2 || outcome !== undefined
    })
  }
  await passes(1)
  await at.trouble()
  for (let minute = 1; minute <= HOUR_MS / MINUTE_MS; minute++) {
    nowMs += MINUTE_MS
    await passes(minute + 1)
  }
  await at.recover()
  await passes(100)
  const during = outcome
  await succeed(at, nowMs)
  // A result is read once the beats have ended.
  await until(() => {
    nowMs += SECOND_MS
    return outcome !== undefined
  })
  leaving.abort()
  return { told, during, end: outcome }
}

function beat({ store, order }: Watched, { seq, clockMs }: Pick<Beat, 'seq' | 'clockMs'>): Promise<void> {
  const { jobId, attempt, attemptId } = order
  return putDocument(store, layout.beat(jobId, attempt), {
    attemptId,
    seq,
    phase: 'running',
    progress: null,
    gpus: [],
    checkpoint: null,
    restoredFrom: null,
    limitsSeq: 0,
    leaseSeq: 0,
    logLines: 0,
    clockMs,
    uptimeMs: 1_000,
  } satisfies Beat)
}

function succeed({ store, order }: Watched, finishedAtMs: number): Promise<void> {
  const { jobId, attempt, attemptId } = order
  return putDocument(store, layout.result(jobId, attempt), {
    version: 1,
    attemptId,
    outcome: 'succeeded',
    reason: 'completed',
    message: 'done',
    exitCode: 0,
    signal: null,
    progress: null,
    checkpoint: null,
    restoredFrom: null,
    artifacts: [],
    phases: [],
    logLines: 0,
    finishedAtMs,
  } satisfies RunnerResult)
}
