import type { ArithmeticLine } from '../arithmetic'
import type { PlacementInShort, RejectionGroup, SilentBackend } from './plan'

/** A placement as an explanation shows it. @experimental */
export type ExplainedPlacement = PlacementInShort

/** A change of one input that would have changed the first place. @experimental */
export interface SwitchPoint {
  /** Value for `--what-if`: the smallest change with which another place is first. */
  whatIf: string
  /** The next smaller one of that precision, with which the first place stays. */
  staysAt: string
  /** The row that is first then, as `rowKey`. */
  first: string
  /** Text for a person, in one sentence. */
  text: string
}

/** An input of a decision, for people. @experimental */
export interface DecisionInput {
  name: string
  text: string
}

/**
 * Whether the decision has the same result from its recorded inputs: `different` if the rules have changed, `impossible` if inputs are
 * missing.
 */
export type ReplayVerdict = 'same' | 'different' | 'impossible'

interface Explained {
  /** Number from 1 in the order of the record; `--decision` takes it. */
  number: number
  /** Number of the record's entry. */
  seq: number
  atMs: number
  attempt: number | null
  /** The decision, in a sentence. */
  text: string
  inputs: DecisionInput[]
  replay: ReplayVerdict
  /** Digest of the rules that decided; null if they are not on record. */
  rules: string | null
  /** Missing inputs, in sentences. */
  missing: string[]
}

/** A plan, explained from its record. @experimental */
export interface PlanExplained extends Explained {
  kind: 'plan'
  outcome: 'place' | 'wait' | 'never'
  reasons: string[]
  risks: string[]
  chosen: ExplainedPlacement | null
  /** The best places of other rows, in order. */
  alternatives: ExplainedPlacement[]
  /** Number of further rows. */
  othersTotal: number
  /** Arithmetic of the chosen placement; empty if it cannot be computed. */
  arithmetic: ArithmeticLine[]
  switchPoints: SwitchPoint[]
  /** Whether switch points were searched, which may take seconds for each plan. */
  isSearched: boolean
  excluded: RejectionGroup[]
  silentBackends: SilentBackend[]
}

/** The decision after an attempt, explained from its record. @experimental */
export interface VerdictExplained extends Explained {
  kind: 'after-attempt'
  outcome: 'again' | 'finish'
  /** Changes that would have altered the decision, in sentences. */
  otherwise: string[]
}

/** @experimental */
export type DecisionExplained = PlanExplained | VerdictExplained

/** A row that only one of two plans has, and why the other one does not. @experimental */
export interface RowChange {
  row: string
  reason: string
}

/** Summary of the decision of a plan. @experimental */
export interface PlanInShort {
  outcome: PlanExplained['outcome']
  text: string
  place: ExplainedPlacement | null
}

/** A recorded plan, decided again from changed inputs. @experimental */
export interface WhatIfAnswer {
  decision: number
  changes: string[]
  was: PlanInShort
  now: PlanInShort
  /** Whether places, order, figures and reasons are all unchanged. */
  isUnchanged: boolean
  /** Replay verdict as in `DecisionExplained`. */
  replay: ReplayVerdict
  ruledOut: RowChange[]
  ruledIn: RowChange[]
}

/** Explanation of a job's placement. @experimental */
export interface JobExplained {
  id: string
  name: string
  /** Digest of the rules that the explanation was made with. */
  rules: string
  decisions: DecisionExplained[]
  /** How the job ended, in a sentence; null while it runs. */
  ended: string | null
}
