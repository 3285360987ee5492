import { HOUR_MS, MINUTE_MS, SECOND_MS } from './time'

/** Durations of an attempt's life, except the provider's. They are fixed when the job is resolved, so a running job keeps its own. */
export interface Timing {
  /** How long a machine may continue without a renewal of its lease. */
  leaseMs: number
  /** Time from the stop request until the workload is killed, uploads included. */
  drainMs: number
  /** Time at the end of every limit that is reserved for the result and the power-off. */
  powerOffMs: number
  /** Interval of `beat.json`. */
  beatMs: number
  /** A checkpoint directory that is unchanged for this long is complete. */
  checkpointQuietMs: number
  /** A machine whose runner starts later than this after its order must not run the workload. */
  startWithinMs: number
  /** How long an accepted launch may wait in the provider's queue; then it counts as missing capacity. */
  queueMs: number
  /** How long a machine waits for an image pull without progress. */
  registryMs: number
  /** Longest silence of the runner of an existing machine, while provider and store answer, before its attempt is ended. */
  silenceMs: number
  /** Interval at which a watch asks the provider about its machines. */
  observeMs: number
  /** Two observations at least this far apart must agree before a machine counts as gone. */
  goneConfirmMs: number
  /** Maximum size of one artifact, fixed together with the durations; the runner's default if missing. */
  artifactGiBMax?: number
}

/** Time from the stop request until the machine is off; the runner reserves it at the end of every limit. */
export function stoppingMs({ drainMs, powerOffMs }: Pick<Timing, 'drainMs' | 'powerOffMs'>): number {
  return drainMs + powerOffMs
}

/** A rehearsal sees the steps of its jobs only in their beats. */
export function rehearsalTiming(timing: Timing): Timing {
  return { ...timing, beatMs: Math.min(timing.beatMs, SECOND_MS) }
}

/** Faster timing for a store on this machine, where documents cost nothing to write or read. */
export const FILE_STORE_PACE: Pick<Timing, 'beatMs' | 'observeMs' | 'checkpointQuietMs' | 'goneConfirmMs'> = {
  beatMs: SECOND_MS,
  observeMs: SECOND_MS / 2,
  checkpointQuietMs: SECOND_MS,
  goneConfirmMs: SECOND_MS,
}

export const DEFAULT_TIMING: Required<Omit<Timing, 'artifactGiBMax'>> & Timing = {
  // An outage of the control plane over a working day's afternoon must not cost a healthy job.
  leaseMs: 6 * HOUR_MS,
  // A provider's notice is two minutes; ten seconds pass before the runner has read it.
  drainMs: 110 * SECOND_MS,
  powerOffMs: 10 * SECOND_MS,
  beatMs: 5 * SECOND_MS,
  checkpointQuietMs: 2 * SECOND_MS,
  startWithinMs: HOUR_MS,
  queueMs: 15 * MINUTE_MS,
  registryMs: 10 * MINUTE_MS,
  silenceMs: 30 * MINUTE_MS,
  observeMs: 2 * SECOND_MS,
  goneConfirmMs: 2 * SECOND_MS,
}
