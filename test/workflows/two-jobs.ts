import type { JobSource } from '../../core/messages'
import { listCheckpoints } from '../../storage/checkpoints'
import { until } from '../support/until'
import { statusOf, type Deployment } from './harness'

/** The job that another one continues from. */
export const SOURCE_JOB = 'job-source'

/** Runs a job until it has saved, cancels it, and answers the source of another job. */
export async function cancelledWithCheckpoint(deployment: Deployment): Promise<JobSource> {
  const job = await deployment.submit({}, { jobId: SOURCE_JOB })
  await until(async () => (await statusOf(job)).state === 'running')
  await until(async () => (await listCheckpoints(deployment.store, SOURCE_JOB)).length > 0)
  await job.cancel()
  await job.result().catch(() => undefined)
  const [checkpoint] = await listCheckpoints(deployment.store, SOURCE_JOB)
  return { jobId: SOURCE_JOB, checkpoint: checkpoint! }
}

/** Lets no copy in the store end before it is released; `begun` is over when one has begun. */
export function holdCopies({ store }: Deployment): { begun: Promise<void>; release: () => void } {
  const copy = store.copy.bind(store)
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const begun = new Promise<void>((resolve) => {
    store.copy = async (from, to) => {
      resolve()
      await released
      return copy(from, to)
    }
  })
  return { begun, release }
}
