/**
 * The record of a job: what was asked and every decision with its inputs, each put once, in order. It outlives the
 * workflow's history, so that a decision can be explained later from what was known when it was made.
 */

/** What an entry tells. */
export const RECORD_KINDS = [
  /** What the user asked for. */
  'submitted',
  /** The spec as checked by a worker, with everything that stays fixed for the job's life. */
  'resolved',
  /** Which checkpoint of another job was copied for this one to go on from. */
  'copied',
  /** No machine was to be had; from then on the job waited for one. */
  'waiting',
  /** One look at the offers and what was chosen. */
  'planned',
  /** An order, whole, before it is sent. */
  'launched',
  /** A rehearsal took the machine of an attempt back. */
  'interrupted',
  /** What is certain about an attempt once its machine is ended. */
  'settled',
  /** What happens after an attempt, and from which figures that followed. */
  'decided',
  /** How the job ended. */
  'finished',
] as const
export type RecordKind = (typeof RECORD_KINDS)[number]

/** `record/<seq>.json`. */
export interface RecordEntry {
  /** Place in the job's record; the job hands the numbers out, so that a repeated activity writes the same one. */
  seq: number
  /** Wall clock of whoever put it first. */
  atMs: number
  kind: RecordKind
  /** The attempt that it is about, where it is about one. */
  attempt?: number
  /** One sentence for a person. */
  summary: string
  /** The inputs and the outcome, whole; JSON. */
  data: unknown
}
