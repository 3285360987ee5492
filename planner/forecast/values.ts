import type { Parts } from './parts'
import { column, normalOf, type Dimension } from './points'
import { fillFrom, isSame, type Range } from './range'

/** The dimension in which a part deviates. */
const DIMENSION_OF = {
  wait: 'wait',
  waitAgain: 'wait',
  boot: 'boot',
  image: 'image',
  setup: 'setup',
  fetch: 'fetch',
  restore: 'restore',
  duration: 'duration',
  speed: 'speed',
  saving: 'saving',
  stop: 'stop',
  price: 'price',
  rate: 'rate',
  shakyRate: 'rate',
  // A further dimension would change all forecasts, and `cut` moves a cost only a little.
  store: 'cut',
} as const satisfies Partial<Record<keyof Parts, Dimension>>

type Ranged = keyof typeof DIMENSION_OF
const RANGED = Object.keys(DIMENSION_OF) as Ranged[]

/** Value of each part that has a range, at each point. */
export type Values = Readonly<Record<Ranged, Float64Array>>

const VALUES = Object.fromEntries(RANGED.map((part) => [part, column()])) as Values
const FILLED_FROM: Partial<Record<Ranged, Range>> = {}

/**
 * Returns the values of these parts, which are valid until the next call. The offers of a plan mostly share their ranges, so the columns
 * are kept and only those of other ranges are computed again.
 */
export function valuesOf(parts: Parts): Values {
  for (const part of RANGED) {
    const range = parts[part]
    const before = FILLED_FROM[part]
    if (range === before) continue
    if (before === undefined || !isSame(range, before))
      fillFrom(range, normalOf(DIMENSION_OF[part]), VALUES[part])
    FILLED_FROM[part] = range
  }
  return VALUES
}
