import type { CapacityQuote, CapacityRequest } from '../../core/reservation/reservation'
import { isInRegion } from '../../core/offer'
import { plural } from '../../core/plural'
import { formatDuration, formatInstant } from '../../core/time/time'

/** Returns the first part of a request that a quote does not satisfy. The provider's own filters are not trusted. */
export function unlike(wish: CapacityRequest, quote: CapacityQuote): string | undefined {
  const {
    kind,
    types,
    count,
    durationMs = 0,
    earliestStartAtMs = -Infinity,
    latestStartAtMs = Infinity,
  } = wish
  const { latestEndAtMs = Infinity, regions = [], zones = [], extends: extended } = wish
  const { startsAtMs, endsAtMs = Infinity, usableUntilMs = endsAtMs, readAtMs } = quote
  if (quote.kind !== kind || quote.extends !== extended?.id) return 'it is a different kind of reservation'
  if (!types.includes(quote.type)) return `it is for ${quote.type}`
  if (quote.count !== count) return `it has ${plural(quote.count, 'machine')}, not ${count}`
  if (zones.length > 0 && !zones.includes(quote.zone)) return `it is in ${quote.zone}`
  if (
    regions.length > 0 &&
    !regions.some((name) => isInRegion({ region: quote.region, place: quote.zone }, name))
  )
    return `it is in ${quote.region}`
  if (extended !== undefined)
    return endsAtMs - startsAtMs < durationMs
      ? `it adds ${formatDuration(endsAtMs - startsAtMs)}, and ${formatDuration(durationMs)} are needed`
      : undefined
  if (startsAtMs < earliestStartAtMs) return `it begins ${formatInstant(startsAtMs)}, before the wanted time`
  if (startsAtMs > latestStartAtMs) return `it begins ${formatInstant(startsAtMs)}, after the wanted time`
  if (endsAtMs !== Infinity && endsAtMs > latestEndAtMs)
    return `it ends ${formatInstant(endsAtMs)}, after the wanted time`
  // The provider's clock counts: its answer took time, and a quote that begins at once lasts exactly as long as requested.
  const usableMs = usableUntilMs - Math.max(startsAtMs, readAtMs)
  if (usableMs < durationMs)
    return `it can be used for ${formatDuration(usableMs)}, and ${formatDuration(durationMs)} are needed`
  return undefined
}
