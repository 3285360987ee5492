import { MODAL_RATES, MODAL_RATES_DAY } from '#small-cloud/modal/rates'
import { LAMBDA_READ_DAY, LAMBDA_TYPES } from '#small-cloud/lambda/types'
import { capabilitiesOf as ec2CapabilitiesOf } from '../../backends/ec2'
import { catalogPrices } from '../../backends/ec2/market/catalog'
import { besidePrice } from '../../backends/ec2/market/disks-and-addresses'
import { capabilitiesOf as lambdaCapabilitiesOf } from '../../backends/lambda'
import type { TypesInStock } from '../../backends/lambda/api'
import { parseLambdaConfig, type LambdaConfig } from '../../backends/lambda/config'
import type { Host as LambdaHost } from '../../backends/lambda/host'
import { offers as lambdaOffers } from '../../backends/lambda/offers'
import { createMarketMemory } from '../../backends/lambda/market-memory'
import { CAPABILITIES as MODAL_CAPABILITIES } from '../../backends/modal'
import { API as MODAL_API } from '../../backends/modal/documents'
import { MODAL_GPUS } from '../../backends/modal/gpus'
import type { Host as ModalHost } from '../../backends/modal/host'
import { offers as modalOffers } from '../../backends/modal/offers'
import type { Capabilities } from '../../core/capabilities'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import type { BackendAnswer } from '../../core/job/plan'
import type { MachineShape, ResourceRequest } from '../../core/resources'
import { HOUR_MS } from '../../core/time/time'

/** The price lists of the backends that are built, as if each had just answered with everything in stock. */

/** Public transcriptions of the API's answers, see `LAMBDA_TYPES`; what workspaces reported, see `MODAL_RATES`. */
export const LAMBDA_READ_MS = Date.parse(LAMBDA_READ_DAY)
export const MODAL_READ_MS = Date.parse(MODAL_RATES_DAY)
const REGION = 'us-east-1'

const gpus = (count: number, accelerator: string, gpuMemoryGiB: number): Partial<MachineShape> => ({
  gpus: count,
  accelerator,
  gpuMemoryGiB,
})

/** Of EC2's types the ones that the tables compare (aws.amazon.com/ec2/instance-types, read in November 2026). */
const EC2_SHAPES: Readonly<Record<string, MachineShape>> = {
  'c7i.4xlarge': { cpus: 16, memoryGiB: 32, gpus: 0 },
  'g4dn.xlarge': { cpus: 4, memoryGiB: 16, gpus: 0, ...gpus(1, 'T4', 15) },
  'g6.xlarge': { cpus: 4, memoryGiB: 16, gpus: 0, ...gpus(1, 'L4', 22.35) },
  'g5.xlarge': { cpus: 4, memoryGiB: 16, gpus: 0, ...gpus(1, 'A10G', 22.35) },
  'g6e.xlarge': { cpus: 4, memoryGiB: 32, gpus: 0, ...gpus(1, 'L40S', 44.7) },
  'p5.4xlarge': { cpus: 16, memoryGiB: 256, gpus: 0, ...gpus(1, 'H100', 80) },
  'p4d.24xlarge': { cpus: 96, memoryGiB: 1152, gpus: 0, ...gpus(8, 'A100', 40) },
  'p5.48xlarge': { cpus: 192, memoryGiB: 2048, gpus: 0, ...gpus(8, 'H100', 80) },
}

/**
 * Medians over the zones of us-east-1 in the SkyPilot catalog (github.com/skypilot-org/skypilot-catalog): p4d and p5 of commit 00148f2a,
 * after AWS's price cut of June 2025; the others of commit 001367d2, before it. Types without a figure there are left out.
 */
export const EC2_SPOT_USD: Readonly<Record<string, number>> = {
  'g4dn.xlarge': 0.1869,
  'g5.xlarge': 0.4028,
  'p4d.24xlarge': 8.0001,
  'p5.48xlarge': 21.1543,
}

export const EC2_CAPABILITIES: Capabilities = ec2CapabilitiesOf({ hasSpot: true, reservations: 'all' })
export const LAMBDA_CAPABILITIES: Capabilities = lambdaCapabilitiesOf(lambdaDefaults())

function lambdaDefaults(): LambdaConfig {
  const parsed = parseLambdaConfig({ LAMBDA_API_KEY: 'secret_catalog_0123456789abcdef.0123456789abcdef' })
  if ('problems' in parsed) throw new Error(parsed.problems.join(' '))
  return parsed.config
}

const EC2_DISK_GIB = 100

/** On demand and spot, with a disk of 100 GiB and a public address. */
export function ec2Catalog(): Offer[] {
  const prices = catalogPrices(REGION)
  const beside = besidePrice(
    { disk: { sizeGiB: EC2_DISK_GIB }, subnet: { givesPublicAddress: true } },
    prices.diskRates,
  )
  return Object.entries(EC2_SHAPES).flatMap(([type, shape]) => {
    const at = (capacityType: Offer['capacityType'], usd: number | undefined): Offer[] =>
      usd === undefined
        ? []
        : [
            {
              backend: 'ec2',
              capacityType,
              type,
              place: `${REGION}a`,
              region: REGION,
              shape: { ...shape, diskGiB: EC2_DISK_GIB },
              priceMicroUsdPerHour: microUsd(usd) + beside,
              besideMicroUsdPerHour: beside,
              priceSource: { kind: 'static', observedAtMs: prices.observedAtMs },
              availability: 'unknown',
            },
          ]
    return [...at('on-demand', prices.usdPerHour(type)), ...at('spot', EC2_SPOT_USD[type])]
  })
}

async function lambdaCatalog(request: ResourceRequest): Promise<Offer[]> {
  const types: TypesInStock = Object.fromEntries(
    LAMBDA_TYPES.map((type) => [
      type.name,
      {
        instance_type: {
          name: type.name,
          gpu_description: type.gpu,
          price_cents_per_hour: type.centsPerHour,
          specs: {
            vcpus: type.vcpus,
            memory_gib: type.memoryGiB,
            storage_gib: type.storageGiB,
            gpus: type.gpus,
          },
        },
        regions_with_capacity_available: type.regions.slice(0, 1).map((name) => ({ name })),
      },
    ]),
  )
  const host = {
    config: { types: [] },
    deps: { clock: () => LAMBDA_READ_MS },
    api: { types: async () => types },
    seen: createMarketMemory(() => LAMBDA_READ_MS),
  } as unknown as LambdaHost
  return asRead(await lambdaOffers(host, request, { signal: new AbortController().signal }))
}

async function modalCatalog(request: ResourceRequest): Promise<Offer[]> {
  const host = {
    config: { gpus: MODAL_GPUS.map(({ name }) => name), runMsMax: 24 * HOUR_MS },
    deps: { clock: () => MODAL_READ_MS },
    api: {
      health: async () => ({ api: MODAL_API }),
      rates: async () => ({ observed_at_ms: MODAL_READ_MS, usd: MODAL_RATES }),
    },
  } as unknown as ModalHost
  return asRead(await modalOffers(host, request, { signal: new AbortController().signal }))
}

/** A backend calls its answer live; here it is a table. */
function asRead(offers: Offer[]): Offer[] {
  return offers.map((offer) => ({ ...offer, priceSource: { ...offer.priceSource, kind: 'static' } }))
}

/** Every backend's answer to a job's request. */
export async function catalogAnswers(request: ResourceRequest): Promise<BackendAnswer[]> {
  return [
    { backend: 'ec2', capabilities: EC2_CAPABILITIES, offers: ec2Catalog() },
    { backend: 'lambda', capabilities: LAMBDA_CAPABILITIES, offers: await lambdaCatalog(request) },
    { backend: 'modal', capabilities: MODAL_CAPABILITIES, offers: await modalCatalog(request) },
  ]
}
