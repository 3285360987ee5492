import type { SaveSignal } from './checkpoint'
import type { ImageLogin, InputFile, RebalanceAnswer } from '../documents'
import type { MicroUsd } from '../money/money'
import type { BackendChoice, Isolation } from '../offer'
import type { OwnTags } from '../own-tags'
import type { ResourceRequest } from '../resources'
import type { WorkFamily } from '../speed'

/** Objectives of a job when several offers can run it. */
export const OBJECTIVES = ['cost', 'time', 'reliability', 'balanced'] as const
export type Objective = (typeof OBJECTIVES)[number]

/** Risks of an offer that a job's owner must accept explicitly. */
export const ACCEPTANCES = ['preemptible-on-demand', 'billed-until-terminated'] as const
/** @public */
export type Acceptance = (typeof ACCEPTANCES)[number]

/** Hardware of private owners is only for jobs that ask for it. */
export const ISOLATION_DEFAULT: Isolation = 'shared'

/** A setting that its owner left open and that was read from the program. @public */
export interface InferredSetting {
  /** Name of the field as in the job file: `resources.gpus`. */
  field: string
  value: string
  /** Completes "because ...". */
  reason: string
  /** Place in the program's source, `train.py:12`; null if no line says it. */
  from: string | null
  /** Confidence from 0 to 1. */
  confidence: number
}

/** The user's job, checked and with units resolved, as JSON: the input of the job workflow. @public */
export interface JobSpec {
  /** Name for people; not unique. `[a-z0-9-]`, at most 40 characters. */
  name: string
  /** Shell command line(s), run in the working directory. */
  run: string
  /** The program that runs `run` and `setup`, with its options; `bash -eo pipefail` if missing, or `sh -e` without bash. */
  shell?: string
  /** Shell commands that run before `run` on every machine, timed as a separate stage. */
  setup?: string
  /** Container image; without one the command runs on the bare machine. */
  image?: string
  /** Login for its registry, if needed. */
  imageLogin?: ImageLogin
  inputs: InputFile[]
  resources: ResourceRequest
  /** The user's estimate of the whole training time. */
  durationMs?: number
  /** The accelerator that this estimate refers to, by its name in Crucible; the planner assumes one if missing. */
  durationOn?: string
  /** Kind of training, for the speed of accelerators; if missing, the planner assumes any kind. */
  workFamily?: WorkFamily
  /** True when the job may run on capacity that can be taken back. */
  isInterruptible: boolean
  /** The strictest sharing that it requires; `ISOLATION_DEFAULT` if missing. */
  isolation?: Isolation
  /** Risks that its owner accepts; some offers require that. */
  accepts?: Acceptance[]
  checkpoint: {
    directory?: string
    everyMs?: number
    /** The user's estimate of its size. */
    sizeBytes?: number
    /** Globs of the files that prove a checkpoint complete; all must match. */
    complete?: string[]
    /** Globs of what belongs to a checkpoint; everything if missing. */
    include?: string[]
    /** Globs of what never belongs to one. */
    exclude?: string[]
    /** Replaces the worker's default. */
    quietMs?: number
    /** Signal that makes the program save before its machine is taken; SIGTERM if missing. */
    signal?: SaveSignal
    /** Number of complete checkpoints to keep; by default `CHECKPOINTS_KEPT`, and `CHECKPOINTS_KEPT_AT_END` once the job has ended. */
    keep?: number
  }
  /** `save` if missing. */
  onRebalance?: RebalanceAnswer
  /** Time by which the job must be over and its machine off. */
  deadlineAtMs?: number
  /** Cost limit over all attempts of the job. */
  budgetMicroUsd?: MicroUsd
  /** Allowed backends; empty for every configured one. */
  backends: BackendChoice[]
  /** The Regions or zones that it may run in; missing for any. */
  regions?: string[]
  /** The only reservation that it may run in: its id in Crucible (`res-...`), or the provider's. */
  reservation?: string
  /** `false` keeps it out of all reserved capacity. */
  usesReserved?: boolean
  /** The most that an hour of its machine may cost. */
  priceMaxMicroUsdPerHour?: MicroUsd
  optimize: Objective
  retries: {
    /** Number of restarts of a failed workload. */
    failures: number
    /** Number of machines that the job may lose. */
    interruptions: number
  }
  env: Record<string, string>
  /** Names of the secrets that the workload gets as environment variables. */
  secrets: string[]
  /** Paths or globs under the working directory that are kept as artifacts. */
  outputs: string[]
  /** A program that succeeds without one of `outputs` has failed. */
  requiresOutputs?: boolean
  /** Tags on its machines and disks where the provider has tags, and in its costs. */
  tags?: OwnTags
  /** Settings above that were read from the program at the submission; missing without any. */
  inferred?: InferredSetting[]
}

/** Names of all secrets that the machine needs, the workload's own first. */
export function secretsNeeded({ secrets, imageLogin }: Pick<JobSpec, 'secrets' | 'imageLogin'>): string[] {
  return imageLogin === undefined ? secrets : [...new Set([...secrets, imageLogin.secret])]
}

/** The user's code, packed. */
export interface BundleRef {
  /** Digest of its bytes, times of the files included; part of its key in the store. */
  sha256: string
  /**
   * Digest of the files alone, equal for every copy of the same code: see `codeDigest`. Missing for a bundle of a version without it.
   */
  contentSha256?: string
  sizeBytes: number
  files: number
  /**
   * Lines of the bundle's requirements file that `setup` installs with pip; missing without such a file, or if it has more than names with
   * versions.
   */
  requirements?: string[]
}

/** The digest by which code is compared: other times of the files are not other code. */
export function codeDigest({ contentSha256, sha256 }: Pick<BundleRef, 'contentSha256' | 'sha256'>): string {
  return contentSha256 ?? sha256
}

/** States of a job; the reason explains the state. @public */
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
  'saving',
  'finishing',
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
  'damaged',
  'unclassified',
] as const
/** @public */
export type JobReason = (typeof JOB_REASONS)[number]
