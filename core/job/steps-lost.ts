import type { Checkpoint } from './checkpoint'
import type { Progress } from '../documents'

/** What is known about an attempt that has ended. */
export interface StepsAtEnd {
  /** It ended because its work was done, so nothing of it is ever repeated. */
  isDone: boolean
  progress: Progress | undefined
  restoredFrom: Checkpoint | undefined
  /** The newest complete one; none means step 0. */
  checkpoint: Checkpoint | undefined
  /** False if the step of that checkpoint is a running number, which counts something else. */
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
