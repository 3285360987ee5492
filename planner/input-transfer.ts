import { formatUsd, type MicroUsd } from '../core/money'
import type { Offer } from '../core/offer'
import { formatBytes } from '../core/resources'
import type { PlanRequest } from './request'

/** Providers bill by 10^9 bytes. */
export const BYTES_PER_GB = 1e9

/** What was found out of one input before the job begins. */
export interface InputSize {
  source: string
  sizeBytes: number
  /** The Region of its bucket, where it is one of the provider's. */
  region?: string
}

/** What the inputs of a job cost to read, all machines together. */
export interface InputTraffic {
  bytes: number
  costMicroUsd: MicroUsd
  /** Bytes a second at which one machine is expected to read them; missing where none is counted. */
  bytesPerSecond?: number
  /** From where they come, with the price of a GB from there. */
  ways: { region: string; microUsdPerGb: MicroUsd }[]
  /** Those of which size, Region or price is not known. */
  uncounted: number
}

type OfInputs = Pick<PlanRequest, 'answers' | 'inputSizes' | 'spec'>

/** Each machine reads all inputs. What comes from its own Region is free, and so is what comes from its own disk. */
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
 * The way of data from a Region to machines of an offer. Offers say the prices between their Region and that of the store; that of the
 * store has them from the others. Nothing is known of a way that neither begins nor ends at the store.
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

/** `of that $0.80 for reading 40 GB of inputs from us-east-1, at $0.02 a GB` */
export function inputsInWords({ bytes, costMicroUsd, ways, uncounted }: InputTraffic): string | undefined {
  if (ways.length === 0) return undefined
  const from = ways.map(({ region, microUsdPerGb }) => `${region}, at ${formatUsd(microUsdPerGb)} a GB`)
  const more =
    uncounted === 0 ? '' : `; ${uncounted === 1 ? 'one input is' : `${uncounted} inputs are`} not in it`
  return `of that ${formatUsd(costMicroUsd)} for reading ${formatBytes(bytes)} of inputs from ${from.join(' and ')}${more}`
}
