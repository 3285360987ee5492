import type { Forecast, ForecastPart } from '../../core/forecast'
import type { Offer } from '../../core/offer'
import { HOUR_MS } from '../../core/time'
import type { Storing } from '../storing'
import type { Parts } from './parts'
import type { Range } from './range'

const DRIVERS_MAX = 3
/** A part that adds less than this share of the widest one is not worth a word. */
const LEAST_SHARE = 0.05

/** Which parts make a forecast wide: by how much each moves the end, and the bill, from one end of its range to the other. */
export function driversOf(
  parts: Parts,
  offer: Offer,
  { interruptions, storing }: { interruptions: number; storing: Storing | undefined },
): Forecast['drivers'] {
  const machines = 1 + interruptions
  const width = ({ low, high }: Range): number => high - low
  const onMs: [ForecastPart, number][] = [
    ['boot', width(parts.boot) * machines],
    ['image', width(parts.image) * machines],
    ['setup', width(parts.setup) * machines],
    ['fetch', width(parts.fetch) * machines],
    ['restore', width(parts.restore) * (parts.isResumed ? machines : interruptions)],
    ['duration', width(parts.duration) * parts.workMs],
    ['speed', width(parts.speed) * parts.workMs],
    ['saving', width(parts.saving) * (parts.workMs / parts.everyMs)],
    ['interruptions', interruptionsWidthMs(parts)],
    ['stop', width(parts.stop)],
  ]
  const waitMs = width(parts.wait) + width(parts.waitAgain) * interruptions
  const { priceMicroUsdPerHour, billedAtLeastMs = 0, billedInStepsOfMs = 0 } = offer
  const roundingMs = Math.max(billedInStepsOfMs, billedAtLeastMs - parts.workMs)
  const { onceMicroUsd = 0, perHourMicroUsd = 0 } = storing ?? {}
  const storeMicroUsd = onceMicroUsd + (perHourMicroUsd * parts.workMs) / HOUR_MS
  const priced: [ForecastPart, number][] = [
    ...onMs,
    ['billing', Math.max(0, roundingMs)],
    ['price', width(parts.price) * parts.workMs],
    ['store', (width(parts.store) * storeMicroUsd * HOUR_MS) / priceMicroUsdPerHour],
  ]
  return {
    cost: priceMicroUsdPerHour === 0 ? [] : widest(priced),
    finish: widest([...onMs, ['wait', waitMs]]),
  }
}

/** From few interruptions at the low rate to many at the high one. */
function interruptionsWidthMs(parts: Parts): number {
  const { shakyRate: rate, workMs, everyMs, boot, image, setup, fetch, restore } = parts
  const eachMs = [boot, image, setup, fetch, restore].reduce((sum, { middle }) => sum + middle, 0)
  const hours = workMs / HOUR_MS
  const least = rate.low * hours - 1.6 * Math.sqrt(rate.low * hours)
  const most = rate.high * hours + 1.6 * Math.sqrt(rate.high * hours)
  return (most - Math.max(0, least)) * (eachMs + Math.min(everyMs, workMs) / 2)
}

function widest(widths: [ForecastPart, number][]): ForecastPart[] {
  const sorted = widths.filter(([, width]) => width > 0).sort(([, a], [, b]) => b - a)
  const [first] = sorted
  return sorted
    .filter(([, width]) => width >= first![1] * LEAST_SHARE)
    .slice(0, DRIVERS_MAX)
    .map(([part]) => part)
}
