import type { Drain } from './documents'
import type { MachineHandle } from './handle'
import type { DrainRequest } from './messages'
import type { Order } from './plan'

/** What the orchestrator is told of a request to stop that it puts for a machine. */
export interface DrainInput {
  jobId: string
  attempt: number
  drain: Omit<Drain, 'requestedAtMs'>
  /** The number is the next free one: who asks does not know how many requests the attempt had put before it was lost. */
  isNext?: boolean
}

/** Which attempt is to save and stop, and within which window. */
export interface StopAttemptInput {
  jobId: string
  attempt: number
  request: DrainRequest
}

export interface DrainMachineInput {
  order: Order
  handle: MachineHandle
  drain: Omit<Drain, 'requestedAtMs'>
  /** From the document until the machine is told another way. */
  patienceMs: number
}
