import type { Drain } from './documents'

/** What the orchestrator is told of a request to stop that it puts for a machine. */
export interface DrainInput {
  jobId: string
  attempt: number
  drain: Omit<Drain, 'requestedAtMs'>
  /** The number is the next free one: who asks does not know how many requests the attempt had put before it was lost. */
  isNext?: boolean
}
