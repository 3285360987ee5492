import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Range } from '../forecast/range'

/** Duration assumed for the price of a job that states none; every output says so. */
export const ASSUMED_DURATION_MS = HOUR_MS

/** The spread of that assumption: a factor of three from end to end. */
export const ASSUMED_DURATION: Range = {
  low: 1 / Math.sqrt(3),
  middle: 1,
  high: Math.sqrt(3),
  source: 'assumed, because the job states no duration',
}

/** Spread of a duration that the job states. */
export const STATED_DURATION: Range = {
  low: 0.8,
  middle: 1,
  high: 1.25,
  source: 'the stated duration, taken as right within a quarter',
}

/** Speed of an accelerator without any figure, as a multiple of the one that the duration refers to. */
export const UNKNOWN_SPEED: Range = {
  low: 0.4,
  middle: 1,
  high: 2.5,
  source: 'assumed, because no speed of this accelerator is known',
}

/**
 * Interruptions per hour of a spot machine whose backend gives no figure. The published traces of V100 and r5 machines (Wu et al., "Can't
 * Be Late", NSDI 2024, traces of 2022 and 2023) have 0.1 to 1.4 losses per available hour in 20 zones and months, 0.4 in their middle; types
 * that are rarely taken back are not in them.
 */
export const ASSUMED_SPOT_INTERRUPTIONS: Range = {
  low: 0.05,
  middle: 0.2,
  high: 1.4,
  source: 'the NSDI 2024 spot traces of 2022 and 2023',
}

/** The spread of a figure that the backend gives. */
export const STATED_INTERRUPTIONS: Range = {
  low: 0.5,
  middle: 1,
  high: 2,
  source: "the backend's figure, taken as right within a factor of two",
}

/**
 * Interruption rate of a pool that recently interrupted this job: in the published traces, pools are lost about once per available hour
 * during the two hours after an interruption (docs/decisions/0012).
 */
export const SHAKY_INTERRUPTIONS: Range = {
  low: 0.5,
  middle: 1,
  high: 1.6,
  source: 'the NSDI 2024 spot traces, in the first two hours after an interruption',
}

/** Largest part by which such a pool's interruptions lengthen a job. Another pool may be that much more expensive and still replace it. */
export const SHAKY_LOSS_MAX = 0.5

/** Time until a launch is accepted, at a provider without a queue. */
export const LAUNCH_WAIT: Range = {
  low: 2 * SECOND_MS,
  middle: 5 * SECOND_MS,
  high: MINUTE_MS,
  source: 'assumed: a launch is answered within seconds, and another offer is tried if it is refused',
}

/**
 * Time until the next machine is launched after an interruption, when capacity is scarce; in the traces half of the outages of one zone
 * last 20 minutes.
 */
export const RELAUNCH_WAIT: Range = {
  low: 5 * SECOND_MS,
  middle: MINUTE_MS,
  high: 15 * MINUTE_MS,
  source: 'assumed: another offer usually has capacity',
}

/** Time in the queue of a provider; the order's own limit ends it. */
export const QUEUE_WAIT: Range = {
  low: SECOND_MS,
  middle: 20 * SECOND_MS,
  high: 15 * MINUTE_MS,
  source: 'assumed: most launches leave the queue at once, and the wait is limited to 15 minutes',
}

/** Boot time for a backend that states none. */
export const BOOT: Range = {
  low: MINUTE_MS,
  middle: 2 * MINUTE_MS,
  high: 12 * MINUTE_MS,
  source: 'assumed, because the backend has no figure',
}

/** Pulling a container image with CUDA: 3 to 10 GB at 25 to 100 MB/s, and unpacking. */
export const IMAGE_PULL: Range = {
  low: 20 * SECOND_MS,
  middle: 2 * MINUTE_MS,
  high: 8 * MINUTE_MS,
  source: 'assumed for an image of 3 to 10 GB',
}

/** The job's `setup` command. */
export const SET_UP: Range = {
  low: 5 * SECOND_MS,
  middle: MINUTE_MS,
  high: 8 * MINUTE_MS,
  source: 'assumed for installing packages',
}

/** Reading inputs of unknown size. */
export const UNKNOWN_INPUTS: Range = {
  low: 5 * SECOND_MS,
  middle: MINUTE_MS,
  high: 20 * MINUTE_MS,
  source: 'assumed, because the size of an input is unknown',
}

/** Restoring a checkpoint of unknown size. */
export const UNKNOWN_RESTORE: Range = {
  low: SECOND_MS,
  middle: 10 * SECOND_MS,
  high: 3 * MINUTE_MS,
  source: 'assumed, because the size of its checkpoints is unknown',
}

/** Time from the end of the training until the machine is off: the result, the last upload, and the power-off. */
export const STOP: Range = {
  low: 2 * SECOND_MS,
  middle: 10 * SECOND_MS,
  high: 1.5 * MINUTE_MS,
  source: 'assumed for the last upload and the power-off',
}

/**
 * Rate at which the runner exchanges large files with a store in its Region, if its disk is as fast: what it reached on two cores from a store on the
 * same host, 1 GiB in 1.3 s. Its sixteen connections to S3 are faster (`npm run bench -- --only disks`).
 */
export const NEAR_BYTES_PER_SECOND = 800 * 2 ** 20

/** Spread of a transfer rate around the expected one. */
export const TRANSFER_SPREAD = 2.5

/**
 * Requests to the store between two beats of a machine, as counted on their way to an S3 server (`test/runner/store-requests.ts`). Writes, which lists
 * count as: the beat, and a list of new limits. Reads: `drain.json` and `lease.json` by the runner, and the beat by its watch. A lease is written twice an
 * hour.
 */
export const REQUESTS_PER_BEAT = { writes: 2, reads: 3 }

/** Writes of the log between two beats: none for a silent program, and 2.5 for one that prints all the time. */
export const LOG_CHUNKS_PER_BEAT = 1

/**
 * Requests for each checkpoint, in addition to its parts. Writes: the start and end of an upload, up to three revisions of the manifest,
 * and the lists that find old checkpoints. Reads: a check for an existing file, and the documents of kept checkpoints.
 */
export const REQUESTS_PER_SAVE = { writes: 10, reads: 8 }

/** Spread of the store's charges: logs have up to one chunk in two seconds, checkpoints many files, and Regions other prices. */
export const STORE_CHARGES: Range = {
  low: 0.6,
  middle: 1,
  high: 2,
  source: 'assumed requests, at the prices of one Region',
}

/** GiB that the job moves through its disk if it asks for no size: packages, an image or a model, and data. */
export const ASSUMED_DISK_LOAD_GIB = 30

/** Bytes per second at which a program writes a checkpoint to its disk. */
export const WRITE_BYTES_PER_SECOND: Range = {
  low: 0.2e9,
  middle: 1e9,
  high: 4e9,
  source: 'assumed for a local disk',
}

/** Factor on the price of spot capacity over the hours of a job: the p3.2xlarge of nine zones in early 2023 (benchmark data of NSDI 2024). */
export const SPOT_PRICE: Range = {
  low: 0.98,
  middle: 1,
  high: 1.02,
  source: 'spot prices of p3.2xlarge in nine zones, early 2023: over two days nine of ten stay within 2 %',
}

/** Spread of a price in a table older than `STATIC_PRICE_OLD_MS`; published prices moved by up to 45 % in 2025 and 2026. */
export const OLD_PRICE: Range = {
  low: 0.75,
  middle: 1,
  high: 1.3,
  source: 'a price table older than a month',
}
export const STATIC_PRICE_OLD_MS = 30 * 24 * HOUR_MS

/** Assumed interval of checkpoints; half of it is repeated after an interruption. */
export const ASSUMED_CHECKPOINT_EVERY_MS = 20 * MINUTE_MS

/** A placement whose budget buys less running time than this is not worth starting. */
export const USEFUL_RUN_MS = MINUTE_MS

/** Interchangeable offers in one order: enough for every zone of a region and a few types, small enough for a history. */
export const OFFERS_PER_ORDER_MAX = 20

/** Offers count as interchangeable up to this multiple of the best one's expected cost. */
export const INTERCHANGEABLE_COST_FACTOR = 1.5

/** Largest factor between the times of interchangeable offers: a type of half the speed may cost the same. */
export const INTERCHANGEABLE_TIME_FACTOR = 1.25
