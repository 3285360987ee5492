/** Observations of a program in a rehearsal, as plain data: the input of its judgement. */
import type { TrackedRun } from '../core/beat-parts'
import type { Checkpoint, CheckpointState, Evidence, RestoreOutcome } from '../core/job/checkpoint'
import type { Sight } from './host'
import type { Kept } from './kept'
import type { ResultReason, RunnerResult } from '../core/documents'

/** A step of the program, and its loss, when the runner first saw them. */
export interface RehearsedStep {
  step: number
  loss: number | null
  atMs: number
}

export interface RehearsedFile {
  path: string
  sizeBytes: number
  digest: string
  modifiedAtMs?: number
}

/** A checkpoint as a manifest describes it. */
export interface RehearsedCheckpoint extends Checkpoint {
  revision: number
  state: CheckpointState
  evidence: Evidence
  savedAtMs: number
  saveMs?: number
  totalBytes: number
  files: RehearsedFile[]
}

export interface RehearsedRestore {
  /** The exact revision that was restored. */
  checkpoint: RehearsedCheckpoint
  atMs: number
  outcome: RestoreOutcome
  /** Error of the program afterwards. */
  message: string | null
}

/** Moments of an interruption in the program's cycle of training and saving. */
export type Moment = 'before-first-save' | 'during-save' | 'after-save' | 'between-saves'

export interface Strike {
  moment: Moment
  /** `kill`: no notice. `notice`: the provider's notice comes first. */
  manner: 'kill' | 'notice'
}

export interface StrikeDone extends Strike {
  /** False if the moment did not come in time, and the machine was interrupted at another one. */
  isAtMoment: boolean
  atMs: number
  /** Time from the notice to the end of the machine; 0 without a notice. */
  noticeMs: number
}

/** How a program ended. */
type RehearsedEnd = Pick<RunnerResult, 'outcome' | 'message' | 'exitCode'> & { reason: ResultReason }

export interface RehearsedAttempt {
  number: number
  beganAtMs: number
  endedAtMs: number
  steps: RehearsedStep[]
  /** Restores in order of time; several if the program failed and was given the previous checkpoint. */
  restores: RehearsedRestore[]
  /** Checkpoints of this attempt, oldest first, each as in its last manifest. */
  saved: RehearsedCheckpoint[]
  strike: StrikeDone | null
  /** End of the program; missing if the machine was interrupted without notice. */
  end: RehearsedEnd | null
  /** The runner's last warning. */
  warning: string | null
  /** The job's runs at experiment trackers, as its runner knew them; missing without any. */
  trackers?: TrackedRun[]
}

/** One job from its start to its last attempt. */
export interface RehearsedLife {
  attempts: RehearsedAttempt[]
  /** The last attempt's outputs by path, with their digests; empty unless the program succeeded. */
  outputs: Record<string, string>
  /** Files that the last attempt left in its checkpoint directory; missing if this process cannot read them. */
  kept?: Kept
}

/** A file that the program wrote outside its checkpoint directory, and that looks like a checkpoint. */
export interface OutsideFile {
  /** Relative to the working directory. */
  path: string
  sizeBytes: number
  /** The line of the job's code that names it, such as `train.py:8`; missing if uncertain. */
  line?: string
}

export interface RehearsalFacts {
  /** `checkpoint.directory` of the job. */
  directory: string | null
  /** The job without any interruption. */
  undisturbed: RehearsedLife
  interrupted: RehearsedLife
  outside: OutsideFile[]
  /** `folder` when missing. */
  sight?: Sight
  /** Time that this machine spent on it. */
  tookMs: number
}

export function lastOf(life: RehearsedLife): RehearsedAttempt | undefined {
  return life.attempts.at(-1)
}

/** The one that followed; numbers of machines that never worked are left out. */
export function attemptAfter({ attempts }: RehearsedLife, number: number): RehearsedAttempt | undefined {
  return attempts[attempts.findIndex((each) => each.number === number) + 1]
}

/** Whether the program itself succeeded. */
export function isDone(life: RehearsedLife): boolean {
  return lastOf(life)?.end?.outcome === 'succeeded'
}

/** The step of a checkpoint: from its name, otherwise the program's step when it was written. */
export function stepOf(checkpoint: RehearsedCheckpoint, life: RehearsedLife): number | null {
  if (checkpoint.isStepKnown !== false) return checkpoint.step
  const attempt = life.attempts.find(({ number }) => number === checkpoint.attempt)
  return attempt?.steps.findLast(({ atMs }) => atMs <= checkpoint.savedAtMs)?.step ?? null
}
