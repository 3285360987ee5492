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

/** How one attempt ended, derived from documents and provider once its machine is certainly gone. */
export type AttemptEnd =
  | { kind: 'succeeded' }
  /** Stopped on request, with what it had saved. `lease`: it fenced itself off during our outage. */
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
  /** The requested placement. */
  capacityType: CapacityType
  offerKey: string
  state: AttemptState
  reason: string
  /** As in its order. */
  expected?: Expected
  /** The actual placement; missing until the launch is confirmed. */
  realised?: RealisedOffer
  launchedAtMs?: number
  /** When billing began, if the machine may have been queued before. */
  billedFromAtMs?: number
  endedAtMs?: number
  costMicroUsd: MicroUsd
  /** `dearest`: an upper bound, because its prices are unknown. Missing until it has ended. */
  costBasis?: Metering['basis']
  restoredFrom?: Checkpoint
  /** Why that checkpoint, in one clause. */
  restoredBecause?: string
  /** The newest checkpoint when the attempt ended. */
  checkpoint?: Checkpoint
  checkpointState?: CheckpointState
  /** Its runner's last warning. */
  warning?: RunnerWarning
  /** The job's runs at experiment trackers, as its runner last knew them. */
  trackers?: TrackedRun[]
  progress?: Progress
  /** Steps done but not in any checkpoint when the attempt ended; null when steps are not known. */
  stepsLost?: number | null
  phases?: Phase[]
}

/** What the policy counts. Launches without capacity use up neither allowance, only time. */
export interface Ledger {
  attempts: number
  failures: number
  interruptions: number
  /** Consecutive failures that are unclassified, or that exhausted a machine's retries. */
  unclassified: number
  /** Consecutive launches without a machine. */
  misses: number
  /** Consecutive unreachable machines; missing if there was none. */
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
  /** An `offerKey`, or a `placeKey` for every offer there. */
  offerKey: string
  forMs: number
  /**
   * `capacity`: not chosen; capacity may return. `quota`: not chosen until a person raises the quota. `preference`: chosen only if there is
   * no other. `interruption`: expected to be interrupted again soon, and chosen if it is still the best.
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

/** A decision and the resulting ledger. */
export interface Verdict {
  decision: Decision
  ledger: Ledger
}
