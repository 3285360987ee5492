import { microUsd } from '../../../core/money'
import type { DataTransfer } from '../../../core/offer'

/**
 * Dollars for a GB that leaves a Region for another one ("Amazon EC2 On-Demand Pricing", data transfer out to other Regions; Region by
 * Region, read in November 2026). What arrives costs nothing.
 */
const USD_PER_GB: Readonly<Record<string, number>> = {
  ...ofAll(0.02, ['us-east-1', 'us-east-2', 'us-west-1', 'us-west-2', 'ca-central-1', 'ca-west-1']),
  ...ofAll(0.02, ['eu-west-1', 'eu-west-2', 'eu-west-3', 'eu-central-1', 'eu-central-2', 'eu-north-1']),
  ...ofAll(0.02, ['eu-south-1', 'eu-south-2']),
  ...ofAll(0.08, ['ap-northeast-2']),
  ...ofAll(0.086, ['ap-south-1', 'ap-south-2']),
  ...ofAll(0.09, ['ap-east-1', 'ap-northeast-1', 'ap-northeast-3', 'ap-southeast-1']),
  ...ofAll(0.098, ['ap-southeast-2', 'ap-southeast-4']),
  'sa-east-1': 0.138,
}
/** Of a Region that is not listed: the dearest known, af-south-1, so that nothing costs more than the plan says. */
const USD_PER_GB_OTHERWISE = 0.147
/** Between these two it costs half. */
const NEAR: readonly string[] = ['us-east-1', 'us-east-2']
const NEAR_USD_PER_GB = 0.01

/** Assumed: several connections of one machine, slowed down by the distance; within a Region it is twice as much. */
const BYTES_PER_SECOND = 50 * 2 ** 20

/** What data between machines of a Region and a store costs; `undefined` within one Region, where it is free. */
export function transferBetween(region: string, storeRegion: string): DataTransfer | undefined {
  if (region === storeRegion) return undefined
  return {
    storeRegion,
    upMicroUsdPerGb: microUsd(usdPerGb(region, storeRegion)),
    downMicroUsdPerGb: microUsd(usdPerGb(storeRegion, region)),
    bytesPerSecond: BYTES_PER_SECOND,
  }
}

function usdPerGb(from: string, to: string): number {
  if (NEAR.includes(from) && NEAR.includes(to)) return NEAR_USD_PER_GB
  return USD_PER_GB[from] ?? USD_PER_GB_OTHERWISE
}

function ofAll(usdPerGbOfEach: number, regions: readonly string[]): Record<string, number> {
  return Object.fromEntries(regions.map((region) => [region, usdPerGbOfEach]))
}
