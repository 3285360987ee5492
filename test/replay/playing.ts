import { until } from '../support/until'
import { statusOf, type Deployment, type JobHandle } from '../workflows/harness'
import type { Scenario } from './scenario'

export const JOB = 'job/job-test'
export const ATTEMPT = 'job/job-test/1'
export const SECOND_ATTEMPT = 'job/job-test/2'

/** Waits for the end of the job, whatever it is. */
export const closed = (job: JobHandle): Promise<string> =>
  job.result().then(
    () => JOB,
    () => JOB,
  )
const running = (job: JobHandle): Promise<void> =>
  until(async () => (await statusOf(job)).state === 'running')

/** Submits a job, meddles with it while it runs, and waits for its end. */
export async function played(
  deployment: Deployment,
  spec = {},
  meddle?: (job: JobHandle) => Promise<unknown>,
): Promise<string> {
  const job = await deployment.submit(spec)
  if (meddle !== undefined) {
    await running(job)
    await meddle(job)
  }
  return closed(job)
}

/** The same, to record the first attempt. */
export const ofAttempt =
  (play: Scenario['play']): Scenario['play'] =>
  async (deployment) => {
    await play(deployment)
    return ATTEMPT
  }

/** A job whose second attempt is held back for longer than a scenario lasts. */
export async function paused(deployment: Deployment): Promise<JobHandle> {
  const failure = { class: 'throttled', message: 'slow down', retryAfterMs: 600_000 } as const
  deployment.world.faults.add('launch', { kind: 'refuses', failure })
  const job = await deployment.submit()
  await until(async () => (await statusOf(job)).attemptsTotal === 2)
  return job
}
