/**
 * A drain makes an attempt save and stop within a time window. Cancel, migrate and the deadline are requests of the job, whose workflow
 * signals its attempt. The attempt adds its own reasons: its budget is reached, or its reservation ends. The machine reads all of them in
 * `drain.json`.
 */
import type { MachineHandle } from '../handle'
import type { Order } from './plan'

/** Reasons of the job, weakest first: a cancelled job is not migrated, but a job past its deadline may still be cancelled. */
export const JOB_DRAIN_REASONS = ['migrated', 'deadline', 'cancelled'] as const
export type JobDrainReason = (typeof JOB_DRAIN_REASONS)[number]

export const DRAIN_REASONS = [
  'cancelled',
  'migrated',
  'deadline',
  'budget',
  /** The job considers the attempt over, so a remaining machine must save and stop. */
  'superseded',
  /** The reservation of the machine ends. */
  'expired',
] as const
export type DrainReason = (typeof DRAIN_REASONS)[number]

/** A request to save and stop; also the signal to an attempt. */
export interface DrainRequest<Reason extends DrainReason = DrainReason> {
  reason: Reason
  /** Time for the workload to save and upload. 0 ends it at once. */
  windowMs: number
}

/**
 * `drain.json`: stop now. Put once by the control plane; overrides any lease; read before the workload starts. `drains/<seq>.json`, from 2
 * on: stop sooner than that. The reason `interrupted` is a rehearsal's, which simulates the provider's notice.
 */
export interface Drain {
  /** Increases with every shorter window; 1, which is `drain.json`, if missing. */
  seq?: number
  reason: DrainReason | 'interrupted'
  /** Time for the workload to save and upload, from the moment when the runner reads this. 0 ends it at once. */
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
  /** Use the next free number: the sender does not know how many requests an attempt had put before it was lost. */
  isNext?: boolean
}

export interface DrainMachineInput {
  order: Order
  handle: MachineHandle
  drain: Omit<Drain, 'requestedAtMs'>
  /** Time for the runner to obey the document before the backend signals the machine directly. */
  patienceMs: number
}
