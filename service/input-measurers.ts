import type { Measurer } from '../activities/plan/input-sizes'
import { measureSource, S3_SERVER_ENV } from '../storage/s3/object-sizes'

/** Measures the inputs of jobs, by the scheme of their URL. */
export const INPUT_MEASURERS: Readonly<Record<string, Measurer>> = {
  's3:': { measure: measureSource, serverEnv: S3_SERVER_ENV },
}
