import type { ObjectStore } from '../storage/store'

/**
 * What can be seen of an attempt. `folder`: also its directories, while it writes them. `store`: only what its runner has put into the
 * store.
 */
export type Sight = 'folder' | 'store'

/** The two jobs of a rehearsal. */
export type Part = 'undisturbed' | 'interrupted'

/** A machine that works on one attempt. */
export interface Machine {
  jobId: string
  attempt: number
  /** Its checkpoint directory and its working directory, where they can be looked into. */
  folders?: { checkpoints: string; work: string }
}

/** Where the attempts of a rehearsal run: this machine, or a backend of a deployment. */
export interface Host {
  readonly store: ObjectStore
  readonly sight: Sight
  /** Pauses between two looks at beats, at the lists of checkpoints, and at whether a machine is gone. */
  readonly pace: { lookMs: number; listMs: number; goneMs: number }
  /** Begins a job; answers its id. */
  begin(part: Part): Promise<string>
  /**
   * The machine of the job's next attempt, after `before` of them. `undefined` where the job gets no other one before `untilMs`, or is
   * over.
   */
  next(jobId: string, before: number, untilMs: number): Promise<Machine | undefined>
  /** Takes a machine back as a provider does: at once, or after a notice. */
  strike(machine: Machine, noticeMs: number | null): Promise<void>
  /** Ends the attempt, and the job with it: enough was seen. */
  stop(machine: Machine): Promise<void>
  isGone(machine: Machine): Promise<boolean>
  /** Removes what an attempt has left. */
  clear(machine: Machine): Promise<void>
  /** Nothing of the job runs any more afterwards. */
  end(jobId: string): Promise<void>
}
