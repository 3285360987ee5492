/** The TypeScript API of Crucible: everything that other packages can import (docs/reference/typescript.md). */
export { createClient, Crucible } from './crucible'
export { readClientConfig, type ClientConfig } from './config'
export { CrucibleError, EXIT_CODES, type ErrorKind } from './errors'
export type {
  AttemptView,
  CostView,
  JobSummary,
  JobView,
  PlacementView,
  ProgressView,
  RecoveryView,
  TroubleView,
} from './job-view'
export {
  fieldsOf,
  formatProblem,
  parseJobFile,
  parseJobObject,
  type Job,
  type JobFields,
  type JobOrProblems,
  type Problem,
} from './job-file'
export type { ArtifactFilter, ArtifactView, DownloadOptions } from './artifacts'
export type { CheckpointVerdict, CheckpointView } from './checkpoints'
export type { CheckpointDownload, DownloadedCheckpoint } from './download-checkpoint'
export type { JobEvent } from './events'
export type { GarbageOptions, GarbageRun, LastCollection } from './garbage'
export type { ListFilter } from './list'
export type { JobLogLine, LogOptions } from './logs'
export type { Submission, Submitted } from './submit'
export type { WatchOptions } from './watch'
export {
  isFinal,
  JOB_REASONS,
  JOB_STATES,
  type Acceptance,
  type JobReason,
  type JobSpec,
  type JobState,
} from '../core/job'
export type {
  ExtendUpdate,
  GarbageCollectionResult,
  GarbageVerdict,
  JobSource,
  UpdateReceipt,
} from '../core/messages'
export type { Checkpoint } from '../core/checkpoint'
export type { Continuation } from '../core/continuation'
export type { MicroUsd } from '../core/money'
export type { BackendChoice, BackendName, CapacityType, Isolation } from '../core/offer'
export type { Placement, PlacementInShort, PlanReport, RejectionCode, RejectionGroup } from '../core/plan'
export type { Relaxation } from '../core/relaxation'
export type { RecordEntry } from '../core/record'
export type { TreasuryView } from '../core/treasury'
