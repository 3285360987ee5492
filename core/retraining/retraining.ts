/** Retraining on a calendar: the file as values, one run of it, and what it leaves on record. */
import type { CalendarRule, Period } from '../time/calendar'
import type { MicroUsd } from '../money/money'
import type { BackendChoice, BackendName } from '../offer'
import type { PurchaseRule } from '../reservation/reserving'
import type { CapacityWish, ReservationKind } from '../reservation/reservation'
import { DAY_MS } from '../time/time'

/** Providers sell reserved capacity at most this long ahead. */
export const LEAD_MS_MAX = 56 * DAY_MS

/** What to do when a run is still going at the time of the next one. */
export const OVERLAPS = ['queue', 'skip', 'allow'] as const
/** @experimental */
export type Overlap = (typeof OVERLAPS)[number]

/** Fields of a job file, as written, with templates in their texts. @experimental */
export type JobTemplate = Readonly<Record<string, unknown>>

/** One way to get capacity: by a reservation. @experimental */
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

/** One way to get capacity: none is reserved, and the job takes what it finds when the window opens. @experimental */
export interface UnreservedStep {
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
  /** In the order in which they are tried; at least one. */
  steps: readonly CapacityStep[]
  /** The first step ends, and the others are tried, this long before the window opens. */
  fallbackMs: number
}

/** What happens to a training that its reservation is too short for. @experimental */
export interface OverrunRule {
  /** Prolong the reservation where that is cheaper than moving, for this much in all. */
  extendMaxMicroUsd?: MicroUsd
  /** Otherwise continue here, from the newest checkpoint. */
  backends?: readonly BackendChoice[]
}

export const DIRECTIONS = ['lower', 'higher'] as const
/** @experimental */
export type Direction = (typeof DIRECTIONS)[number]

/** How far the new model may be behind the model in production: in units of the metric, or as a share of its value. @experimental */
export interface Tolerance {
  kind: 'absolute' | 'relative'
  value: number
}

/** @experimental */
export interface Gate {
  metric: string
  better: Direction
  tolerance: Tolerance
  /** The worst acceptable value, whatever is in production. */
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

/** Where news of a run go. @experimental */
export interface NotifyRule {
  webhook?: string
  /** The variable that holds the URL, stored encrypted. */
  webhookSecret?: string
}

/** What a retraining file says. JSON; the main part of the `retrain` workflow's input. @experimental */
export interface RetrainSpec {
  name: string
  calendar: CalendarRule
  /** How long before the window the run begins. */
  leadMs: number
  overlap: Overlap
  /** The data of a run: the last whole period before its date, or so many days before it. */
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
  /** When the window opens. For a run by hand, when it was started. */
  opensAtMs: number
  zone: string
  /** The data window; `end` is the first day after it. */
  window: { start: string; end: string }
  /** A person started it, or it is made up for: there is no calendar to wait for. */
  isByHand: boolean
  notes: string[]
}

/** A wish and rule of `reserveCapacity`, as a step and the dates of a run give them. */
export interface ReservationOfStep {
  wish: CapacityWish
  rule: PurchaseRule
}

/** The model that a run made or that is in production. @experimental */
export interface ModelRef {
  jobId: string
  checkpointId: string
  step: number
  /** Over the digests of its files. */
  digest: string
  /** Where its job's artifacts are: a folder of the object store. */
  artifactsUrl: string
}

/** An entry of a pointer's chain: the newest is the model in production. @experimental */
export interface PromotedModel extends ModelRef {
  /** 1, 2, ...; each is put once. */
  seq: number
  promotedAtMs: number
  schedule: string
  run: string
  /** What it was trained on, and with which code. */
  window: { start: string; end: string }
  bundleSha256: string | null
  metric?: { name: string; value: number }
  /** The model that it replaced. */
  previousSeq: number | null
}
