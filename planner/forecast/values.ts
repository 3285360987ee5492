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

/** Of each part that has a range, its value at each point. */
export type Values = Readonly<Record<Ranged, Float64Array>>

const VALUES = Object.fromEntries(RANGED.map((part) => [part, column()])) as Values
const FILLED_FROM: Partial<Record<Ranged, Range>> = {}

/**
 * The values of these parts, until the next call: a plan has thousands of offers, whose parts mostly have the same ranges, so the columns are
 * kept and only those of other ranges computed again.
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
