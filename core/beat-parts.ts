/** Parts of a beat that only people and views read. */

/** Progress of the runner in uploading files to the store. */
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

/** An action on the machine that keeps failing and is tried again. @public */
export interface Retrying {
  /** A clause for a person. */
  text: string
  /** Since when, by the runner's wall clock. */
  sinceMs: number
}

/** A run of an experiment tracker, such as MLflow or Weights & Biases. @public */
export interface TrackedRun {
  /** `mlflow`, `wandb`, or one of a later version, in lower-case words with dashes. */
  kind: string
  runId: string
  /** Address of the run's page; missing unless it is certain. */
  url?: string
}

const TRACKER_NAMES: Readonly<Record<string, string>> = { mlflow: 'MLflow', wandb: 'W&B' }

/** Returns the tracker's usual name. */
export function trackerName(kind: string): string {
  return TRACKER_NAMES[kind] ?? kind
}

/** Runs of experiment trackers, as beats and results report them. */
export interface TrackerNews {
  /** All known runs of the job, oldest first for each tracker; missing without any. */
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
