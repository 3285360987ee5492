import type { JobView } from '../../client/job/job-view'
import type { Cli } from '../cli'

/** Returns lines that explain how to continue a job that ended before it was done; empty for other jobs. */
export function continuationLines(cli: Cli, view: Pick<JobView, 'continuation' | 'reason'>): string[] {
  const { continuation, reason } = view
  if (continuation === null) return []
  const { command, step } = continuation
  const what = step === null ? 'Start over' : `Resume from step ${step}`
  return [
    `${what}: ${cli.asCalled(`\`${command}\``).replaceAll('`', '')}`,
    ...(reason === 'workload-failed'
      ? ['  With corrected code: add --workdir FOLDER, or name the job file before --from.']
      : []),
  ]
}
