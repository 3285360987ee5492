/** The price list entry of one product. */
import { createHash } from 'node:crypto'

export interface Product {
  family: string
  attributes: Record<string, string>
  sku: string
  usd: number
  unit: 'Hrs' | 'GB-Mo' | 'GB' | 'IOPS-Mo' | 'GiBps-mo'
  words: string
}

const LOCATIONS: Readonly<Record<string, string>> = {
  'us-east-1': 'US East (N. Virginia)',
  'us-east-2': 'US East (Ohio)',
  'us-west-1': 'US West (N. California)',
  'us-west-2': 'US West (Oregon)',
  'eu-west-1': 'EU (Ireland)',
  'eu-central-1': 'EU (Frankfurt)',
}
/** The name of a Region in the list; its code when this cloud does not know the name. */
export function locationOf(region: string): string {
  return LOCATIONS[region] ?? region
}

export function skuOf(region: string, name: string): string {
  return createHash('sha256').update(`${region}/${name}`).digest('hex').slice(0, 16).toUpperCase()
}
