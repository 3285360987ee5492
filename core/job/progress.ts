/** How far a training run is. Each unit has its own fields: steps are compared with steps only (docs/reference/progress.md). */
export interface Progress {
  /** Steps of the whole training and nothing else; null if not known for certain. */
  step: number | null
  stepsTotal: number | null
  loss: number | null
  /** The epoch as the program counts it, from 0 or 1; a fraction if the program prints one. Missing if unknown. */
  epoch?: number
  epochsTotal?: number
  /** What is done of the epoch, or of a progress bar whose unit is unknown. */
  batch?: number
  batchesTotal?: number
  /** Of the whole training, from 0 to 100; missing if unknown. */
  percent?: number
  /** The runner's wall clock when it read this. */
  atMs: number
}
