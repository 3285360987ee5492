import { microUsd } from '../core/money/money'
import type { StorePrice } from '../core/money/store-price'
import { parsePlace } from './s3/place'

/**
 * Prices of the first tier of service `AmazonS3` in the price list of 28 October 2025. The most expensive Regions cost not quite twice as
 * much, within the range that forecasts use for this part.
 */
const S3_STANDARD: StorePrice = {
  name: 'S3 Standard in us-east-1',
  microUsdPerGbMonth: microUsd(0.023),
  microUsdPerThousandWrites: microUsd(0.005),
  microUsdPerThousandReads: microUsd(0.0004),
  observedAtMs: Date.UTC(2025, 9, 28),
}

/** The prices of the store at a URL: `unknown` for a server other than AWS, and nothing for a folder, which is free. */
export function storePriceOf(url: string): StorePrice | 'unknown' | undefined {
  if (!url.startsWith('s3://')) return undefined
  return parsePlace(new URL(url)).endpoint === undefined ? S3_STANDARD : 'unknown'
}
