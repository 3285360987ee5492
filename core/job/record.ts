import type { CopyOutcome, DecideInput, PlanInput, PlanOutcome, Settlement } from '../activities'
import type { MachineHandle } from '../handle'
import type { Verdict } from './ledger'
import type { JobInput, JobResult, JobStatus, ResolvedJob } from '../messages'
import type { MarketReading } from '../market'
import type { Order, PlanExcerpt, PlanFacts } from './plan'

/**
 * The record of a job: what was requested and every decision with its inputs, each put once, in order. It outlives the workflow's history,
 * so that a decision can be explained later from what was known when it was made.
 */

/** Kinds of entries. */
export const RECORD_KINDS = [
  /** What the user asked for. */
  'submitted',
  /** The spec as checked by a worker, with everything that stays fixed for the job's life. */
  'resolved',
  /** The checkpoint of another job that was copied for this one to continue from. */
  'copied',
  /** No machine was available; from then on the job waited for one. */
  'waiting',
  /** One reading of the offers and the choice. */
  'planned',
  /** An order, whole, before it is sent. */
  'launched',
  /** A rehearsal took back the machine of an attempt. */
  'interrupted',
  /** What is certain about an attempt once its machine is ended. */
  'settled',
  /** What happens after an attempt, and the figures behind it. */
  'decided',
  /** How the job ended. */
  'finished',
] as const
export type RecordKind = (typeof RECORD_KINDS)[number]

/** Inputs and outcome of each kind of entry, complete; JSON. */
interface RecordData {
  submitted: JobInput
  resolved: ResolvedJob
  copied: CopyOutcome
  waiting: RecordedPlan
  planned: RecordedPlan
  launched: Order
  interrupted: { noticeMs: number | null; machine: MachineHandle }
  settled: Settlement
  decided: RecordedVerdict
  finished: { result: JobResult; status: JobStatus }
}

/** A request for a plan and its answer; `facts` and `plan` are missing if the job had to wait in line before anything was planned. */
export interface RecordedPlan {
  inputs: PlanInput
  facts?: RecordedFacts
  plan?: PlanExcerpt
  outcome: PlanOutcome
  /** As in `RecordedVerdict`. */
  rules?: string
}

/** What the plan was made from besides the job's input. The offers are in `market/`, under their digests. */
export interface RecordedFacts extends Omit<PlanFacts, 'answers'> {
  market: MarketReading[]
}

export interface RecordedVerdict {
  facts: Omit<DecideInput, 'jobId' | 'recordSeq' | 'attempt'>
  verdict: Verdict
  /** Digest of the rules that decided; others may decide differently. */
  rules?: string
}

/** `record/<seq>.json`. */
export interface RecordEntryOf<Kind extends RecordKind> {
  /** Place in the job's record; assigned by the job, so that a repeated activity writes the same one. */
  seq: number
  /** Wall clock of the process that put it first. */
  atMs: number
  kind: Kind
  /** The attempt that it is about, if any. */
  attempt?: number
  /** One sentence for a person. */
  summary: string
  data: RecordData[Kind]
}

/** An entry of any kind; `kind` tells what `data` is. @experimental */
export type RecordEntry = { [Kind in RecordKind]: RecordEntryOf<Kind> }[RecordKind]
