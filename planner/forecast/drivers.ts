import { FORECAST_PARTS, type Forecast, type ForecastPart } from '../../core/job/forecast'
import type { Offer } from '../../core/offer'
import { HOUR_MS } from '../../core/time/time'
import type { Storing } from '../plan/storing'
import type { Parts } from './parts'
import type { Range } from './range'

const DRIVERS_MAX = 3
/** A part that adds less than this share of the widest one is not worth a word. */
const LEAST_SHARE = 0.05

/** By how many milliseconds each part moves the end; for a bill, in time at the offer's price. */
type Widths = Record<ForecastPart, number>

/** Which parts make a forecast wide: by how much each moves the end, and the bill, from one end of its range to the other. */
export function driversOf(
  parts: Parts,
  offer: Offer,
  { interruptions, storing }: { interruptions: number; storing: Storing | undefined },
): Forecast['drivers'] {
  const machines = 1 + interruptions
  const widths: Widths = {
    wait: width(parts.wait) + width(parts.waitAgain) * interruptions,
    boot: width(parts.boot) * machines,
    image: width(parts.image) * machines,
    setup: width(parts.setup) * machines,
    fetch: width(parts.fetch) * machines,
    restore: width(parts.restore) * (parts.isResumed ? machines : interruptions),
    duration: width(parts.duration) * parts.workMs,
    speed: width(parts.speed) * parts.workMs,
    saving: width(parts.saving) * (parts.workMs / parts.everyMs),
    interruptions: interruptionsWidthMs(parts),
    stop: width(parts.stop),
    // These parts affect only the bill.
    billing: 0,
    price: 0,
    store: 0,
  }
  const isFree = offer.priceMicroUsdPerHour === 0
  return {
    cost: isFree ? [] : widest(billedWidths(widths, { parts, offer, storing })),
    finish: widest(widths),
  }
}

function billedWidths(
  widths: Widths,
  { parts, offer, storing }: { parts: Parts; offer: Offer; storing: Storing | undefined },
): Widths {
  const { priceMicroUsdPerHour, billedAtLeastMs = 0, billedInStepsOfMs = 0 } = offer
  const { onceMicroUsd = 0, perHourMicroUsd = 0 } = storing ?? {}
  const storeMicroUsd = onceMicroUsd + (perHourMicroUsd * parts.workMs) / HOUR_MS
  return {
    ...widths,
    wait: 0,
    billing: Math.max(0, billedInStepsOfMs, billedAtLeastMs - parts.workMs),
    price: width(parts.price) * parts.workMs,
    store: (width(parts.store) * storeMicroUsd * HOUR_MS) / priceMicroUsdPerHour,
  }
}

function width({ low, high }: Range): number {
  return high - low
}

/** Width from few interruptions at the low rate to many at the high one. */
function interruptionsWidthMs(parts: Parts): number {
  const { shakyRate: rate, workMs, everyMs, boot, image, setup, fetch, restore } = parts
  const eachMs = boot.middle + image.middle + setup.middle + fetch.middle + restore.middle
  const hours = workMs / HOUR_MS
  const least = rate.low * hours - 1.6 * Math.sqrt(rate.low * hours)
  const most = rate.high * hours + 1.6 * Math.sqrt(rate.high * hours)
  return (most - Math.max(0, least)) * (eachMs + Math.min(everyMs, workMs) / 2)
}

/** The few parts of the greatest width, widest first. */
function widest(widths: Widths): ForecastPart[] {
  const found = FORECAST_PARTS.filter((part) => widths[part] > 0).sort((a, b) => widths[b] - widths[a])
  return found.slice(0, DRIVERS_MAX).filter((part) => widths[part] >= widths[found[0]!] * LEAST_SHARE)
}
