/** The schema of a world file. Each field states its effect on the cloud; packages/small-cloud/WORLDS.md explains it in detail. */
import { z } from 'zod'
import { lambdaWorld } from '../lambda/world'
import { faultSchema } from './fault-schema'
import { blockMarket, cancellationShare, offeringPlan, reservationPlan } from './capacity-schema'
import { DURATIONS, duration, range } from './durations'
import { account, regionName, zoneName } from './name-schema'
import { typeDisks } from './type-disks'

const capacityType = z.enum(['spot', 'on-demand'])

/** How the machines of a subnet reach the services. */
const subnet = z.strictObject({
  zone: zoneName,
  /** `public`: internet gateway and public addresses; `nat`; `endpoints`: interface endpoints of SSM and S3; `none`. */
  egress: z.enum(['public', 'nat', 'endpoints', 'none']),
  /** Number of free addresses. */
  addresses: z.int().min(0).default(4091),
  isDefault: z.boolean().default(false),
})

const region = z.strictObject({
  zones: z.array(zoneName).min(1),
  /** Whether the default VPC exists. Many accounts have deleted theirs; then they have no default subnets. */
  hasDefaultVpc: z.boolean().default(true),
  /** Default: one public default subnet for each zone. */
  subnets: z.array(subnet).optional(),
  /** Security groups in addition to `default`: no inbound traffic, all outbound traffic. */
  groups: z.array(z.string()).default([]),
  /** Whether the account has enabled the Region: newer ones are disabled by default. */
  isEnabled: z.boolean().default(true),
  /** Service quotas by code that differ from those of the other Regions. */
  quotas: z.record(z.string(), z.int().min(0)).default({}),
})

const machineType = z.strictObject({
  vcpus: z.int().positive(),
  memoryGiB: z.number().positive(),
  architecture: z.enum(['x86_64', 'arm64']).default('x86_64'),
  accelerator: z
    .strictObject({
      name: z.string(),
      manufacturer: z.string().default('NVIDIA'),
      count: z.int().positive(),
      memoryMiB: z.int().positive(),
    })
    .optional(),
  usdPerHour: z.number().positive(),
  networkCards: z.int().positive().default(1),
  hasEfa: z.boolean().default(false),
  ...typeDisks,
})

/** Recording for a series, and the part of it to use. */
const trace = z.strictObject({
  /** A path relative to the world file. */
  file: z.string().min(1),
  /** Selects a zone of a file with several. */
  zone: z.string().optional(),
  /** Selects a window of a file with several. */
  window: z.int().optional(),
  /** The position in the recording at which the world begins. */
  offset: duration.default(0),
})

const pool = {
  region: regionName.optional(),
  zone: zoneName.optional(),
  type: z.string().optional(),
}

/** Prices in USD per hour: fixed, by changes `[when, price]`, or recorded. Times count from the start of the world. */
const price = z.strictObject({
  ...pool,
  capacity: capacityType.default('spot'),
  usdPerHour: z.number().positive().optional(),
  changes: z.array(z.tuple([duration, z.number().positive()])).optional(),
  trace: trace.optional(),
})

/** Price of a GB from one Region to another; applies to all Regions when none is named. */
const transfer = z.strictObject({
  from: regionName.optional(),
  to: regionName.optional(),
  usdPerGb: z.number().min(0),
})

/** Capacity of a pool: fixed, by changes `[when, count]`, or recorded. */
const stock = z.strictObject({
  ...pool,
  capacity: capacityType.optional(),
  count: z.int().min(0).optional(),
  changes: z.array(z.tuple([duration, z.int().min(0)])).optional(),
  trace: trace.optional(),
})

const exactlyOne = (names: readonly string[], what: string) => ({
  check: (rule: object) =>
    names.filter((name) => (rule as Record<string, unknown>)[name] !== undefined).length === 1,
  words: `needs exactly one of ${names.join(', ')} to say ${what}`,
})
const ofPrice = exactlyOne(['usdPerHour', 'changes', 'trace'], 'what it costs')
const ofStock = exactlyOne(['count', 'changes', 'trace'], 'how much there is')

const document = z.looseObject({ Statement: z.union([z.array(z.looseObject({})), z.looseObject({})]) })

/** The permissions boundary: what a user or role may do at most; no limit without one. */
const boundary = document.optional()

/** The user `root` is the owner of the account. */
const user = z.strictObject({
  accessKeyId: z.string().min(1),
  secretAccessKey: z.string().min(1),
  /** Names of managed policies that the cloud knows, or `AdministratorAccess`. */
  managed: z.array(z.string()).default([]),
  policies: z.record(z.string(), document).default({}),
  boundary,
})
const role = z.strictObject({
  /** Single sign-on roles have one: `/aws-reserved/sso.amazonaws.com/`. */
  path: z.string().startsWith('/').endsWith('/').optional(),
  managed: z.array(z.string()).default([]),
  policies: z.record(z.string(), document).default({}),
  boundary,
  /** The principals that may assume the role: services, or `account` for every identity of this account with `sts:AssumeRole`. */
  trusts: z.array(z.string()).default(['account']),
  sessionMax: duration.default(3_600_000),
  /** Whether it has an instance profile of the same name. */
  hasProfile: z.boolean().default(false),
})

const bucket = z.strictObject({ size: z.number().positive(), perSecond: z.number().min(0) })
const keyArn = z.string().regex(/^arn:aws:kms:[a-z0-9-]+:\d{12}:key\/[\w-]+$/, 'is not the ARN of a KMS key')
const throttling = z.union([
  z.enum(['documented', 'off']),
  z.strictObject({
    describe: bucket.optional(),
    unfiltered: bucket.optional(),
    mutate: bucket.optional(),
    createTags: bucket.optional(),
    instances: bucket.optional(),
    ssm: bucket.optional(),
  }),
])

export const worldSchema = z.strictObject({
  /** Seed of all random draws of the world, which it repeats. */
  seed: z.union([z.int(), z.string()]).default(1),
  account: account.default('111122223333'),
  /** New accounts may be on the free plan, which launches only a few small types. */
  plan: z.enum(['free', 'paid']).default('paid'),
  /** How far the cloud's clock is ahead of this host's clock. The cloud's clock counts as correct. */
  ahead: duration.default(0),
  /** Minutes of prices, stock and recordings per minute of the clock. */
  speed: z.number().positive().default(1),
  durations: z
    .strictObject(Object.fromEntries(Object.keys(DURATIONS).map((name) => [name, range.optional()])))
    .default({}),
  regions: z.record(regionName, region).optional(),
  types: z.record(z.string(), machineType).default({}),
  /** Whether machines show the local disks of their type, on hosts with namespaces. */
  localDisks: z.boolean().default(false),
  /**
   * The share of their true speed at which machines exchange data with the object store: that of the root disk, of the type's link to its
   * disks, and of its network. Unlimited when missing.
   */
  throughput: z.number().positive().optional(),
  /** The offered types, if not all. A type that is listed for zones is not offered in the others. */
  offered: z.record(z.string(), z.array(zoneName)).default({}),
  prices: z.array(price.refine(ofPrice.check, ofPrice.words)).default([]),
  stock: z.array(stock.refine(ofStock.check, ofStock.words)).default([]),
  /** The last matching rule wins; $0.02 without one. */
  transfers: z.array(transfer).default([]),
  /** Durations count from the start of the world; instants are also possible. */
  reservations: z.array(reservationPlan).default([]),
  /** Capacity Blocks that EC2 offers; without any, none is for sale. */
  blockOfferings: z.array(offeringPlan).default([]),
  /** Behaviour of the sale of Capacity Blocks that AWS does not document. */
  blockMarket: blockMarket.prefault({}),
  /** The share of its commitment that a future-dated reservation is charged when it is cancelled before its start. */
  cancellationShare,
  /** Capacity scores by type, for an account whose support plan has them. */
  capacityScores: z.record(z.string(), z.enum(['high', 'medium', 'low', 'unsupported'])).optional(),
  /** Interruption bands of types in the Spot Instance Advisor, from 0 (below 5 %) to 4 (above 20 %). */
  interruptionBands: z.record(z.string(), z.int().min(0).max(4)).default({}),
  /** Service quotas by code, in vCPUs. */
  quotas: z
    .record(z.string().regex(/^L-[0-9A-F]{8}$/, 'is not a quota code, such as L-DB2E81BA'), z.number().min(0))
    .default({}),
  /** The KMS key of the company that encrypts disks; AWS's own when missing. */
  diskKey: keyArn.optional(),
  /** The policies of KMS keys by ARN; others let the policies of identities decide. */
  keys: z
    .record(
      keyArn,
      z.strictObject({
        /** Whether it lets the policies of identities decide, as keys made by the console do. */
        delegates: z.boolean().default(true),
        /** Patterns of the ARNs of identities that it allows itself. */
        users: z.array(z.string()).default([]),
      }),
    )
    .default({}),
  users: z.record(z.string(), user).default({}),
  /** Default: the usual ones. */
  roles: z.record(z.string(), role).optional(),
  /** Services whose service-linked role the account already has; spot machines need that of `spot.amazonaws.com`. */
  linkedRoles: z.array(z.literal('spot.amazonaws.com')).default(['spot.amazonaws.com']),
  /** The decision on a quota increase request after a delay; pending forever when missing. */
  quotaDecision: z.strictObject({ after: duration, isGranted: z.boolean() }).optional(),
  /** Additional public parameters by name, for custom image aliases. */
  parameters: z.record(z.string().startsWith('/'), z.string()).default({}),
  /** The images of these public parameters are deprecated: they launch, but lists show them only on request. */
  deprecatedImages: z.array(z.string().startsWith('/')).default([]),
  /** The registries for container engines on the machines. Amazon's own registry always requires its tokens. */
  docker: z
    .strictObject({
      /** Duration of a pull. */
      pull: duration.default(0),
      /** Patterns of the full names of existing images; default: all. */
      images: z.array(z.string()).optional(),
      /** Parts of names of images that no registry has. */
      absentImages: z.array(z.string()).default([]),
      /** Registries that require a login, by host. */
      logins: z
        .record(z.string(), z.strictObject({ username: z.string(), password: z.string() }))
        .default({}),
    })
    .prefault({}),
  throttling: throttling.default('documented'),
  /** Lambda Cloud. */
  lambda: lambdaWorld.prefault({}),
  /** Modal. */
  modal: z
    .strictObject({
      /** The Secrets of the workspace by name, with their variables; callers of the gateway may name each. */
      secrets: z.record(z.string(), z.record(z.string(), z.string())).default({}),
    })
    .prefault({}),
  faults: z.array(faultSchema).default([]),
})

export type WorldText = z.input<typeof worldSchema>
export type WorldPlan = z.output<typeof worldSchema>
export type PriceRule = WorldPlan['prices'][number]
export type StockRule = WorldPlan['stock'][number]
export type SubnetPlan = z.output<typeof subnet>
export type RolePlan = z.output<typeof role>
export type UserPlan = z.output<typeof user>
export type CapacityType = z.output<typeof capacityType>
