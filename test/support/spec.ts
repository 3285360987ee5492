import type { JobSpec } from '../../core/job/job'

/** A job without a wish. */
export const SPEC: JobSpec = {
  name: 'train',
  run: 'python3 train.py',
  inputs: [],
  resources: {},
  isInterruptible: true,
  checkpoint: {},
  backends: [],
  optimize: 'cost',
  retries: { failures: 0, interruptions: 10 },
  env: {},
  secrets: [],
  outputs: [],
}
