/** One input of a job as measured before the job starts. */
export interface InputSize {
  source: string
  sizeBytes: number
  /** The Region of its bucket; missing for a bucket outside AWS. */
  region?: string
}
