import type { TrackedRun } from '../beat-parts'
import type { Checkpoint, CheckpointState, RunnerWarning } from './checkpoint'
import type { Phase, Progress } from '../documents'
import type { DrainReason } from './drain'
import type { Metering } from '../money/meter'
import type { Failure } from '../failure'
import type { Expected } from './forecast'
import type { RealisedOffer } from '../handle'
import type { JobReason } from './job'
import type { MicroUsd } from '../money/money'
import type { BackendName, CapacityType } from '../offer'

/** How one attempt ended, derived from documents and provider after its machine has certainly ended. */
export type AttemptEnd =
  | { kind: 'succeeded' }
  /** Stopped on request, with what it had saved. `lease`: it fenced itself off during our outage. */
  | { kind: 'stopped'; by: DrainReason | 'lease' }
  | { kind: 'failed'; failure: Failure; isLaunched: boolean }

/** State of an attempt. An attempt that lost its machine is `interrupted`, not `failed`. */
export type AttemptState =
  'provisioning' | 'running' | 'stopping' | 'succeeded' | 'stopped' | 'interrupted' | 'failed'

/** A job's record of one attempt. */
export interface AttemptRecord {
  number: number
  attemptId: string
  workflowId: string
  backend: BackendName
  /** The requested placement. */
  capacityType: CapacityType
  offerKey: string
  state: AttemptState
  reason: string
  /** Expected cost and time, as in its order. */
  expected?: Expected
  /** The actual placement; missing until the launch is confirmed. */
  realised?: RealisedOffer
  launchedAtMs?: number
  /** When billing began, if the machine may have been queued before. */
  billedFromAtMs?: number
  endedAtMs?: number
  costMicroUsd: MicroUsd
  /** Basis of the cost; `dearest` is an upper bound, because prices are unknown. Missing until the attempt has ended. */
  costBasis?: Metering['basis']
  restoredFrom?: Checkpoint
  /** Why that checkpoint, in one clause. */
  restoredBecause?: string
  /** The newest checkpoint when the attempt ended. */
  checkpoint?: Checkpoint
  checkpointState?: CheckpointState
  /** Last warning of its runner. */
  warning?: RunnerWarning
  /** The job's runs at experiment trackers, as its runner last knew them. */
  trackers?: TrackedRun[]
  progress?: Progress
  /** Steps done but not in any checkpoint when the attempt ended; null when steps are not known. */
  stepsLost?: number | null
  phases?: Phase[]
}

/** Counters of the policy. Launches without capacity use up neither allowance, only time. */
export interface Ledger {
  attempts: number
  failures: number
  interruptions: number
  /** Consecutive failures that are unclassified or of damaged documents, or that exhausted a machine's retries. */
  unclassified: number
  /** Consecutive launches without a machine. */
  misses: number
  /** Number of consecutive unreachable machines; missing for none. */
  unreachable?: number
  spentMicroUsd: MicroUsd
}

export const EMPTY_LEDGER: Ledger = {
  attempts: 0,
  failures: 0,
  interruptions: 0,
  unclassified: 0,
  misses: 0,
  spentMicroUsd: 0,
}

/** A job's allowances. */
export interface Policy {
  failuresMax: number
  interruptionsMax: number
  unclassifiedMax: number
}

/** An offer that is avoided for a while. */
export interface Avoidance {
  /** An `offerKey`, or a `placeKey` that stands for every offer of a place. */
  offerKey: string
  forMs: number
  /**
   * Reason and effect. `capacity`: not chosen; capacity may return. `quota`: not chosen until a person raises the quota. `preference`:
   * chosen only as the last resort. `interruption`: expected to be interrupted again soon, and chosen if it is still the best.
   */
  why: 'capacity' | 'quota' | 'preference' | 'interruption'
}

/** Next step after an attempt. */
export type Decision =
  | { kind: 'finish'; state: 'succeeded' | 'failed' | 'cancelled'; reason: JobReason; message: string }
  | {
      kind: 'again'
      reason: JobReason
      message: string
      /** Pause before the next attempt. */
      afterMs: number
      avoid: Avoidance[]
    }

/** A decision and the resulting ledger. */
export interface Verdict {
  decision: Decision
  ledger: Ledger
}
