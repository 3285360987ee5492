/** How the workload of one scripted machine runs, and what goes wrong with it. Steps are absolute, counted from 0. */
export interface Behaviour {
  stepsTotal: number
  stepsPerSecond: number
  /** 0 for no checkpoints. */
  checkpointEverySteps: number
  /** How long the workload takes to save once it is asked to stop. */
  savesInMs: number
  /** Continues as if it was never asked to stop, until it is killed. */
  isDeaf: boolean
  /** Accepted by the provider, and never boots. */
  neverBoots: boolean
  /** Boots, and its runner never speaks. */
  neverStarts: boolean
  /** The workload ends with this exit code instead of doing the step after. */
  fails?: { atStep: number; exitCode: number }
  /** Its runner reports the first step, from which a pace is measured. */
  tellsFirstStep?: boolean
  /** Its image cannot be had: why. */
  lacksImage?: 'image' | 'image-login' | 'registry'
  /** The runner is of a version that knows nothing of reservations that end. */
  ignoresExpiry?: boolean
  /** From and until which steps its runner warns that no checkpoint comes. */
  warns?: { fromStep: number; untilStep: number }
  /** The machine is gone without a word. */
  diesAtStep?: number
  /** The machine loses its network: it works on unseen, until its lease lapses or its limits are reached. */
  silentAtStep?: number
  /** The runner stops for good while its machine lives. */
  hangsAtStep?: number
  /** The checkpoint of this step never gets its manifest, or gets one that its files do not match. */
  torn?: { atStep: number; how: 'no-manifest' | 'wrong-bytes' }
}

/** A hundred steps in two seconds, saved ten times, with nothing wrong. */
export const STEADY: Behaviour = {
  stepsTotal: 100,
  stepsPerSecond: 50,
  checkpointEverySteps: 10,
  savesInMs: 0,
  isDeaf: false,
  neverBoots: false,
  neverStarts: false,
}
