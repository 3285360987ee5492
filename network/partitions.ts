/** The partitions of AWS (its public cloud, China, GovCloud, European Sovereign Cloud and closed ones), by the endpoint rules of its SDK. */
import type * as SdkClient from '@aws-sdk/core/client'

/** The public cloud, with most accounts. */
export const PUBLIC_PARTITION = 'aws'

interface Partition {
  /** The name in ARNs, such as `aws-us-gov`. */
  name: string
  /** The end of the names of its servers, such as `amazonaws.com`. */
  dnsSuffix: string
  /** The name of the Region for people, such as `AWS GovCloud (US-West)`; missing for a Region that the SDK knows only by its form. */
  description?: string
}

/** The partition of a Region; also of one that is younger than the SDK, by the form of its name. */
export function partitionOf(region: string): Partition {
  // Commands that write no ARN do not wait for this package.
  const { partition } = require('@aws-sdk/core/client') as typeof SdkClient
  return partition(region)
}

/** An ARN in the partition of a Region. `rest` follows the partition: `iam::123456789012:role/crucible-worker`. */
export function arnIn(region: string, rest: string): string {
  return `arn:${partitionOf(region).name}:${rest}`
}
