import { formatInstant } from '../../../core/time/time'
import { Expression, writeBlocks, type Block, type Value } from './hcl'
import { feeInWords } from './offerings'
import type { BlockOffering } from '../sdk/api-capacity'
import type { Reservation } from '../sdk/api'

/** The version that knows a Region for each resource. */
const PROVIDER_VERSION = '>= 6.0'
const PLATFORM = 'Linux/UNIX'

export interface InRegion<T> {
  region: string
  value: T
}

function written(blocks: readonly Block[]): string {
  const provider: Block = {
    kind: 'terraform',
    blocks: [
      {
        kind: 'required_providers',
        attributes: { aws: { source: 'hashicorp/aws', version: PROVIDER_VERSION } },
      },
    ],
  }
  return writeBlocks([provider, ...blocks])
}

const nameOf = (id: string): string => id.replace(/[^A-Za-z0-9]/g, '_')

/** Returns own on-demand reservations as Terraform that imports each; without any, one to create. */
export function reservationsTerraform(
  owned: readonly InRegion<Reservation>[],
  wish: { region: string; zone: string; type: string; count: number } | undefined,
): string {
  if (owned.length === 0 && wish !== undefined) return written([newReservation(wish)])
  return written(
    owned.flatMap(({ region, value }): Block[] => {
      const address = `aws_ec2_capacity_reservation.${nameOf(value.id)}`
      return [
        {
          kind: 'import',
          attributes: { to: new Expression(address), id: value.id },
        },
        {
          kind: 'resource',
          labels: ['aws_ec2_capacity_reservation', nameOf(value.id)],
          comment: 'Billed at the on-demand price for every instance, used or not.',
          attributes: {
            region,
            instance_type: value.type,
            instance_platform: value.platform,
            availability_zone: value.zone,
            instance_count: value.total,
            instance_match_criteria: value.matching ?? 'open',
            ebs_optimized: value.isEbsOptimized ?? false,
            tenancy: value.tenancy,
            ...(value.endsAtMs === undefined
              ? { end_date_type: 'unlimited' }
              : { end_date_type: 'limited', end_date: formatInstant(value.endsAtMs) }),
            ...tagsOf(value),
          },
        },
      ]
    }),
  )
}

function tagsOf({ tags = {} }: Reservation): { tags?: Value } {
  const own = Object.entries(tags).filter(([key]) => !key.startsWith('aws:'))
  return own.length === 0 ? {} : { tags: Object.fromEntries(own) }
}

function newReservation({
  region,
  zone,
  type,
  count,
}: {
  region: string
  zone: string
  type: string
  count: number
}): Block {
  return {
    kind: 'resource',
    labels: ['aws_ec2_capacity_reservation', nameOf(type)],
    comment:
      'To create: billed at the on-demand price for every instance from the moment it is active, used or not.',
    attributes: {
      region,
      instance_type: type,
      instance_platform: PLATFORM,
      availability_zone: zone,
      // With `open`, any launch of the type in the account would use it up.
      instance_count: count,
      instance_match_criteria: 'targeted',
      end_date_type: 'unlimited',
    },
  }
}

/** Own blocks: their ids and dates, for other resources. A block that exists cannot become a resource, because its offering is gone. */
export function blocksTerraform(owned: readonly InRegion<Reservation>[]): string {
  const blocks = Object.fromEntries(
    owned.map(({ region, value }) => [
      value.id,
      {
        region,
        capacity_block_id: value.blockId ?? '',
        instance_type: value.type,
        instance_count: value.total,
        availability_zone: value.zone,
        start_date: value.startsAtMs === undefined ? '' : formatInstant(value.startsAtMs),
        end_date: value.endsAtMs === undefined ? '' : formatInstant(value.endsAtMs),
      },
    ]),
  )
  return written([
    {
      kind: 'locals',
      comment: 'Capacity Blocks that the account owns, by the id of their reservation.',
      attributes: { capacity_blocks: blocks },
    },
    {
      kind: 'output',
      labels: ['capacity_blocks'],
      attributes: { value: new Expression('local.capacity_blocks') },
    },
  ])
}

/**
 * The search for each offering, and the purchase of the first one. The others stay searches: buying is a decision for each, and
 * cannot be undone.
 */
export function offeringsTerraform(
  offerings: readonly InRegion<BlockOffering>[],
  wish: { count: number; durationHours: number },
): string {
  const searches = offerings.map(({ region, value }): Block => ({
    kind: 'data',
    labels: ['aws_ec2_capacity_block_offering', nameOf(value.id)],
    comment: `${feeInWords(value)} for ${value.count}x ${value.type} in ${value.zone}; first come, first served.`,
    attributes: {
      region,
      instance_type: value.type,
      instance_count: wish.count,
      capacity_duration_hours: wish.durationHours,
      start_date_range: formatInstant(value.startsAtMs),
      end_date_range: formatInstant(value.endsAtMs),
    },
  }))
  const [first] = offerings
  if (first === undefined) return written([])
  const { region, value } = first
  const found = `data.aws_ec2_capacity_block_offering.${nameOf(value.id)}`
  return written([
    ...searches,
    {
      kind: 'resource',
      labels: ['aws_ec2_capacity_block_reservation', nameOf(value.id)],
      comment: `\`terraform apply\` buys this block: ${feeInWords(value)} at once. It cannot be cancelled.`,
      attributes: {
        region,
        capacity_block_offering_id: new Expression(`${found}.capacity_block_offering_id`),
        instance_platform: PLATFORM,
      },
    },
  ])
}
