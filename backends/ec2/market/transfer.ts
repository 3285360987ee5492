import { microUsd } from '../../../core/money/money'
import type { DataTransfer, PriceSource } from '../../../core/offer'
import { HOUR_MS } from '../../../core/time/time'
import { cached, type Cached } from '../../calls'
import type { MarketApi } from '../sdk/api'

/** Returns the cost of moving data between machines of a Region and a store; `undefined` within one Region, where it is free. */
export type TransferBetween = (
  region: string,
  storeRegion: string,
  signal: AbortSignal,
) => Promise<DataTransfer | undefined>

/** Validity, the same as for the prices of machines. */
const FRESH_MS = 6 * HOUR_MS
/** Beyond this a plan uses the table: its caller waits at most twenty seconds for everything. */
const PATIENCE_MS = 6_000
/** Assumed rate over several connections of one machine, slowed down by the distance; within a Region it is twice as fast. */
const BYTES_PER_SECOND = 50 * 2 ** 20

/** Reads the price list, and falls back to the table in this file. */
export function createTransfers({
  market,
  clock,
}: {
  market: Pick<MarketApi, 'transferUsdPerGb'>
  clock: () => number
}): TransferBetween {
  const lists = new Map<string, Cached<string | undefined>>()
  const listOf = (from: string, to: string): Cached<string | undefined> => {
    const key = `${from} ${to}`
    const read = (within: AbortSignal): Promise<string | undefined> =>
      market.transferUsdPerGb({ from, to }, within)
    const known = lists.get(key) ?? cached({ freshForMs: FRESH_MS, clock, read })
    lists.set(key, known)
    return known
  }
  const priceOf = async (from: string, to: string, signal: AbortSignal): Promise<TransferPrice> => {
    const read = await listOf(from, to).soon(PATIENCE_MS, signal)
    if (read?.value === undefined) return tablePrice(from, to)
    return { usdPerGb: Number(read.value), source: { kind: 'live', observedAtMs: read.readAtMs } }
  }
  return async (region, storeRegion, signal) => {
    if (region === storeRegion) return undefined
    const [up, down] = await Promise.all([
      priceOf(region, storeRegion, signal),
      priceOf(storeRegion, region, signal),
    ])
    return {
      storeRegion,
      upMicroUsdPerGb: microUsd(up.usdPerGb),
      downMicroUsdPerGb: microUsd(down.usdPerGb),
      priceSource: up.source.kind === 'static' ? up.source : down.source,
      bytesPerSecond: BYTES_PER_SECOND,
    }
  }
}

interface TransferPrice {
  usdPerGb: number
  source: PriceSource
}

/**
 * Dollars per GB that leaves a Region for another one; incoming data is free. These are the prices of the list (service `AWSDataTransfer`,
 * "InterRegion Outbound"), as Infracost's estimates of `aws_data_transfer` publish them Region by Region.
 */
const USD_PER_GB: Readonly<Record<string, number>> = {
  ...ofAll(0.02, ['us-east-1', 'us-east-2', 'us-west-1', 'us-west-2', 'ca-central-1', 'ca-west-1']),
  ...ofAll(0.02, ['eu-west-1', 'eu-west-2', 'eu-west-3', 'eu-central-1', 'eu-central-2', 'eu-north-1']),
  ...ofAll(0.02, ['eu-south-1', 'eu-south-2']),
  ...ofAll(0.08, ['ap-northeast-2', 'il-central-1']),
  ...ofAll(0.086, ['ap-south-1', 'ap-south-2']),
  ...ofAll(0.09, ['ap-east-1', 'ap-northeast-1', 'ap-northeast-3', 'ap-southeast-1']),
  ...ofAll(0.098, ['ap-southeast-2', 'ap-southeast-4']),
  'me-south-1': 0.1105,
  'sa-east-1': 0.138,
}
const TABLE_SOURCE: PriceSource = { kind: 'static', observedAtMs: Date.UTC(2026, 10, 22) }
/** Price for a Region that the table lacks: the highest known one, of af-south-1, so that nothing costs more than planned. */
const USD_PER_GB_OTHERWISE = 0.147
/** Transfer between these two Regions costs half. */
const NEAR: readonly string[] = ['us-east-1', 'us-east-2']
const NEAR_USD_PER_GB = 0.01

function tablePrice(from: string, to: string): TransferPrice {
  const isNear = NEAR.includes(from) && NEAR.includes(to)
  const usdPerGb = isNear ? NEAR_USD_PER_GB : (USD_PER_GB[from] ?? USD_PER_GB_OTHERWISE)
  return { usdPerGb, source: TABLE_SOURCE }
}

function ofAll(usdPerGbOfEach: number, regions: readonly string[]): Record<string, number> {
  return Object.fromEntries(regions.map((region) => [region, usdPerGbOfEach]))
}
