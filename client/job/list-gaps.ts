/** What a list of jobs says about its missing parts. */
import type { Context } from '../context'
import type { StoreReads } from '../store-reads'
import type { Gaps } from '../../storage/json'
import type { JobSummary } from './job-view'
import { gapsInWords } from './view'

/** Jobs with documents that cannot be read, and jobs that are missing for that reason. */
export function damageGaps(jobs: readonly JobSummary[], missing: readonly string[]): string[] {
  const damaged = jobs.filter(({ incomplete }) => incomplete !== null).map(({ id }) => id)
  return [
    ...(damaged.length === 0
      ? []
      : [
          `Documents of ${namesOf(damaged)} cannot be read (\`crucible show JOB\` names them): parts are unknown.`,
        ]),
    ...(missing.length === 0 ? [] : [`The record of ${namesOf(missing)} cannot be read: missing here.`]),
  ]
}

/** Jobs that a remark lists. */
const NAMED_MAX = 5

export function namesOf(jobIds: readonly string[]): string {
  const more = jobIds.length - NAMED_MAX
  return `${jobIds.slice(0, NAMED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Tells the reader of an answer which of its documents cannot be read. */
export function noteGaps(context: Context, { names }: Gaps): void {
  const sentence = gapsInWords(names, '')
  if (sentence !== null) context.gaps.push(sentence)
}

export function storeGap({ config }: Context, { trouble = '', isElsewhere }: StoreReads): string {
  const what = isElsewhere ? trouble : `The store ${config.home.storeUrl} does not answer (${trouble}).`
  return `${what} Progress, cost and some states are unknown, jobs that Temporal no longer keeps are missing, and others may not be of this deployment.`
}
