/** Reserved capacity in a world file: the account's own, and the offers of EC2. */
import { z } from 'zod'
import { duration, moment } from './durations'
import { account, zoneName } from './name-schema'
import { constant, seriesOf } from './series'

/** Reserved capacity of the account, its own or shared by another: on demand, or bought in advance as a Capacity Block. */
export const reservationPlan = z
  .strictObject({
    kind: z.enum(['on-demand', 'capacity-block']),
    type: z.string(),
    zone: zoneName,
    count: z.int().min(1).max(1000),
    /** `open`: matching launches that name no reservation use it. Blocks are always `targeted`. */
    matching: z.enum(['open', 'targeted']).default('targeted'),
    starts: moment.default({ afterMs: 0 }),
    /** End; missing for a reservation that lasts until it is cancelled; a block requires it. */
    ends: moment.optional(),
    /** The price paid for a block. */
    upfrontUsd: z.number().min(0).default(0),
    /** Whether the payment of a future block succeeds. */
    payment: z.enum(['succeeds', 'fails']).default('succeeds'),
    /** A block of UltraServers: their type, such as `u-p6e-gb200x72`. */
    ultraserver: z.string().optional(),
    /** Account that shares it, if it is another one. */
    owner: account.optional(),
    /** Lent by its owner, who takes it back with a notice of two minutes: launches need a market type of its own. */
    isInterruptible: z.literal(true).optional(),
  })
  .refine(
    ({ kind, ends, matching }) => kind === 'on-demand' || (ends !== undefined && matching === 'targeted'),
    'a capacity-block needs `ends`, and is always targeted',
  )

/** A number, or its changes `[when, number]` since the start of the world. */
const overTime = (value: z.ZodNumber) =>
  z.union([
    value.transform((number) => constant(number)),
    z
      .array(z.tuple([duration, value]))
      .min(1)
      .transform((changes) => seriesOf(changes)),
  ])

/** Capacity Blocks for sale: up to a size, in a zone, at a price, that begin and end within a time. */
export const offeringPlan = z.strictObject({
  type: z.string(),
  zone: zoneName,
  /** The largest block; of an UltraServer, the number of its instances. */
  count: z.int().min(1).max(64),
  /** The type of UltraServer that is for sale, such as `u-p6e-gb200x72`, one by one. */
  ultraserver: z.string().optional(),
  usdPerInstanceHour: overTime(z.number().positive()),
  /** Limit on instances in blocks at the same time, including those of the account; unlimited when missing. */
  stock: overTime(z.number().int().min(0)).optional(),
  starts: moment.default({ afterMs: 0 }),
  /** End of the sale; without it, EC2's own limit of eight weeks applies. */
  ends: moment.optional(),
})

/** Behaviour of the sale of Capacity Blocks that AWS does not document. */
export const blockMarket = z.strictObject({
  /** Whether one offering id can be bought again while stock remains. */
  sellsTwice: z.boolean().default(true),
  /** Whether an offering keeps the price at which it was listed; otherwise it disappears when the price changes. */
  keepsPrice: z.boolean().default(true),
  /** `DescribeCapacityReservations` filters by tags; otherwise it refuses such filters. */
  filtersByTag: z.boolean().default(true),
  /** Code for a launch into a block that has not begun: for lack of capacity, or the one that AWS lists for such a block. */
  earlyLaunch: z
    .enum(['ReservationCapacityExceeded', 'InvalidCapacityReservationState.PendingActivation'])
    .default('ReservationCapacityExceeded'),
})

/** AWS documents that the charge depends on how close the start is, but not how. */
export const cancellationShare = z.number().min(0).max(1).default(0.5)

export type ReservationText = z.input<typeof reservationPlan>
export type ReservationPlan = z.output<typeof reservationPlan>
export type OfferingPlan = z.output<typeof offeringPlan>
