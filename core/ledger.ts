import type { Checkpoint, CheckpointState, RunnerWarning } from './checkpoint'
import type { Phase, Progress } from './documents'
import type { DrainReason } from './drain'
import type { Metering } from './meter'
import type { Failure } from './failure'
import type { RealisedOffer } from './handle'
import type { JobReason } from './job'
import type { MicroUsd } from './money'
import type { BackendName, CapacityType } from './offer'

/** How one attempt ended, worked out from documents and provider once its machine is certainly ended. */
export type AttemptEnd =
  | { kind: 'succeeded' }
  /** Asked to stop, and stopped with what it had saved. `lease`: it fenced itself off while we were away. */
  | { kind: 'stopped'; by: DrainReason | 'lease' }
  | { kind: 'failed'; failure: Failure; isLaunched: boolean }

/** Where an attempt is. Final states say how it ended; a lost machine is `interrupted`, not `failed`. */
export type AttemptState =
  'provisioning' | 'running' | 'stopping' | 'succeeded' | 'stopped' | 'interrupted' | 'failed'

/** One attempt as the job remembers it. */
export interface AttemptRecord {
  number: number
  attemptId: string
  workflowId: string
  backend: BackendName
  /** What was asked for. */
  capacityType: CapacityType
  offerKey: string
  state: AttemptState
  reason: string
  /** What was got; missing until the launch is confirmed. */
  realised?: RealisedOffer
  launchedAtMs?: number
  /** When billing began, if the machine may have been queued before. */
  billedFromAtMs?: number
  endedAtMs?: number
  costMicroUsd: MicroUsd
  /** `dearest`: nobody told its prices, and it cost that at most. Missing until it has ended. */
  costBasis?: Metering['basis']
  restoredFrom?: Checkpoint
  /** Why that one, in one clause. */
  restoredBecause?: string
  /** The newest checkpoint when the attempt ended. */
  checkpoint?: Checkpoint
  checkpointState?: CheckpointState
  /** What its runner warned of last. */
  warning?: RunnerWarning
  progress?: Progress
  /** Steps done but not in any checkpoint when the attempt ended; null when steps are not known. */
  stepsLost?: number | null
  phases?: Phase[]
}

/** What the policy counts. Capacity misses spend neither allowance, only time. */
export interface Ledger {
  attempts: number
  failures: number
  interruptions: number
  /** Failures in a row that nobody has classed, or that outlasted the patience of a machine. */
  unclassified: number
  /** Launches in a row that got no machine. */
  misses: number
  /** Machines in a row that were unreachable; missing where there was none. */
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

/** How much a job may go through. */
export interface Policy {
  failuresMax: number
  interruptionsMax: number
  unclassifiedMax: number
}

/** An offer that something stands against for a while. */
export interface Avoidance {
  /** An `offerKey`, or a `placeKey` for every offer there. */
  offerKey: string
  forMs: number
  /**
   * `capacity`: not chosen, it will come back. `quota`: not chosen, nor by itself to come back. `preference`: chosen only when there is no
   * other. `interruption`: reckoned to be taken back again soon, and chosen where it is still the best.
   */
  why: 'capacity' | 'quota' | 'preference' | 'interruption'
}

/** What happens after an attempt. */
export type Decision =
  | { kind: 'finish'; state: 'succeeded' | 'failed' | 'cancelled'; reason: JobReason; message: string }
  | {
      kind: 'again'
      reason: JobReason
      message: string
      /** How long to wait first. */
      afterMs: number
      avoid: Avoidance[]
    }

/** A decision and the ledger as it stands after it. */
export interface Verdict {
  decision: Decision
  ledger: Ledger
}
