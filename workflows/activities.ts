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
import type { Verdict } from '../core/ledger'
import { backendQueue, ORCHESTRATOR_QUEUE, watchQueue } from '../core/queues'
import { localThenOrdinary, type TroublePage } from './forever'

/**
 * Every activity option in one place. What they share: cancellation is waited for, so that nothing is cleaned up while an
 * effect is still under way; a heartbeat of 20 s, so that an effect whose worker or whose report of completion is lost is
 * noticed within seconds; and a limit to waiting for a worker.
 */
const EFFECT = {
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  heartbeatTimeout: '20 seconds',
} satisfies ActivityOptions

/** What promises that nothing happened is repeated soon, then at leisure. */
const RETRY = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' } as const

/** How long a launch waits for somebody who serves its backend before that counts as no capacity. */
const SERVED_WITHIN = '2 minutes'
/** For what must be done in any case: long enough to cost no history, and then it is asked again (`forever`). */
const SERVED_SOME_DAY = '1 day'

/** Documents and records: short, and repeatable as often as it takes. */
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
  withdraw: document('take the order back').withdraw,
  extend: document('pass the new limits on').extend,
  promiseBudget: document('have the new budget promised').promiseBudget,
  finishJob: document('complete the record and clean up').finishJob,
}

/** Copying a checkpoint from another job: as long as it takes, and a repeated try goes on where the last one was. */
export const copying = proxyActivities<Pick<OrchestratorActivities, 'copyCheckpoint'>>({
  ...EFFECT,
  // A copy that comes late harms nobody: a job that is told to stop does not wait for a store that hangs.
  cancellationType: 'TRY_CANCEL',
  taskQueue: ORCHESTRATOR_QUEUE,
  startToCloseTimeout: '1 day',
  scheduleToStartTimeout: SERVED_SOME_DAY,
  retry: RETRY,
  summary: 'copy the checkpoint to go on from',
})

/** Decisions and first looks: no effect but their own record, and cheap: one marker in the history. */
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
}
/** The same once the local one has failed. */
export const ordinary = {
  plan: document('find a place, after trouble').plan,
  decide: document('decide what comes next, after trouble').decide,
}

/** One look at the offers; takes as long as trouble lasts. */
export function plan(page: TroublePage, input: PlanInput): Promise<PlanOutcome> {
  return localThenOrdinary({ local: () => local.plan(input), ordinary: () => ordinary.plan(input) }, page)
}

/** What comes next; takes as long as trouble lasts. */
export function decide(page: TroublePage, input: DecideInput): Promise<Verdict> {
  return localThenOrdinary({ local: () => local.decide(input), ordinary: () => ordinary.decide(input) }, page)
}

/** Waiting for a machine: Temporal's own retries are the polls, none of which leaves an event. */
export const waiting = proxyActivities<Pick<OrchestratorActivities, 'planWhenAvailable'>>({
  taskQueue: ORCHESTRATOR_QUEUE,
  startToCloseTimeout: '1 minute',
  // A try that was woken just as it began is lost (`workers/waking.ts`).
  heartbeatTimeout: '15 seconds',
  // The answer says when to ask again; this is for its failures.
  retry: { initialInterval: '5 seconds', backoffCoefficient: 1 },
  summary: 'waiting for a machine',
})

/** The verbs of one backend. */
export function on(backend: string): {
  launching: Pick<BackendActivities, 'launch'>
  verbs: Pick<BackendActivities, 'find'>
  ending: Pick<BackendActivities, 'settle'>
  watching: WatchActivities
} {
  const taskQueue = backendQueue(backend)
  return {
    launching: proxyActivities<BackendActivities>({
      ...EFFECT,
      taskQueue,
      startToCloseTimeout: '10 minutes',
      scheduleToStartTimeout: SERVED_WITHIN,
      // Trouble that outlasts this is the provider's; another placement may do better.
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
      summary: 'look for the machine',
    }),
    ending: proxyActivities<BackendActivities>({
      ...EFFECT,
      taskQueue,
      // A drain window and a slow provider fit; a repeated settlement goes on where the last one was.
      startToCloseTimeout: '1 hour',
      scheduleToStartTimeout: SERVED_SOME_DAY,
      retry: RETRY,
      summary: 'make sure that nothing runs, and add up',
    }),
    watching: proxyActivities<WatchActivities>({
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      heartbeatTimeout: '20 seconds',
      taskQueue: watchQueue(backend),
      // As long as the machine lives; a lost watcher is only somebody to be replaced, at once and for ever. No limit to
      // waiting for a worker: while nobody watches, the machine's lease holds.
      startToCloseTimeout: '3650 days',
      retry: { initialInterval: '1 second', backoffCoefficient: 1 },
      summary: 'watch the machine',
    }),
  }
}

/** Telling a machine to drain by way of its backend: soon, or by the document alone. */
export function pressing(backend: string): Pick<BackendActivities, 'drainMachine'> {
  return proxyActivities<BackendActivities>({
    ...EFFECT,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: '1 minute',
    scheduleToStartTimeout: '10 seconds',
    retry: { maximumAttempts: 2 },
    summary: 'tell the machine to save and stop',
  })
}

/** Taking the machine of a rehearsal back: now, or the moment has passed. */
export function interrupting(backend: string): Pick<BackendActivities, 'interrupt'> {
  return proxyActivities<BackendActivities>({
    ...EFFECT,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: '1 minute',
    scheduleToStartTimeout: '10 seconds',
    retry: { maximumAttempts: 3 },
    summary: 'take the machine back, for the rehearsal',
  })
}

/** Starting the runner of a machine that is still coming up: asked again every few seconds until the time is up. */
export function starting(backend: string, withinMs: number): Pick<BackendActivities, 'start'> {
  return proxyActivities<BackendActivities>({
    ...EFFECT,
    taskQueue: backendQueue(backend),
    startToCloseTimeout: '10 minutes',
    // A worker that comes while the runner may still start is not too late.
    scheduleToStartTimeout: withinMs,
    scheduleToCloseTimeout: withinMs,
    retry: { ...RETRY, maximumInterval: '10 seconds' },
    summary: 'start the runner',
  })
}
