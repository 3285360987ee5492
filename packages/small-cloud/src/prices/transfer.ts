/** Prices of data transfer between Regions, in the price list's form under the service `AWSDataTransfer`: products of pairs of Regions. */
import type { World } from '../world/world'
import { locationOf, skuOf, type Product } from './products'

/** Price of outbound data from most Regions to another Region. */
const USD_PER_GB = 0.02

/** Returns one product for each direction of each pair: outbound data is billed, inbound data is free. */
export function transferProducts({ regions, transfers }: World): Product[] {
  const names = [...regions.keys()]
  const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => ({ from, to })))
  return pairs.flatMap(({ from, to }) => {
    const rule = transfers.findLast((each) => (each.from ?? from) === from && (each.to ?? to) === to)
    const usd = rule?.usdPerGb ?? USD_PER_GB
    return [
      product({ from, to, usd, direction: 'Outbound' }),
      product({ from: to, to: from, usd: 0, direction: 'Inbound' }),
    ]
  })
}

interface Way {
  from: string
  to: string
  usd: number
  direction: 'Inbound' | 'Outbound'
}

function product({ from, to, usd, direction }: Way): Product {
  const usagetype = `${usageName(from)}-${usageName(to)}-AWS-${direction === 'Outbound' ? 'Out' : 'In'}-Bytes`
  return {
    family: 'Data Transfer',
    attributes: {
      servicecode: 'AWSDataTransfer',
      servicename: 'AWS Data Transfer',
      transferType: `InterRegion ${direction}`,
      fromLocation: locationOf(from),
      fromLocationType: 'AWS Region',
      fromRegionCode: from,
      toLocation: locationOf(to),
      toLocationType: 'AWS Region',
      toRegionCode: to,
      usagetype,
      operation: '',
    },
    sku: skuOf(from, usagetype),
    usd,
    unit: 'GB',
    words: `$${usd} per GB - ${locationOf(from)} data transfer to ${locationOf(to)}`,
  }
}

/** `us-east-1` is `USE1` in bills. */
function usageName(region: string): string {
  const [country = '', ...rest] = region.split('-')
  const number = rest.pop() ?? ''
  const directions = rest.join('').match(/north|south|east|west|central/g) ?? []
  return `${country}${directions.map((one) => one[0]).join('')}${number}`.toUpperCase()
}
