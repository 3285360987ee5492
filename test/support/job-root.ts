import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'

/** Where a cloud machine has the directory of a job, next to the attempt's own (runner/launching.py). */
export function jobRootBeside(root: string, jobId: string): string {
  const digest = createHash('sha256').update(jobId).digest('hex').slice(0, 8)
  return join(dirname(root), 'jobs', `${jobId.slice(0, 8).replace(/-+$/, '')}-${digest}`)
}
