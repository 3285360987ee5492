import type { JobSpec } from '../core/job'
import { spendOver } from '../core/meter'
import type { Offer } from '../core/offer'
import { HOUR_MS } from '../core/time'
import {
  ASSUMED_CHECKPOINT_EVERY_MS,
  ASSUMED_DURATION_MS,
  ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR,
  RECOVERY_MS,
} from './assumptions'

/** What running the whole job on an offer is expected to take. */
export interface Estimate {
  durationMs: number
  costMicroUsd: number
  /** Expected number of interruptions until the job is done. */
  interruptions: number
}

/**
 * Expected time and money of a job on an offer: its duration, and for every interruption to be expected the recovery and
 * half a checkpoint interval of work done twice.
 */
export function estimate(offer: Offer, spec: JobSpec): Estimate {
  const workMs = spec.durationMs ?? ASSUMED_DURATION_MS
  const perHour =
    offer.capacityType === 'spot' ? (offer.interruptionsPerHour ?? ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR) : 0
  const interruptions = (perHour * workMs) / HOUR_MS
  const redoneMs = (spec.checkpoint.everyMs ?? ASSUMED_CHECKPOINT_EVERY_MS) / 2
  const durationMs = Math.round(workMs + interruptions * (RECOVERY_MS + redoneMs))
  return { durationMs, costMicroUsd: spendOver(durationMs, offer.priceMicroUsdPerHour), interruptions }
}
