import type { JobSpec } from './job'
import type { SavedBefore } from './saving'

/** A plan for a job that is not submitted. */
export interface PreviewInput {
  spec: JobSpec
  /** Owner of the job. */
  owner?: string
  savedBefore?: SavedBefore
  /** Explains one offer: a name as in `price.NAME` of `--what-if`. */
  explain?: string
}
