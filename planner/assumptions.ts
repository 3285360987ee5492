import { HOUR_MS, MINUTE_MS } from '../core/time'

/** Duration assumed for the price of a job that states none; every output says so. */
export const ASSUMED_DURATION_MS = HOUR_MS

/**
 * Interruptions per hour of a spot machine whose backend gives no figure: one in five hours, the middle of the mean
 * available stretches of 0.7 to 10.4 hours in the published V100 traces of 2023 (Wu et al., "Can't Be Late", NSDI 2024).
 */
export const ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR = 0.2

/**
 * The same for a pool that recently interrupted this job: in the same traces, pools are lost about once per available hour during
 * the two hours after an interruption (docs/decisions/0012).
 */
export const SHAKY_INTERRUPTIONS_PER_HOUR = 1

/** Cost penalty of such a pool: an offer may be this much more expensive and still replace it. */
export const SHAKY_COST_FACTOR_MAX = 1.5

/** Time from losing a machine to training on the next: provision, boot, set up, restore (the same paper measures 12 to 18 min). */
export const RECOVERY_MS = 12 * MINUTE_MS

/** Work redone after an interruption if the job does not say how often it saves: half of this. */
export const ASSUMED_CHECKPOINT_EVERY_MS = 20 * MINUTE_MS

/** A placement whose budget buys less running time than this is not worth starting. */
export const USEFUL_RUN_MS = MINUTE_MS

/** Interchangeable offers in one order: enough for every zone of a region and a few types, small enough for a history. */
export const OFFERS_PER_ORDER_MAX = 20

/** Offers count as interchangeable up to this multiple of the best one's expected cost. */
export const INTERCHANGEABLE_COST_FACTOR = 1.5

/** The same for the time of its work without interruptions: a type of half the speed may cost the same. */
export const INTERCHANGEABLE_TIME_FACTOR = 1.25
