import type { ArithmeticLine } from '../arithmetic'
import type { PlacementInShort, RejectionGroup, SilentBackend } from './plan'

/** A placement as an explanation shows it. @experimental */
export type ExplainedPlacement = PlacementInShort

/** A change of one input that would have changed the first place. @experimental */
export interface SwitchPoint {
  /** As `--what-if` takes it: the smallest change with which another place is first. */
  whatIf: string
  /** The next smaller one of that precision, with which the first place stays. */
  staysAt: string
  /** The row that is first then, as `rowKey`. */
  first: string
  /** One sentence for a person. */
  text: string
}

/** An input of a decision, for people. @experimental */
export interface DecisionInput {
  name: string
  text: string
}

/** Whether the decision comes out the same from its recorded inputs: `different` if the rules have changed, `impossible` if inputs are missing. */
export type ReplayVerdict = 'same' | 'different' | 'impossible'

interface Explained {
  /** From 1, in the order of the record; `--decision` takes it. */
  number: number
  /** Number of the record's entry. */
  seq: number
  atMs: number
  attempt: number | null
  /** What was decided, in a sentence. */
  text: string
  inputs: DecisionInput[]
  replay: ReplayVerdict
  /** Digest of the rules that decided; null if they are not on record. */
  rules: string | null
  /** What is not on record, in sentences. */
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
  /** How many more rows there are. */
  othersTotal: number
  /** Of the chosen placement; empty if it cannot be computed. */
  arithmetic: ArithmeticLine[]
  switchPoints: SwitchPoint[]
  /** Whether switch points were searched: it takes up to seconds for each plan. */
  isSearched: boolean
  excluded: RejectionGroup[]
  silentBackends: SilentBackend[]
}

/** What follows from the end of an attempt, explained from its record. @experimental */
export interface VerdictExplained extends Explained {
  kind: 'after-attempt'
  outcome: 'again' | 'finish'
  /** What would have had to differ, in sentences. */
  otherwise: string[]
}

/** @experimental */
export type DecisionExplained = PlanExplained | VerdictExplained

/** A row that only one of two plans has, and why the other one does not. @experimental */
export interface RowChange {
  row: string
  reason: string
}

/** What a plan decides, briefly. @experimental */
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
  /** Nothing differs: not the places, their order, a figure or a reason. */
  isUnchanged: boolean
  /** As in `DecisionExplained`. */
  replay: ReplayVerdict
  ruledOut: RowChange[]
  ruledIn: RowChange[]
}

/** Why a job is where it is. @experimental */
export interface JobExplained {
  id: string
  name: string
  /** Digest of the rules that the explanation was made with. */
  rules: string
  decisions: DecisionExplained[]
  /** How the job ended, in a sentence; null while it has not. */
  ended: string | null
}
