/** Parts of a beat that only people and views read. */

/** How far the runner is with saving files into the store. */
export interface UploadProgress {
  what: 'artifacts' | 'checkpoint'
  filesDone: number
  filesTotal: number
  /** Sent to the store. */
  bytesDone: number
  bytesTotal: number
  /** Bytes hashed, before they are sent; missing if hashing and sending are one step. */
  bytesRead?: number
}

/** A run of an experiment tracker, such as MLflow or Weights & Biases. @public */
export interface TrackedRun {
  /** `mlflow`, `wandb`, or one of a later version, in lower-case words with dashes. */
  kind: string
  runId: string
  /** Its page; missing unless that is certain. */
  url?: string
}

const TRACKER_NAMES: Readonly<Record<string, string>> = { mlflow: 'MLflow', wandb: 'W&B' }

/** As people call it. */
export function trackerName(kind: string): string {
  return TRACKER_NAMES[kind] ?? kind
}

/** What beats and results report about experiment trackers. */
export interface TrackerNews {
  /** All runs of the job that are known, oldest first for each tracker; missing without any. */
  trackers?: TrackedRun[]
}

export interface GpuUse {
  index: number
  name: string
  utilizationPercent: number
  memoryUsedMiB: number
  memoryTotalMiB: number
  /** The most that was in use since the runner started; missing from older runners. */
  memoryPeakMiB?: number
}
