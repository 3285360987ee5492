/** Token buckets as documented for EC2: for each account and region, by kind of action. */
import type { Clock } from '../clock'
import { TokenBuckets, type Bucket } from '../token-buckets'
import type { World } from '../world/world'

export type BucketName = 'describe' | 'unfiltered' | 'mutate' | 'createTags' | 'instances' | 'ssm'

/** Documented limits of the EC2 API throttling page, read November 2026; it does not document those of SSM. */
const DOCUMENTED: Readonly<Partial<Record<BucketName, Bucket>>> = {
  describe: { size: 100, perSecond: 20 },
  unfiltered: { size: 50, perSecond: 10 },
  mutate: { size: 50, perSecond: 5 },
  createTags: { size: 100, perSecond: 10 },
  instances: { size: 1000, perSecond: 2 },
}

/** Throttles the calls to services. */
export class Throttle {
  private readonly levels: TokenBuckets
  private readonly buckets: Readonly<Partial<Record<BucketName, Bucket>>>

  constructor({ throttling }: World, clock: Clock) {
    this.levels = new TokenBuckets(clock)
    const written =
      typeof throttling === 'object' ? (Object.entries(throttling) as [BucketName, Bucket | undefined][]) : []
    const given = Object.fromEntries(written.filter(([, bucket]) => bucket !== undefined))
    this.buckets = throttling === 'off' ? {} : { ...DOCUMENTED, ...given }
  }

  /** Takes tokens. Returns false, and takes none, when there are too few. */
  take(name: BucketName, region: string, count = 1): boolean {
    const bucket = this.buckets[name]
    return bucket === undefined || this.levels.take(`${region}/${name}`, bucket, count)
  }

  /** Returns the bucket of an EC2 action. */
  bucketOf(action: string, input: Readonly<Record<string, unknown>>): BucketName {
    if (action === 'CreateTags') return 'createTags'
    if (!/^(Describe|Get|List)/.test(action)) return 'mutate'
    const isNarrowed = Object.entries(input).some(
      ([name, value]) =>
        name !== 'DryRun' && value !== undefined && !(Array.isArray(value) && value.length === 0),
    )
    return isNarrowed ? 'describe' : 'unfiltered'
  }
}
