import { formatUsd, type MicroUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import { formatBytes } from '../../core/resources'
import type { PlanRequest } from './request'

/** Providers bill by 10^9 bytes. */
export const BYTES_PER_GB = 1e9

/** The cost of reading a job's inputs, for all its machines together. */
export interface InputTraffic {
  bytes: number
  costMicroUsd: MicroUsd
  /** Expected bytes per second for one machine; missing if no input is counted. */
  bytesPerSecond?: number
  /** The source Regions, each with its price per GB. */
  ways: { region: string; microUsdPerGb: MicroUsd }[]
  /** Number of inputs with an unknown size, Region or price. */
  uncounted: number
}

type OfInputs = Pick<PlanRequest, 'answers' | 'inputSizes' | 'spec'>

/** Returns the traffic of inputs. Each machine reads all inputs; reads from its own Region or its own disk are free. */
export function inputTrafficOf(
  offer: Pick<Offer, 'region' | 'transfer'>,
  { answers, inputSizes = [], spec }: OfInputs,
  machines: number,
): InputTraffic {
  const traffic: InputTraffic = { bytes: 0, costMicroUsd: 0, ways: [], uncounted: 0 }
  for (const { source } of spec.inputs) {
    if (source.startsWith('file://')) continue
    const { region, sizeBytes } = inputSizes.find((one) => one.source === source) ?? {}
    if (region !== undefined && region === offer.region) continue
    const way = region === undefined ? undefined : wayFrom(region, offer, answers)
    if (region === undefined || sizeBytes === undefined || way === undefined) {
      traffic.uncounted += 1
      continue
    }
    const bytes = Math.round(sizeBytes * machines)
    traffic.bytes += bytes
    traffic.costMicroUsd += Math.ceil((bytes * way.microUsdPerGb) / BYTES_PER_GB)
    traffic.bytesPerSecond = way.bytesPerSecond
    if (!traffic.ways.some((one) => one.region === region))
      traffic.ways.push({ region, microUsdPerGb: way.microUsdPerGb })
  }
  return traffic
}

/**
 * Returns price and speed of a transfer from a Region to the machines of an offer. An offer has the prices between its own Region and the
 * store's, so a transfer that neither starts nor ends in the store's Region has no known price.
 */
function wayFrom(
  region: string,
  { region: own, transfer }: Pick<Offer, 'region' | 'transfer'>,
  answers: PlanRequest['answers'],
): { microUsdPerGb: MicroUsd; bytesPerSecond: number } | undefined {
  if (transfer !== undefined) {
    if (transfer.storeRegion !== region) return undefined
    return { microUsdPerGb: transfer.downMicroUsdPerGb, bytesPerSecond: transfer.bytesPerSecond }
  }
  const there = answers
    .flatMap(({ offers }) => offers)
    .find((one) => one.region === region && one.transfer?.storeRegion === own)?.transfer
  return there && { microUsdPerGb: there.upMicroUsdPerGb, bytesPerSecond: there.bytesPerSecond }
}

/** `including $0.80 for reading 40 GB of inputs from us-east-1, at $0.02 per GB` */
export function inputsInWords({ bytes, costMicroUsd, ways, uncounted }: InputTraffic): string | undefined {
  if (ways.length === 0) return undefined
  const from = ways.map(({ region, microUsdPerGb }) => `${region}, at ${formatUsd(microUsdPerGb)} per GB`)
  const more =
    uncounted === 0 ? '' : `; ${uncounted === 1 ? 'one input is' : `${uncounted} inputs are`} not included`
  return `including ${formatUsd(costMicroUsd)} for reading ${formatBytes(bytes)} of inputs from ${from.join(' and ')}${more}`
}
