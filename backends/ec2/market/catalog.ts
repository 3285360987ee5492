import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DiskRates } from '../sdk/api'

/** `catalog.json`: prices as found by `tools/gen-ec2-catalog.mjs`. */
interface Catalog {
  observedAt: string
  source: string
  /** Dollars per hour of Linux on shared hardware, by Region and type. */
  usdPerHour: Record<string, Record<string, number>>
  /** Prices of gp3, by Region. */
  diskRates: Record<string, DiskRates>
}

export interface CatalogPrices {
  usdPerHour(type: string): number | undefined
  diskRates: DiskRates
  observedAtMs: number
  /** The Region whose prices these are, if the catalog lacks the wanted one. */
  standIn?: string
  /** Date and source of the prices, for people. */
  words: string
}

/** A Region that the catalog lacks is priced as this one, which each price says; most are a few per cent more expensive. */
const REGION_OTHERWISE = 'us-east-1'

/** The prices that came with this version. Read on demand, which is rare. */
export function catalogPrices(region: string): CatalogPrices {
  const catalog = JSON.parse(readFileSync(join(__dirname, 'catalog.json'), 'utf8')) as Catalog
  const standIn = catalog.usdPerHour[region] === undefined ? REGION_OTHERWISE : undefined
  const place = standIn ?? region
  const prices = catalog.usdPerHour[place] ?? {}
  const notOf = standIn === undefined ? '' : `, not of ${region}`
  return {
    usdPerHour: (type) => prices[type],
    diskRates: catalog.diskRates[place]!,
    observedAtMs: Date.parse(catalog.observedAt),
    standIn,
    words: `this is the price of ${place} on ${catalog.observedAt.slice(0, 10)}${notOf}`,
  }
}
