/**
 * Drain: to save and stop within a time window. Cancel, migrate and the deadline are requests of the job, which the job's workflow
 * signals to its attempt. The attempt adds what only it learns: its budget is reached, or its reservation ends. Whatever the reason,
 * the machine reads it in `drain.json`.
 */
import type { MachineHandle } from './handle'
import type { Order } from './plan'

/** Why a job asks, weakest first: a cancelled job is not migrated, but a job past its deadline may still be cancelled. */
export const JOB_DRAIN_REASONS = ['migrated', 'deadline', 'cancelled'] as const
export type JobDrainReason = (typeof JOB_DRAIN_REASONS)[number]

export const DRAIN_REASONS = [
  'cancelled',
  'migrated',
  'deadline',
  'budget',
  /** The attempt is over as far as the job knows; whatever still runs must save and stop. */
  'superseded',
  /** The reservation of the machine ends. */
  'expired',
] as const
export type DrainReason = (typeof DRAIN_REASONS)[number]

/** A request to save and stop; also the signal to an attempt. */
export interface DrainRequest<Reason extends DrainReason = DrainReason> {
  reason: Reason
  /** Time for the workload to save and for the upload. 0 ends it at once. */
  windowMs: number
}

/**
 * `drain.json`: stop now. Put once by the control plane; beats any lease; read before the workload starts. `drains/<seq>.json`, from 2 on:
 * stop sooner than that. The reason `interrupted` is a rehearsal's, which plays the provider's notice.
 */
export interface Drain {
  /** Counts up with every shorter window; 1, which `drain.json` is, where it is missing. */
  seq?: number
  reason: DrainReason | 'interrupted'
  /** Time for the workload to save and for the upload, from when the runner reads this. 0 ends it at once. */
  windowMs: number
  requestedAtMs: number
}

/** The request to signal to an attempt. */
export interface StopAttemptInput {
  jobId: string
  attempt: number
  request: DrainRequest
}

/** The document to put for a machine. */
export interface DrainInput {
  jobId: string
  attempt: number
  drain: Omit<Drain, 'requestedAtMs'>
  /** Take the next free number: the sender does not know how many requests an attempt had put before it was lost. */
  isNext?: boolean
}

export interface DrainMachineInput {
  order: Order
  handle: MachineHandle
  drain: Omit<Drain, 'requestedAtMs'>
  /** How long to wait for the runner to obey the document before the machine is told in another way. */
  patienceMs: number
}
