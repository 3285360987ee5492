/** Size of one input, measured before the job starts. */
export interface InputSize {
  source: string
  sizeBytes: number
  /** The Region of its bucket; missing for a bucket outside AWS. */
  region?: string
}
