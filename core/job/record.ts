import type { CopyOutcome, DecideInput, PlanInput, PlanOutcome, Settlement } from '../activities'
import type { MachineHandle } from '../handle'
import type { Verdict } from './ledger'
import type { JobInput, JobResult, JobStatus, ResolvedJob } from '../messages'
import type { MarketReading } from '../market'
import type { Order, PlanExcerpt, PlanFacts } from './plan'

/**
 * The record of a job: the requests and every decision with its inputs, each put once, in order. It outlives the workflow's history, so
 * that decisions can be explained later.
 */

/** Kinds of entries. */
export const RECORD_KINDS = [
  /** The user's request. */
  'submitted',
  /** The spec as checked by a worker, with everything that stays fixed for the job's life. */
  'resolved',
  /** The checkpoint of another job that was copied for this one to continue from. */
  'copied',
  /** No machine was available, and the job began to wait for one. */
  'waiting',
  /** One reading of the offers, and the choice. */
  'planned',
  /** The whole order, before it is sent. */
  'launched',
  /** A rehearsal took back the machine of an attempt. */
  'interrupted',
  /** Facts about an attempt whose machine has ended. */
  'settled',
  /** The decision after an attempt, with its figures. */
  'decided',
  /** The end of the job. */
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
  /** Digest of the rules, as in `RecordedVerdict`. */
  rules?: string
}

/** Inputs of the plan in addition to the job's. The offers are in `market/`, under their digests. */
interface RecordedFacts extends Omit<PlanFacts, 'answers'> {
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
  /** Number of its attempt, if any. */
  attempt?: number
  /** Summary for a person, in one sentence. */
  summary: string
  data: RecordData[Kind]
}

/** A record entry of any kind; `kind` determines the type of `data`. @experimental */
export type RecordEntry = { [Kind in RecordKind]: RecordEntryOf<Kind> }[RecordKind]
