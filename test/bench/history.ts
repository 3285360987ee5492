import { ApplicationFailure, Context } from '@temporalio/activity'
import { Worker } from '@temporalio/worker'
import { WatchLoop } from '../../activities/watch/loop'
import { createWatchActivities } from '../../activities/watch/activities'
import type { JobSpec } from '../../core/job/job'
import { attemptWorkflowId, jobWorkflowId, watchQueue } from '../../core/queues'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { skipTime, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { Deployment, statusOf, type JobHandle, type WorldWishes } from '../workflows/harness'
import type { Measure } from './measure'

const JOB = 'job-test'
const CHILD_MAX = 60
const PARENT_PER_ATTEMPT_MAX = 20

/** Events of a job and of its attempts. */
interface Events {
  job: number
  attempts: number[]
  /** All of them but workflow tasks, whose number is a matter of timing, and what only the skipping of time leaves. */
  steps: number
}

/** How many history events a job leaves: with a drain, for each attempt, and whatever its duration. */
export async function history(at: TestConnection, losses: number): Promise<Measure[]> {
  // Each failure is followed by a pause, longer every time.
  const failures = Math.ceil(losses / 2)
  const plain = await lived(at, {})
  const drained = await lived(
    at,
    { behave: () => ({ stepsTotal: 10_000 }) },
    { meddle: (job) => job.cancel() },
  )
  const lossy = await lived(at, { behave: ({ attempt }) => (attempt <= losses ? { diesAtStep: 5 } : {}) })
  const failing = await lived(
    at,
    { behave: () => ({ fails: { atStep: 5, exitCode: 1 } }) },
    { spec: { retries: { failures, interruptions: 0 } } },
  )
  const firstLong: WorldWishes = { behave: ({ attempt }) => (attempt === 1 ? { stepsTotal: 10_000 } : {}) }
  const terminated = await lived(at, firstLong, {
    meddle: (job) => job.client.getHandle(attemptWorkflowId(JOB, 1)).terminate(),
  })
  const moved = await lived(at, firstLong, {
    meddle: (job) => job.executeUpdate('migrate', { args: [{}] }),
  })
  const [hour, month] = [await watchedFor(at, HOUR_MS), await watchedFor(at, 30 * DAY_MS)]
  const measure = (name: string, value: number, max?: number, remark?: string): Measure => ({
    bench: 'history',
    name,
    value,
    unit: 'events',
    goal: max === undefined ? undefined : { is: 'at most' as const, value: max },
    remark,
  })
  return [
    measure('attempt (child), undisturbed', plain.attempts[0]!, CHILD_MAX),
    measure('attempt (child) with a drain', drained.attempts[0]!, CHILD_MAX),
    measure(
      'job (parent) for each further attempt',
      (lossy.job - plain.job) / losses,
      PARENT_PER_ATTEMPT_MAX,
      `${plain.job} events with one attempt, ${lossy.job} with ${losses + 1}`,
    ),
    measure(
      'job (parent) for each attempt after a failure',
      (failing.job - plain.job) / failures,
      PARENT_PER_ATTEMPT_MAX,
      'a pause before each',
    ),
    measure(
      'job (parent) for the attempt after one terminated by hand',
      terminated.job - plain.job,
      PARENT_PER_ATTEMPT_MAX,
    ),
    measure('job (parent) for the attempt after a migrate', moved.job - plain.job, PARENT_PER_ATTEMPT_MAX),
    measure(
      'more in 30 days than in one hour',
      month.steps - hour.steps,
      0,
      `${hour.steps} and ${month.steps}, job and attempt, without workflow tasks`,
    ),
  ]
}

/** Runs one job to its end, doing something to it once it runs, and counts. */
async function lived(
  at: TestConnection,
  wishes: WorldWishes,
  { spec = {}, meddle }: { spec?: Partial<JobSpec>; meddle?: (job: JobHandle) => Promise<unknown> } = {},
): Promise<Events> {
  const deployment = await Deployment.start(at, wishes)
  try {
    const job = await deployment.submit(spec)
    if (meddle !== undefined) {
      await until(async () => (await statusOf(job)).state === 'running')
      await meddle(job)
    }
    await job.result().catch(() => undefined)
    return await eventsOf(deployment, job)
  } finally {
    await deployment.close()
  }
}

/**
 * A job whose watch is interrupted for this long by the job's own clock: it fails as if its worker had died, and the next try comes
 * then. The server skips the time between, as it does while nothing but a retry is pending.
 */
async function watchedFor(at: TestConnection, durationMs: number): Promise<Events> {
  const deployment = await Deployment.start(at, {})
  await deployment.stop('watches')
  const backend = createScriptedBackend(deployment.world)
  const real = createWatchActivities(
    new WatchLoop(backend, deployment.store, Date.now, () => performance.now()),
  )
  const worker = await Worker.create({
    ...deployment.authentication.workerOptions(),
    connection: at.nativeConnection,
    namespace: deployment.namespace,
    taskQueue: watchQueue(deployment.world.name),
    activities: {
      watch: (input: Parameters<typeof real.watch>[0]) => {
        if (input.isRunning || Context.current().info.attempt > 1) return real.watch(input)
        throw ApplicationFailure.create({ message: 'the worker died', nextRetryDelay: durationMs })
      },
    },
  })
  try {
    return await worker.runUntil(async () => {
      const job = await deployment.submit()
      await skipTime(deployment.client, job.workflowId)
      await job.result()
      const { startTime, closeTime } = await attemptOf(deployment).describe()
      if (closeTime!.getTime() - startTime.getTime() < durationMs) throw new Error('the time was not skipped')
      return eventsOf(deployment, job)
    })
  } finally {
    await deployment.close()
  }
}

function attemptOf(
  { client }: Deployment,
  number = 1,
): ReturnType<Deployment['client']['workflow']['getHandle']> {
  return client.workflow.getHandle(attemptWorkflowId(JOB, number))
}

async function eventsOf(deployment: Deployment, job: JobHandle): Promise<Events> {
  const { attemptsTotal } = await statusOf(job)
  const numbers = Array.from({ length: attemptsTotal }, (_, index) => index + 1)
  const eventsIn = async (workflowId: string): Promise<IHistoryEvent[]> =>
    (await deployment.client.workflow.getHandle(workflowId).fetchHistory()).events ?? []
  const attempts = numbers.map((number) => eventsIn(attemptWorkflowId(JOB, number)))
  const all = [await eventsIn(jobWorkflowId(JOB)), ...(await Promise.all(attempts))]
  return {
    job: all[0]!.length,
    attempts: all.slice(1).map(({ length }) => length),
    steps: all.flat().filter(isStep).length,
  }
}

type IHistoryEvent = NonNullable<Awaited<ReturnType<JobHandle['fetchHistory']>>['events']>[number]

function isStep(event: IHistoryEvent): boolean {
  const others = [
    event.workflowTaskScheduledEventAttributes,
    event.workflowTaskStartedEventAttributes,
    event.workflowTaskCompletedEventAttributes,
    event.workflowExecutionTimeSkippingTransitionedEventAttributes,
    event.workflowExecutionOptionsUpdatedEventAttributes,
  ]
  return others.every((attributes) => attributes === undefined || attributes === null)
}
