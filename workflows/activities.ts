import {
  proxyActivities,
  proxyLocalActivities,
  type ActivityInterfaceFor,
  type ActivityOptions,
  type LocalActivityInterfaceFor,
} from '@temporalio/workflow'
import type {
  BackendActivities,
  DecideInput,
  OrchestratorActivities,
  PlanInput,
  PlanOutcome,
  WatchActivities,
} from '../core/activities'
import type { Verdict } from '../core/job/ledger'
import { backendQueue, launchQueue, ORCHESTRATOR_QUEUE, watchQueue } from '../core/queues'
import { MINUTE_MS, SECOND_MS } from '../core/time/time'
import type { Timing } from '../core/time/timing'
import { localThenOrdinary, type TroublePage } from './forever'

/**
 * All activity options. Common to all: cancellation waits for the activity, so that nothing is cleaned up while an effect is
 * still in progress; a heartbeat of 20 s, so that the loss of a worker or of a completion report is noticed within seconds; and a
 * limit on waiting for a worker. Watches differ in the last two.
 */
const EFFECT = {
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  heartbeatTimeout: '20 seconds',
} satisfies ActivityOptions

/** Activities that guarantee that nothing happened are retried soon, then more rarely. */
const RETRY = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' } as const

/** Time for which a launch waits for a worker of its backend before that counts as missing capacity. */
const SERVED_WITHIN = '2 minutes'
/** Timeout of steps that must happen: long enough for a short history, after which they are requested again (`forever`). */
const SERVED_SOME_DAY = '1 day'

/** Documents and records: short, and retried as often as necessary. */
const document = (summary: string): ActivityInterfaceFor<OrchestratorActivities> =>
  proxyActivities<OrchestratorActivities>({
    ...EFFECT,
    taskQueue: ORCHESTRATOR_QUEUE,
    startToCloseTimeout: '2 minutes',
    scheduleToStartTimeout: SERVED_SOME_DAY,
    retry: RETRY,
    summary,
  })

export const orchestrator = {
  resolveJob: document('check the job').resolveJob,
  drain: document('ask the machine to save and stop').drain,
  withdraw: document('cancel the order').withdraw,
  extend: document('publish the new limits').extend,
  promiseBudget: document('reserve the new budget').promiseBudget,
  finishJob: document('complete the record and clean up').finishJob,
}

/** The request to save and stop, for which nothing waits any longer than this. */
export function drainWithin(limitMs: number): Pick<OrchestratorActivities, 'drain'> {
  return proxyActivities<Pick<OrchestratorActivities, 'drain'>>({
    ...EFFECT,
    taskQueue: ORCHESTRATOR_QUEUE,
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: limitMs,
    retry: RETRY,
    summary: 'ask the machine to save and stop, in time',
  })
}

/** Copying a checkpoint from another job: no time limit, and a retry continues where the last try stopped. */
export const copying = proxyActivities<Pick<OrchestratorActivities, 'copyCheckpoint'>>({
  ...EFFECT,
  // A late copy is harmless: a stopping job does not wait for a hanging store.
  cancellationType: 'TRY_CANCEL',
  taskQueue: ORCHESTRATOR_QUEUE,
  startToCloseTimeout: '1 day',
  scheduleToStartTimeout: SERVED_SOME_DAY,
  retry: RETRY,
  summary: 'copy the checkpoint to resume from',
})

/** Decisions and first plans: no effect except their record, and cheap: one marker in the history. */
const marker = (
  summary: string,
  startToCloseTimeout: '10 seconds' | '20 seconds',
): LocalActivityInterfaceFor<OrchestratorActivities> =>
  proxyLocalActivities<OrchestratorActivities>({
    startToCloseTimeout,
    retry: { maximumAttempts: 1 },
    summary,
  })

export const local = {
  plan: marker('find a place', '20 seconds').plan,
  decide: marker('decide what comes next', '10 seconds').decide,
  stopAttempt: marker('ask the attempt to save and stop', '10 seconds').stopAttempt,
  admitBudget: marker('decide whether the budget fits', '10 seconds').admitBudget,
}
/**
 * The local activities as ordinary ones, for use after a local one has failed.
 * @internal A test compares their options with the table of activities.
 */
export const ordinary = {
  plan: document('find a place, after trouble').plan,
  decide: document('decide what comes next, after trouble').decide,
}

/** Asks for offers once; retried while trouble lasts. */
export function plan(page: TroublePage, input: PlanInput): Promise<PlanOutcome> {
  return localThenOrdinary({ local: () => local.plan(input), ordinary: () => ordinary.plan(input) }, page)
}

/** Decides what comes next; retried while trouble lasts. */
export function decide(page: TroublePage, input: DecideInput): Promise<Verdict> {
  return localThenOrdinary({ local: () => local.decide(input), ordinary: () => ordinary.decide(input) }, page)
}

/** Activities that wait for a machine: Temporal's own retries are the polls, and leave no events. */
export const waiting = proxyActivities<Pick<OrchestratorActivities, 'planWhenAvailable'>>({
  taskQueue: ORCHESTRATOR_QUEUE,
  startToCloseTimeout: '1 minute',
  // A try that was woken just as it began is lost (`workers/waking.ts`).
  heartbeatTimeout: '15 seconds',
  // The answer says when to ask again; this interval is for failures.
  retry: { initialInterval: '5 seconds', backoffCoefficient: 1 },
  summary: 'waiting for a machine',
})

/** Bounds of the heartbeat timeout of a watch. */
const WATCH_LOST_MIN_MS = 20 * SECOND_MS
const WATCH_LOST_MAX_MS = 5 * MINUTE_MS
/** Part of the longest silence of a runner, and of the lease of its machine, for which the machine may be without a watch. */
const WATCH_LOST_PART = 1 / 6

/**
 * Heartbeat timeout of a watch, in milliseconds. The beats of ten thousand watches are most of the load of quiet jobs, and a new worker takes
 * over the watches of the dead ones of its host (`workers/taking-over.ts`), so that only the loss of a host waits for it.
 */
function watchLostAfterMs({ silenceMs, leaseMs }: WatchTiming): number {
  const shortestMs = Math.min(silenceMs, leaseMs) * WATCH_LOST_PART
  return Math.min(Math.max(shortestMs, WATCH_LOST_MIN_MS), WATCH_LOST_MAX_MS)
}

type WatchTiming = Pick<Timing, 'silenceMs' | 'leaseMs'>

/** The verbs of one backend. */
export function on(backend: string): {
  launching: Pick<BackendActivities, 'launch'>
  verbs: Pick<BackendActivities, 'find'>
  ending: Pick<BackendActivities, 'settle'>
} {
  const taskQueue = backendQueue(backend)
  return {
    launching: proxyActivities<BackendActivities>({
      ...EFFECT,
      taskQueue,
      startToCloseTimeout: '10 minutes',
      scheduleToStartTimeout: SERVED_WITHIN,
      // A longer start is the provider's fault; another placement may do better.
      scheduleToCloseTimeout: '30 minutes',
      retry: RETRY,
      summary: 'order the machine',
    }),
    verbs: proxyActivities<BackendActivities>({
      ...EFFECT,
      taskQueue,
      startToCloseTimeout: '10 minutes',
      scheduleToStartTimeout: SERVED_SOME_DAY,
      retry: RETRY,
      summary: 'find the machine',
    }),
    ending: proxyActivities<BackendActivities>({
      ...EFFECT,
      taskQueue,
      // Enough for a drain window and a slow provider; a repeated settlement continues where the last one stopped.
      startToCloseTimeout: '1 hour',
      scheduleToStartTimeout: SERVED_SOME_DAY,
      retry: RETRY,
      summary: 'ensure that nothing runs, and total the cost',
    }),
  }
}

/** The watch of a machine of one backend. */
export function watching(backend: string, timing: WatchTiming): WatchActivities {
  return proxyActivities<WatchActivities>({
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    heartbeatTimeout: watchLostAfterMs(timing),
    taskQueue: watchQueue(backend),
    // The watch has no limit on its duration, because the machine may live long, and a lost watcher is replaced. It has no limit on waiting
    // for a worker, because the machine's lease is valid meanwhile.
    startToCloseTimeout: '3650 days',
    retry: { initialInterval: '1 second', backoffCoefficient: 1 },
    summary: 'watch the machine',
  })
}

/** A launch that waits behind others of its account, and the question whether its backend has a worker. */
export function inTurn(backend: string): {
  asking: Pick<BackendActivities, 'servesLaunches'>
  launching: Pick<BackendActivities, 'launch'>
} {
  return {
    asking: proxyActivities<BackendActivities>({
      taskQueue: backendQueue(backend),
      startToCloseTimeout: '10 seconds',
      scheduleToStartTimeout: SERVED_WITHIN,
      retry: { ...RETRY, maximumAttempts: 3 },
      summary: 'check that the backend has a worker',
    }),
    launching: proxyActivities<BackendActivities>({
      ...EFFECT,
      taskQueue: launchQueue(backend),
      // The launch waits for its turn in a worker too, which proves nothing about workers. The activity limits how long a throttled order
      // is sent again.
      startToCloseTimeout: '1 hour',
      scheduleToStartTimeout: SERVED_SOME_DAY,
      retry: RETRY,
      summary: 'order the machine, in turn',
    }),
  }
}

/** Telling a machine to drain through its backend: soon, or not at all, because the document does it too. */
export function pressing(backend: string): Pick<BackendActivities, 'drainMachine'> {
  return proxyActivities<BackendActivities>({
    ...EFFECT,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: '1 minute',
    scheduleToStartTimeout: '10 seconds',
    retry: { maximumAttempts: 2 },
    summary: 'ask the machine to save and stop',
  })
}

/** Interrupting the machine of a rehearsal: now, or the moment has passed. */
export function interrupting(backend: string): Pick<BackendActivities, 'interrupt'> {
  return proxyActivities<BackendActivities>({
    ...EFFECT,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: '1 minute',
    scheduleToStartTimeout: '10 seconds',
    retry: { maximumAttempts: 3 },
    summary: 'interrupt the machine, for the rehearsal',
  })
}

/** Options for starting the runner of a machine that is still booting: retried every few seconds until the timeout. */
export function starting(backend: string, withinMs: number): Pick<BackendActivities, 'start'> {
  return proxyActivities<BackendActivities>({
    ...EFFECT,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: '10 minutes',
    // A worker that starts while the runner may still start is not too late.
    scheduleToStartTimeout: withinMs,
    scheduleToCloseTimeout: withinMs,
    retry: { ...RETRY, maximumInterval: '10 seconds' },
    summary: 'start the runner',
  })
}
