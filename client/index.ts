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
} from './job/job-view'
export {
  fieldsOf,
  formatProblem,
  parseJobFile,
  parseJobObject,
  type Job,
  type JobFields,
  type JobOrProblems,
  type Problem,
} from './job/file'
export type { ArtifactFilter, ArtifactView, DownloadOptions } from './job/artifacts'
export type { CheckpointVerdict, CheckpointView } from './job/checkpoints'
export type { CheckpointDownload, DownloadedCheckpoint } from './job/download-checkpoint'
export type { JobEvent } from './job/events'
export type { ExpiredRun, GarbageOptions, GarbageRun, LastCollection } from './garbage'
export type { ListFilter } from './job/list'
export type { JobLogLine, LogOptions } from './job/logs'
export type { Submission, Submitted } from './job/submit'
export type { WatchOptions } from './job/watch'
export {
  isFinal,
  JOB_REASONS,
  JOB_STATES,
  type Acceptance,
  type JobReason,
  type JobSpec,
  type JobState,
} from '../core/job/job'
export type {
  ExtendUpdate,
  GarbageCollectionResult,
  GarbageVerdict,
  JobSource,
  UpdateReceipt,
} from '../core/messages'
export type { Checkpoint } from '../core/job/checkpoint'
export type { Continuation } from '../core/job/continuation'
export type { MicroUsd } from '../core/money/money'
export type { BackendChoice, BackendName, CapacityType, Isolation } from '../core/offer'
export type { Placement, PlacementInShort, PlanReport, RejectionCode, RejectionGroup } from '../core/job/plan'
export type { Relaxation } from '../core/job/relaxation'
export type { RecordEntry } from '../core/job/record'
export type { WhatIf } from '../core/job/what-if'
export type { JobExplained, WhatIfAnswer } from '../core/job/why'
export type { TreasuryView } from '../core/money/treasury'
export type { CostQuestion, Costs } from './costs'
