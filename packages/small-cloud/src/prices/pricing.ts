/** The price list: on-demand machines, disks, and data transfer between Regions. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { action, type Service } from '../wire/service'
import type { Market } from '../world/market'
import type { MachineType } from '../world/types'
import type { World } from '../world/world'
import { DISK_USD } from './beside'
import { locationOf, skuOf, type Product } from './products'
import { transferProducts } from './transfer'

const HOURLY = '6YS6EN2CT7'
const MIB_PER_GIB = 1024

const filter = z.strictObject({
  Type: z.enum(['TERM_MATCH', 'EQUALS']),
  Field: z.string(),
  Value: z.string(),
})

export function pricingService(world: World, market: Market, nowMs: () => number): Service {
  return {
    name: 'pricing',
    style: 'json',
    namespace: 'AWSPriceListService',
    actions: {
      GetProducts: action({
        input: z.strictObject({
          ServiceCode: z.string(),
          FormatVersion: z.literal('aws_v1').default('aws_v1'),
          Filters: z.array(filter).default([]),
          MaxResults: z.int().min(1).max(100).default(100),
          NextToken: z.string().optional(),
        }),
        run({ ServiceCode, FormatVersion, Filters, MaxResults, NextToken }) {
          const found = productsOf(ServiceCode, { world, market }).filter(({ attributes }) =>
            Filters.every(({ Field, Value }) => attributes[Field]?.toLowerCase() === Value.toLowerCase()),
          )
          const from = NextToken === undefined ? 0 : Number(Buffer.from(NextToken, 'base64').toString())
          if (!Number.isInteger(from) || from < 0)
            throw new ApiError('InvalidNextTokenException', 'The pagination token is invalid.')
          const end = from + MaxResults
          return {
            FormatVersion,
            PriceList: found
              .slice(from, end)
              .map((product) => JSON.stringify(listing(product, ServiceCode, new Date(nowMs())))),
            ...(end < found.length ? { NextToken: Buffer.from(String(end)).toString('base64') } : {}),
          }
        },
      }),
    },
  }
}

function productsOf(service: string, { world, market }: { world: World; market: Market }): Product[] {
  if (service === 'AmazonEC2') return machinesAndDisks(world, market)
  if (service === 'AWSDataTransfer') return transferProducts(world)
  throw new ApiError(
    'InvalidParameterException',
    `This small cloud has the prices of AmazonEC2 and AWSDataTransfer, not of ${service}`,
  )
}

function machinesAndDisks(world: World, market: Market): Product[] {
  return [...world.regions].flatMap(([region, { zones }]) => [
    ...disksOf(region),
    ...[...world.types.values()]
      .filter(({ name }) => zones.some((zone) => market.isOffered(name, zone.name)))
      .map((type): Product => {
        const pool = { region, zone: zones[0]!.name, type: type.name, capacity: 'on-demand' as const }
        const usd = market.priceOf(pool)
        return {
          family: 'Compute Instance',
          attributes: attributesOf(type, region),
          sku: skuOf(region, type.name),
          usd,
          unit: 'Hrs',
          words: `$${usd} per On Demand Linux ${type.name} Instance Hour`,
        }
      }),
  ])
}

/** The three products of a gp3 disk: its size, and what it does beyond the included speed. */
function disksOf(region: string): Product[] {
  const attributes = { ...placeOf(region), volumeType: 'General Purpose', volumeApiName: 'gp3' }
  const product = (
    family: string,
    usagetype: string,
    { usd, unit, of }: Pick<Product, 'usd' | 'unit'> & { of: string },
  ): Product => ({
    family,
    attributes: { ...attributes, usagetype },
    sku: skuOf(region, usagetype),
    usd,
    unit,
    words: `$${usd} per ${of}`,
  })
  const { perGiBMonth, perIopsMonth, perMibpsMonth } = DISK_USD
  return [
    product('System Operation', 'EBS:VolumeP-IOPS.gp3', {
      usd: perIopsMonth,
      unit: 'IOPS-Mo',
      of: 'IOPS-month provisioned (gp3)',
    }),
    // The list prices this by the GiB/s.
    product('Provisioned Throughput', 'EBS:VolumeP-Throughput.gp3', {
      usd: perMibpsMonth * MIB_PER_GIB,
      unit: 'GiBps-mo',
      of: 'provisioned MiBps-month of gp3',
    }),
    product('Storage', 'EBS:VolumeUsage.gp3', {
      usd: perGiBMonth,
      unit: 'GB-Mo',
      of: 'GB-month of General Purpose (gp3) provisioned storage',
    }),
  ]
}

function placeOf(region: string): Record<string, string> {
  return {
    servicecode: 'AmazonEC2',
    servicename: 'Amazon Elastic Compute Cloud',
    location: locationOf(region),
    locationType: 'AWS Region',
    regionCode: region,
  }
}

function attributesOf(
  { name, vcpus, memoryGiB, accelerator }: MachineType,
  region: string,
): Record<string, string> {
  return {
    ...placeOf(region),
    instanceType: name,
    currentGeneration: 'Yes',
    instanceFamily: accelerator === undefined ? 'General purpose' : 'GPU instance',
    vcpu: String(vcpus),
    memory: `${memoryGiB} GiB`,
    ...(accelerator === undefined
      ? {}
      : {
          gpu: String(accelerator.count),
          gpuMemory: `${accelerator.count * labelGb(accelerator.memoryMiB)} GB`,
        }),
    operatingSystem: 'Linux',
    licenseModel: 'No License required',
    preInstalledSw: 'NA',
    tenancy: 'Shared',
    capacitystatus: 'Used',
    marketoption: 'OnDemand',
    operation: 'RunInstances',
    usagetype: `BoxUsage:${name}`,
  }
}

/** Returns one product in the format of the price list. */
function listing({ family, attributes, sku, usd, unit, words }: Product, serviceCode: string, at: Date) {
  const offer = `${sku}.JRTCKXETXF`
  const rate = `${offer}.${HOURLY}`
  return {
    product: { productFamily: family, attributes, sku },
    serviceCode,
    terms: {
      OnDemand: {
        [offer]: {
          priceDimensions: {
            [rate]: {
              unit,
              endRange: 'Inf',
              description: words,
              appliesTo: [],
              rateCode: rate,
              beginRange: '0',
              pricePerUnit: { USD: usd.toFixed(10) },
            },
          },
          sku,
          effectiveDate: '2026-11-01T00:00:00Z',
          offerTermCode: 'JRTCKXETXF',
          termAttributes: {},
        },
      },
    },
    version: at.toISOString().slice(0, 10).replaceAll('-', ''),
    publicationDate: at.toISOString(),
  }
}

/** Returns the size in the price list's unit. Types whose MiB are not whole GiB count 10^9 bytes per GB. */
function labelGb(memoryMiB: number): number {
  return memoryMiB % 1024 === 0 ? memoryMiB / 1024 : Math.round((memoryMiB * 2 ** 20) / 1e9)
}
