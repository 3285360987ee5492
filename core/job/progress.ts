/** Progress of a training. Each unit has its own fields, because steps are compared only with steps (docs/reference/progress.md). */
export interface Progress {
  /** Step of the whole training; null if not certain. */
  step: number | null
  stepsTotal: number | null
  loss: number | null
  /** The epoch as the program counts it, from 0 or 1; a fraction if the program prints one. Missing if unknown. */
  epoch?: number
  epochsTotal?: number
  /** Progress within the epoch, or of a progress bar whose unit is unknown. */
  batch?: number
  batchesTotal?: number
  /** Percentage of the whole training, from 0 to 100; missing if unknown. */
  percent?: number
  /** The runner's wall clock when it read this. */
  atMs: number
}
