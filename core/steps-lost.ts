import type { Checkpoint } from './checkpoint'
import type { Progress } from './documents'

/** What is known of an attempt that has ended. */
export interface StepsAtEnd {
  /** It ended because its work was done, so that nothing of it is ever done again. */
  isDone: boolean
  progress: Progress | undefined
  restoredFrom: Checkpoint | undefined
  /** The newest complete one; none stands for step 0. */
  checkpoint: Checkpoint | undefined
  /** False where the step of that checkpoint is a running number, which counts something else. */
  isCheckpointStepKnown: boolean
}

/** Steps that were done and that somebody must do again; null where that is not known. Steps are compared with steps only. */
export function stepsLost(end: StepsAtEnd): number | null {
  const { isDone, progress, restoredFrom, checkpoint, isCheckpointStepKnown } = end
  if (isDone) return 0
  const step = progress?.step ?? null
  if (step === null || (checkpoint !== undefined && !isCheckpointStepKnown)) return null
  // A program that went on from step 500 and says 3 counts in another way than its checkpoints.
  if (restoredFrom !== undefined && step < restoredFrom.step) return null
  return Math.max(0, step - (checkpoint?.step ?? 0))
}
