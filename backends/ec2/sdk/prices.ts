import { paginateGetProducts, type Filter, type PricingClient } from '@aws-sdk/client-pricing'
import type { MarketApi } from './api'
import { call } from './errors'

const EC2 = 'AmazonEC2'
const MIB_PER_GIB = 1024

/** The Regions that serve the price list, each with the prices of all Regions. */
const PRICING_REGIONS = ['us-east-1', 'eu-central-1', 'ap-south-1']

/** Returns the Region that answers price requests of a Region. */
export function pricingRegionOf(region: string): string {
  return PRICING_REGIONS.includes(region) ? region : PRICING_REGIONS[0]!
}

/** Filter for disks in the Region itself, not in its Local Zones and the like. */
const DISKS = { locationType: 'AWS Region', volumeApiName: 'gp3' }

/** Linux on shared hardware, by the hour. */
const MACHINES = {
  operatingSystem: 'Linux',
  tenancy: 'Shared',
  preInstalledSw: 'NA',
  capacitystatus: 'Used',
  marketoption: 'OnDemand',
}

/** The calls of the price list. */
export function createPricesApi(
  pricing: PricingClient,
): Pick<MarketApi, 'onDemandPrices' | 'onDemandPrice' | 'diskRates' | 'transferUsdPerGb'> {
  return {
    onDemandPrices: (region, signal) =>
      call(signal, async () => {
        const prices = new Map<string, string>()
        const attributes = { regionCode: region, ...MACHINES }
        for (const product of await products(pricing, { service: EC2, attributes }, signal)) {
          const type = product.product?.attributes?.instanceType
          const usdPerHour = priceOf(product, 'Hrs')
          if (type !== undefined && usdPerHour !== undefined) prices.set(type, usdPerHour)
        }
        return prices
      }),
    onDemandPrice: ({ region, type }, signal) =>
      call(signal, async () => {
        const attributes = { regionCode: region, instanceType: type, ...MACHINES }
        const found = await products(pricing, { service: EC2, attributes }, signal)
        return found.map((product) => priceOf(product, 'Hrs')).find((price) => price !== undefined)
      }),
    diskRates: (region, signal) =>
      call(signal, async () => {
        const attributes = { regionCode: region, ...DISKS }
        const found = await products(pricing, { service: EC2, attributes }, signal)
        // The three prices are products with the same name and different units; throughput is listed by the GiB/s.
        const rate = (unit: Unit): number | undefined => {
          const usd = found.map((product) => priceOf(product, unit)).find((price) => price !== undefined)
          return usd === undefined ? undefined : Number(usd)
        }
        const usdPerGibps = rate('GiBps-mo')
        const usdPerMibpsMonth = usdPerGibps === undefined ? rate('MiBps-Mo') : usdPerGibps / MIB_PER_GIB
        const [usdPerGiBMonth, usdPerIopsMonth] = [rate('GB-Mo'), rate('IOPS-Mo')]
        return usdPerGiBMonth === undefined || usdPerMibpsMonth === undefined || usdPerIopsMonth === undefined
          ? undefined
          : { usdPerGiBMonth, usdPerMibpsMonth, usdPerIopsMonth }
      }),
    transferUsdPerGb: ({ from, to }, signal) =>
      call(signal, async () => {
        const attributes = { fromRegionCode: from, toRegionCode: to, transferType: 'InterRegion Outbound' }
        const found = await products(pricing, { service: 'AWSDataTransfer', attributes }, signal)
        // Some services have additional or different charges with separate names.
        const usual = found.filter(({ product }) =>
          /-AWS-Out-Bytes$/.test(product?.attributes?.usagetype ?? ''),
        )
        const prices = usual.map((product) => priceOf(product, 'GB')).filter((price) => price !== undefined)
        return prices.sort((a, b) => Number(b) - Number(a))[0]
      }),
  }
}

type Unit = 'Hrs' | 'GB-Mo' | 'GB' | 'GiBps-mo' | 'MiBps-Mo' | 'IOPS-Mo'

interface Product {
  product?: { attributes?: { instanceType?: string; usagetype?: string } }
  terms?: {
    OnDemand?: Record<
      string,
      { priceDimensions?: Record<string, { unit?: string; pricePerUnit?: { USD?: string } }> }
    >
  }
}

async function products(
  client: PricingClient,
  { service, attributes }: { service: string; attributes: Record<string, string> },
  signal: AbortSignal,
): Promise<Product[]> {
  const Filters = Object.entries(attributes).map(([Field, Value]): Filter => ({
    Type: 'TERM_MATCH',
    Field,
    Value,
  }))
  const pages = paginateGetProducts(
    { client, pageSize: 100 },
    { ServiceCode: service, FormatVersion: 'aws_v1', Filters },
    { abortSignal: signal },
  )
  const found: Product[] = []
  for await (const { PriceList } of pages)
    for (const text of PriceList ?? []) found.push(JSON.parse(String(text)) as Product)
  return found
}

/** The only price of a product of the price list for a unit. */
function priceOf({ terms }: Product, wanted: Unit): string | undefined {
  const dimensions = Object.values(terms?.OnDemand ?? {}).flatMap(({ priceDimensions }) =>
    Object.values(priceDimensions ?? {}),
  )
  return dimensions.find(({ unit, pricePerUnit }) => unit === wanted && Number(pricePerUnit?.USD) > 0)
    ?.pricePerUnit?.USD
}
