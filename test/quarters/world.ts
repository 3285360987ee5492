import { microUsd } from '../../core/money/money'
import type { RetrainState } from '../../core/retraining/run'
import type { ReservedStep, RetrainSpec } from '../../core/retraining/retraining'
import type { ScheduledRun } from '../../core/retraining/run-dates'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type { Behaviour } from '../backends/scripted/behaviour'
import type { OverTime, PrepaidLot } from '../backends/scripted/reserving/lots'
import type { ReservationMarket } from '../backends/scripted/reserving/market'
import type { Event } from './driver'
import type { Year } from './year'

export const SCHEDULE = 'ranker'
/** Every purchase of the year fits. */
export const LIMITS = { monthMicroUsd: microUsd(1_000_000), owners: {} }

export const PRICE = microUsd(400)
export const LEAD_MS = 21 * DAY_MS
/** The fallback begins this long before the opening. */
const FALLBACK_MS = 2 * DAY_MS

export interface Quarter {
  /** 0 to 3. */
  index: number
  run: ScheduledRun
  market: ReservationMarket
  year: Year
  /** The id of what was bought last. */
  reservation: () => string
}

/** What happens in a quarter, and how it must end. */
export interface QuarterPlan {
  behave: (jobId: string) => Partial<Behaviour>
  /** Of the evaluation of the new model: lower is better. */
  loss: number
  events?: Event[]
  /** `none`: no run begins. */
  ends: RetrainState | 'none'
  /** Purchases that the provider is paid for, extensions included. */
  paid: number
  /** The training began in the reservation, or elsewhere. */
  trains: 'reserved' | 'elsewhere'
  /** The provider takes the machines away without a word: no machine can leave before. */
  isTakenAway?: true
  /** A rehearsal that would take until the window opens. */
  rehearses?: true
  /** It begins after its date, and says so; `by-far`: also after its window, so that it trains as soon as it can. */
  begins?: 'late' | 'late-by-far'
}

export interface Scenario {
  name: string
  about: string
  spec?: Partial<RetrainSpec>
  step?: Partial<ReservedStep>
  /** Its server suggests a fresh history after so many events. */
  historyMax?: number
  /** Of the four, the first ones that it lives. */
  quarters?: number
  /** Its server is set back to a backup. */
  isSetBack?: true
  quarter: (quarter: Quarter) => QuarterPlan
}

const OPEN = { kind: 'unreserved', backends: [{ backend: 'scripted', capacityType: 'on-demand' }] } as const
const BLOCK_MS = 6 * HOUR_MS
const STEP: ReservedStep = {
  kind: 'prepaid',
  backend: 'scripted',
  types: ['v100'],
  count: 8,
  durationMs: 5 * HOUR_MS,
  startWithinMs: DAY_MS,
  upfrontMaxMicroUsd: microUsd(500),
}

/** A file as a team would write it, for the quarters from November on. */
export function specOf({ spec = {}, step = {} }: Pick<Scenario, 'spec' | 'step'>): RetrainSpec {
  return {
    name: SCHEDULE,
    calendar: {
      months: [2, 5, 8, 11],
      day: { kind: 'date', day: 25 },
      hour: 9,
      minute: 0,
      zone: 'Europe/Berlin',
      blackouts: [],
      onBlackout: 'skip',
    },
    leadMs: LEAD_MS,
    overlap: 'queue',
    data: { period: 'quarter' },
    checkMs: DAY_MS,
    notify: {},
    job: { run: 'train --from {{ window.start }}', interruptible: true, budget: '$500' },
    capacity: { steps: [{ ...STEP, ...step }, OPEN], fallbackMs: FALLBACK_MS },
    overrun: { backends: OPEN.backends },
    evaluation: {
      metric: 'loss',
      better: 'lower',
      tolerance: { kind: 'relative', value: 0.1 },
      production: 'recorded',
      job: { run: 'evaluate {{ model.job }}', budget: '$20', backends: ['scripted:on-demand'] },
    },
    promotion: { model: SCHEDULE, isAsked: false, askMs: DAY_MS },
    ...spec,
  }
}

/** The evaluation takes three minutes. */
export function trains(durationMs: number): QuarterPlan['behave'] {
  return (jobId) => {
    const forMs = jobId.includes('-train') ? durationMs : jobId.includes('-reh') ? DAY_MS : 3 * MINUTE_MS
    const stepsTotal = 60
    const stepsPerSecond = (stepsTotal * 1_000) / forMs
    return { stepsTotal, stepsPerSecond, checkpointEverySteps: 5, tellsFirstStep: true }
  }
}

export const LOT: Omit<PrepaidLot, 'startsAtMs'> = {
  kind: 'prepaid',
  type: 'v100',
  region: 'a',
  zone: 'a',
  count: 8,
  durationMs: BLOCK_MS,
  upfrontMicro: PRICE,
}

/** A block is on sale from an instant on, some time before the opening. */
export function onSale(quarter: Quarter, beforeMs = LEAD_MS + DAY_MS, more: Partial<PrepaidLot> = {}): Event {
  const { run, market } = quarter
  return {
    atMs: run.opensAtMs - beforeMs,
    act: () => market.sell({ ...LOT, startsAtMs: run.opensAtMs, ...more }),
  }
}

export function priceOf(...values: [fromMs: number, price: number][]): OverTime<number> {
  return values
}

/** The plan of a quarter in which nothing goes wrong. */
export const USUAL: QuarterPlan = {
  behave: trains(HOUR_MS),
  loss: 1.5,
  ends: 'promoted',
  paid: 1,
  trains: 'reserved',
}
