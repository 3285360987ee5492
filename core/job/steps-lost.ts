import type { Checkpoint } from './checkpoint'
import type { Progress } from '../documents'

/** Facts about an attempt that has ended. */
export interface StepsAtEnd {
  /** Whether it ended with its work done, so that no step is repeated. */
  isDone: boolean
  progress: Progress | undefined
  restoredFrom: Checkpoint | undefined
  /** The newest complete one; none means step 0. */
  checkpoint: Checkpoint | undefined
  /** Whether the step of that checkpoint is a real step; false for a running number, which counts something different. */
  isCheckpointStepKnown: boolean
}

/** Steps that were done and must be repeated; null if unknown. Steps are compared with steps only. */
export function stepsLost(end: StepsAtEnd): number | null {
  const { isDone, progress, restoredFrom, checkpoint, isCheckpointStepKnown } = end
  if (isDone) return 0
  const step = progress?.step ?? null
  if (step === null || (checkpoint !== undefined && !isCheckpointStepKnown)) return null
  // A program that resumed from step 500 and reports 3 counts differently from its checkpoints.
  if (restoredFrom !== undefined && step < restoredFrom.step) return null
  return Math.max(0, step - (checkpoint?.step ?? 0))
}
