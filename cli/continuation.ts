import type { JobView } from '../client/job-view'
import type { Cli } from './cli'

/** How the work of a job goes on that ended before it was done, in lines; none for every other job. */
export function continuationLines(cli: Cli, view: Pick<JobView, 'continuation' | 'reason'>): string[] {
  const { continuation, reason } = view
  if (continuation === null) return []
  const { command, step } = continuation
  const what = step === null ? 'Start over' : `Go on from step ${step}`
  return [
    `${what}: ${cli.asCalled(`\`${command}\``).replaceAll('`', '')}`,
    ...(reason === 'workload-failed'
      ? ['  With corrected code: add --workdir FOLDER, or name the job file before --from.']
      : []),
  ]
}
