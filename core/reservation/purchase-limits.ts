/** Limits on the time of a purchase: of its sender, of the provider's lists, and of the search for its outcome. */
import { MINUTE_MS, SECOND_MS } from '../time/time'

/** Time after its mark by which the last request of a purchase leaves a worker. */
export const PURCHASE_LIMIT_MS = 3 * MINUTE_MS

/** A provider's lists show a purchase, and the release of a reservation, at the latest this long after its answer. */
export const STALE_MS = 15 * MINUTE_MS

/** Pauses between searches: together longer than `PURCHASE_LIMIT_MS` and `STALE_MS`, with room for the clocks of two machines. */
export const LOOK_PAUSES_MS = [0, 15, 30, 60, 120, 240, 480, 600].map((seconds) => seconds * SECOND_MS)
