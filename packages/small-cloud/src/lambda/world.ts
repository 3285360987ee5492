/** The part of a world file about Lambda. */
import { z } from 'zod'
import { duration } from '../world/durations'
import { LAMBDA_REGIONS, LAMBDA_TYPES } from './types'

const region = z.string().refine((name) => Object.hasOwn(LAMBDA_REGIONS, name), {
  error: () => `is not a region of Lambda; it has ${Object.keys(LAMBDA_REGIONS).join(', ')}`,
})
const type = z.string().refine((name) => LAMBDA_TYPES.some((each) => each.name === name), {
  error: () => `is not a type of Lambda; it has ${LAMBDA_TYPES.map(({ name }) => name).join(', ')}`,
})
const bucket = z.strictObject({ size: z.number().positive(), perSecond: z.number().min(0) })

/** Capacity: fixed, or by changes `[when, count]` since the start of the world. */
const stock = z
  .strictObject({
    region: region.optional(),
    type: type.optional(),
    count: z.int().min(0).optional(),
    changes: z
      .array(z.tuple([duration, z.int().min(0)]))
      .min(1)
      .optional(),
  })
  .refine(({ count, changes }) => (count === undefined) !== (changes === undefined), 'needs count or changes')

export const lambdaWorld = z.strictObject({
  /** Default: a drawn one. */
  apiKey: z.string().min(1).optional(),
  account: z.enum(['active', 'inactive', 'invalid-address']).default('active'),
  /** Largest number of instances at a time. */
  quota: z.int().min(0).default(100),
  /** The last matching rule wins; unlimited without one. */
  stock: z.array(stock).default([]),
  /** Prices that differ, in US cents per hour. */
  prices: z.record(type, z.int().min(0)).default({}),
  /** Names of SSH keys that exist. */
  sshKeys: z.array(z.string()).default(['crucible']),
  fileSystems: z.array(z.strictObject({ name: z.string(), region })).default([]),
  throttling: z
    .union([
      z.enum(['documented', 'off']),
      z.strictObject({ requests: bucket.optional(), launches: bucket.optional() }),
    ])
    .default('documented'),
})

export type LambdaPlan = z.output<typeof lambdaWorld>
