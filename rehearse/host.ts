import type { ObjectStore } from '../storage/store'

/** Visible parts of an attempt. `folder`: also its directories while it writes them. `store`: only the uploads of its runner. */
export type Sight = 'folder' | 'store'

/** The two jobs of a rehearsal. */
export type Part = 'undisturbed' | 'interrupted'

/** A machine that works on one attempt. */
export interface Machine {
  jobId: string
  attempt: number
  /** The checkpoint and working directories, if they are readable. */
  folders?: { checkpoints: string; work: string }
}

/** Host of a rehearsal's attempts: this machine, or a backend of a deployment. */
export interface Host {
  readonly store: ObjectStore
  readonly sight: Sight
  /** Intervals for reading beats, for listing checkpoints, and for checking whether a machine is gone. */
  readonly pace: { pollMs: number; listMs: number; goneMs: number }
  /** Starts a job; returns its id. */
  begin(part: Part): Promise<string>
  /**
   * Returns the machine of the job's next attempt, after `before` of them. `undefined` if the job gets no other one before `untilMs`, or is
   * over.
   */
  next(jobId: string, before: number, untilMs: number): Promise<Machine | undefined>
  /** Interrupts a machine as a provider does: immediately, or after a notice. */
  strike(machine: Machine, noticeMs: number | null): Promise<void>
  /** Ends the attempt and its job, once the rehearsal has seen enough. */
  stop(machine: Machine): Promise<void>
  isGone(machine: Machine): Promise<boolean>
  /** Removes the leftovers of an attempt. */
  clear(machine: Machine): Promise<void>
  /** Ends the job; afterwards no process of it runs. */
  end(jobId: string): Promise<void>
}
