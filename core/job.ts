import type { SaveSignal } from './checkpoint'
import type { ImageLogin, InputFile, RebalanceAnswer } from './documents'
import type { MicroUsd } from './money'
import type { BackendChoice, Isolation } from './offer'
import type { ResourceRequest } from './resources'

/** What a job optimises for when several offers can run it. */
export const OBJECTIVES = ['cost', 'time', 'reliability'] as const
export type Objective = (typeof OBJECTIVES)[number]

/** What a job's owner may accept of an offer, and no job does unless told. */
export const ACCEPTANCES = ['preemptible-on-demand', 'billed-until-terminated'] as const
/** @public */
export type Acceptance = (typeof ACCEPTANCES)[number]

/** Hardware of private owners is only for jobs that ask for it. */
export const ISOLATION_DEFAULT: Isolation = 'shared'

/** What the user wrote, checked and with units resolved. JSON; the input of the job workflow. @public */
export interface JobSpec {
  /** For people; not unique. `[a-z0-9-]`, at most 40 characters. */
  name: string
  /** Shell command line(s), run by `sh` in the working directory. */
  run: string
  /** Shell command line(s) run before it on every machine, timed as a stage of its own. */
  setup?: string
  /** Container image; the command runs on the bare machine when missing. */
  image?: string
  /** Where its registry wants one. */
  imageLogin?: ImageLogin
  inputs: InputFile[]
  resources: ResourceRequest
  /** The user's estimate of the whole training time. */
  durationMs?: number
  /** True when the job may run on capacity that can be taken back. */
  isInterruptible: boolean
  /** The least that it needs; `ISOLATION_DEFAULT` when missing. */
  isolation?: Isolation
  /** Risks that its owner takes, of which some offers need to be allowed. */
  accepts?: Acceptance[]
  checkpoint: {
    directory?: string
    everyMs?: number
    /** The user's estimate of how big one is. */
    sizeBytes?: number
    /** Globs of the files that prove a checkpoint complete; all must be there. */
    complete?: string[]
    /** Globs of what is part of a checkpoint; everything when missing. */
    include?: string[]
    /** Globs of what is never part of one. */
    exclude?: string[]
    /** In the place of the worker's default. */
    quietMs?: number
    /** What asks the program to save before its machine goes; SIGTERM when missing. */
    signal?: SaveSignal
    /** How many complete checkpoints stay; `CHECKPOINTS_KEPT` when missing, and `CHECKPOINTS_KEPT_AT_END` once the job has ended. */
    keep?: number
  }
  /** `save` when missing. */
  onRebalance?: RebalanceAnswer
  /** By when the job must be over; the machine is off by then. */
  deadlineAtMs?: number
  /** What the job may cost in all, over all its attempts. */
  budgetMicroUsd?: MicroUsd
  /** Where it may run; empty means everywhere that is configured. */
  backends: BackendChoice[]
  optimize: Objective
  retries: {
    /** How often a failed workload is started again. */
    failures: number
    /** How often the job may lose its machine. */
    interruptions: number
  }
  env: Record<string, string>
  /** Names of secrets that the workload gets as environment variables. */
  secrets: string[]
  /** Paths or globs under the working directory kept as artifacts. */
  outputs: string[]
}

/** Every secret whose value the machine needs, the workload's own first. */
export function secretsNeeded({ secrets, imageLogin }: Pick<JobSpec, 'secrets' | 'imageLogin'>): string[] {
  return imageLogin === undefined ? secrets : [...new Set([...secrets, imageLogin.secret])]
}

/** The user's code, packed. */
export interface BundleRef {
  sha256: string
  sizeBytes: number
  files: number
}

/** Where a job is. Why it is there is the reason. @public */
export const JOB_STATES = [
  'pending',
  'provisioning',
  'running',
  'recovering',
  'stopping',
  'succeeded',
  'failed',
  'cancelled',
] as const
/** @public */
export type JobState = (typeof JOB_STATES)[number]

/** Legal next states. A state without any is final. */
export const JOB_TRANSITIONS: Readonly<Record<JobState, readonly JobState[]>> = {
  pending: ['provisioning', 'running', 'stopping', 'failed', 'cancelled'],
  provisioning: ['running', 'recovering', 'stopping', 'succeeded', 'failed', 'cancelled'],
  running: ['recovering', 'stopping', 'succeeded', 'failed', 'cancelled'],
  recovering: ['provisioning', 'running', 'stopping', 'failed', 'cancelled'],
  stopping: ['recovering', 'succeeded', 'failed', 'cancelled'],
  succeeded: [],
  failed: [],
  cancelled: [],
}

/** @public */
export function isFinal(state: JobState): boolean {
  return JOB_TRANSITIONS[state].length === 0
}

/** Why a job is in its state. @public */
export const JOB_REASONS = [
  'submitted',
  'planning',
  'waiting-for-capacity',
  'under-way',
  'launching',
  'queued',
  'starting',
  'training',
  'interrupted',
  'workload-failed',
  'machine-lost',
  'lease-lapsed',
  'migrating',
  'attempt-ended-by-hand',
  'reservation-ended',
  'run-limit-reached',
  'launch-refused',
  'unreachable',
  'cancelling',
  'deadline-reached',
  'budget-reached',
  'completed',
  'cancelled',
  'no-placement',
  'quota',
  'auth',
  'invalid',
  'unclassified',
] as const
/** @public */
export type JobReason = (typeof JOB_REASONS)[number]
