/** Retraining on a calendar: the values of the file, one run, and its record. */
import type { CalendarRule, Period } from '../time/calendar'
import type { MicroUsd } from '../money/money'
import type { BackendChoice, BackendName } from '../offer'
import type { PurchaseRule } from '../reservation/reserving'
import type { CapacityRequest, ReservationKind } from '../reservation/reservation'
import { DAY_MS } from '../time/time'

/** Providers sell reserved capacity at most this long ahead. */
export const LEAD_MS_MAX = 56 * DAY_MS

/** What to do if a run is still active at the time of the next one. */
export const OVERLAPS = ['queue', 'skip', 'allow'] as const
/** @experimental */
export type Overlap = (typeof OVERLAPS)[number]

/** Fields of a job file, as written, with templates in their texts. @experimental */
export type JobTemplate = Readonly<Record<string, unknown>>

/** A step that reserves capacity. @experimental */
export interface ReservedStep extends Pick<
  PurchaseRule,
  | 'upfrontMaxMicroUsd'
  | 'machineHourMaxMicroUsd'
  | 'unaskedMaxMicroUsd'
  | 'spendMaxMicroUsd'
  | 'idleMaxMs'
  | 'share'
> {
  kind: ReservationKind
  backend: BackendName
  types: readonly string[]
  count: number
  durationMs: number
  regions?: readonly string[]
  zones?: readonly string[]
  /** The capacity may start this much later than the window opens. */
  startWithinMs: number
}

/** A step that reserves no capacity: the job takes the best offer when the window opens. @experimental */
interface UnreservedStep {
  kind: 'unreserved'
  backends: readonly BackendChoice[]
  regions?: readonly string[]
  /** The training must be over this long after the window opens. */
  deadlineMs?: number
}

/** @experimental */
export type CapacityStep = ReservedStep | UnreservedStep

/** @experimental */
export interface CapacityPlan {
  /** Steps in the order in which they are tried; at least one. */
  steps: readonly CapacityStep[]
  /** The first step ends, and the others are tried, this long before the window opens. */
  fallbackMs: number
}

/** Handling of a training for which its reservation is too short. @experimental */
export interface OverrunRule {
  /** Highest total cost of extensions of the reservation, which are bought if they are cheaper than moving. */
  extendMaxMicroUsd?: MicroUsd
  /** Backends on which the training otherwise continues from the newest checkpoint. */
  backends?: readonly BackendChoice[]
}

export const DIRECTIONS = ['lower', 'higher'] as const
/** @experimental */
type Direction = (typeof DIRECTIONS)[number]

/** How much worse than the model in production the new model may be: in units of the metric, or as a share of its value. @experimental */
export interface Tolerance {
  kind: 'absolute' | 'relative'
  value: number
}

/** @experimental */
export interface Gate {
  metric: string
  better: Direction
  tolerance: Tolerance
  /** The worst acceptable value, regardless of the model in production. */
  limit?: number
}

/** @experimental */
export interface EvaluationRule extends Gate {
  job: JobTemplate
  /** `rerun`: the model in production is evaluated on the same data. `recorded`: its metric from its promotion counts. */
  production: 'rerun' | 'recorded'
}

/** @experimental */
export interface PromotionRule {
  /** The name of the pointer to the model in production. */
  model: string
  /** A person approves; after `askMs`, the old model stays. */
  isAsked: boolean
  askMs: number
  /** The user's command, as a job that starts from the model; missing if only the pointer moves. */
  job?: JobTemplate
}

/** Recipients of a run's events. @experimental */
export interface NotifyRule {
  webhook?: string
  /** The variable that holds the URL, stored encrypted. */
  webhookSecret?: string
}

/** The retraining file as JSON, the main part of the `retrain` workflow's input. @experimental */
export interface RetrainSpec {
  name: string
  calendar: CalendarRule
  /** Time from the start of the run to its window. */
  leadMs: number
  overlap: Overlap
  /** Data of a run: the last whole period before its date, or a number of days before it. */
  data: { period: Period } | { days: number }
  job: JobTemplate
  capacity?: CapacityPlan
  overrun: OverrunRule
  /** The checks are made this long before the window opens. */
  checkMs: number
  /** A short version of the job, run with the checks. */
  rehearsal?: JobTemplate
  budgetMicroUsd?: MicroUsd
  evaluation?: EvaluationRule
  promotion?: PromotionRule
  notify: NotifyRule
}

/** The dates of one run. @experimental */
export interface RunDates {
  /** The day by the rule: names the run. */
  nominal: string
  /** Opening of the window; for a run started by hand, its start. */
  opensAtMs: number
  zone: string
  /** The data window; `end` is the first day after it. */
  window: { start: string; end: string }
  /** Whether a person started or backfilled it, so that it waits for no calendar date. */
  isByHand: boolean
  notes: string[]
}

/** Request and rule for `reserveCapacity`, from a step and the dates of a run. */
export interface ReservationOfStep {
  wish: CapacityRequest
  rule: PurchaseRule
}

/** The model that a run made or that is in production. @experimental */
export interface ModelRef {
  jobId: string
  checkpointId: string
  step: number
  /** Over the digests of its files. */
  digest: string
  /** Location of its job's artifacts: a folder of the object store. */
  artifactsUrl: string
}

/** An entry of a pointer's chain: the newest is the model in production. @experimental */
export interface PromotedModel extends ModelRef {
  /** 1, 2, ...; each is put once. */
  seq: number
  promotedAtMs: number
  schedule: string
  run: string
  /** Data window of its training; `code` is the bundle. */
  window: { start: string; end: string }
  bundleSha256: string | null
  metric?: { name: string; value: number }
  /** The model that it replaced. */
  previousSeq: number | null
}
