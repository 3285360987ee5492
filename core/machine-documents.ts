/** Documents about one machine of an attempt (`documents.ts`): its claim, the start of its billing, and its hand-over at the launch. */
import type { MachineHandle } from './handle'

/** `claim.json`: the machine that owns the attempt. Put once, by the first machine to claim it; never deleted. */
export interface Claim {
  /** The provider's id of the machine, as in its handle, or a name made up by the runner if it does not know that id. */
  machine: string
  /** The name of the send that made the machine, if the runner knows it. */
  send?: string
}

/**
 * `billing.json`: since when the machine is billed, for providers that may queue a launch (`RunnerOrder.queueMs`). Only the watch writes
 * it: when it first sees the machine, and again when billing has begun.
 */
export interface Billing {
  /** The provider's id of the machine. */
  machine: string
  /** Time at or before the real start of billing; null while the machine waits in the queue. */
  fromAtMs: number | null
}

/**
 * `ended/<machine>.json`: a machine that was ended outside of its attempt's settlement, such as a duplicate, or whose provider does not report
 * when it ended. It is billed, and its provider may have forgotten it.
 */
export interface EndedMachine {
  handle: MachineHandle
  /** Time at or after the real end of billing; null while the machine is being ended. */
  endedAtMs: number | null
}

/** Prefix of a machine name made up by the runner. No provider knows it; the claim's `send` may identify the machine. */
export const UNNAMED_MACHINE = 'unnamed-'

/**
 * Document that the bootstrap of a machine reads once (docs/reference/runner-protocol-store.md, "Hand-over"), sealed with the key of its
 * send.
 */
export interface HandOverDocument {
  version: 1
  jobId: string
  attempt: number
  attemptId: string
  /** The object store as the machine reaches it. */
  storeUrl: string
  runnerSha256: string
  runnerUrl: string
  /** Deletes this document. */
  deleteUrl: string
  /** The attempt's key, 64 hex digits. */
  key: string
  /** The text of the file with the first grant, sealed with the attempt's key; null for a store without credentials. */
  grant: string | null
  /** Additional variables of the runner's environment. */
  environment?: Record<string, string>
  /** How long the machine may be on before the runner has started, and after the end of its lease. */
  startMs: number
  endMs: number
  /** Time that the runner needs to save and stop when the machine shuts down. */
  stopSeconds: number
}
