/** The account of a company, as a world of EC2 may have it: policies, a key for disks, faster disks, and reservations of others. */
import type { WorldText } from '#small-cloud'
import type { ResourceRequest } from '../../core/resources'
import type { Dice } from '../kit/dice'
import type { Company } from './provider'

/** Clouds run concurrently in one process, and its SDK takes the keys of all of them from the one environment. */
export const OWNER = { accessKeyId: 'test', secretAccessKey: 'test', managed: ['AdministratorAccess'] }

/** The statements that a company has for all its accounts: no untagged machines and disks, and no unencrypted disks. */
export const COMPANY_POLICY = [
  {
    Effect: 'Deny',
    Action: 'ec2:RunInstances',
    Resource: ['arn:aws:ec2:*:*:instance/*', 'arn:aws:ec2:*:*:volume/*'],
    Condition: { Null: { 'aws:RequestTag/cost-center': 'true' } },
  },
  {
    Effect: 'Deny',
    Action: 'ec2:RunInstances',
    Resource: 'arn:aws:ec2:*:*:volume/*',
    Condition: { Bool: { 'ec2:Encrypted': 'false' } },
  },
]

const POLICIES = { company: { Version: '2012-10-17', Statement: COMPANY_POLICY } }
const KEY = 'arn:aws:kms:us-east-1:111122223333:key/1234abcd'
/** MiB/s and operations per second of disks that machines here can use. */
const SPEEDS: readonly Partial<ResourceRequest>[] = [
  {},
  { diskMibPerSecond: 250 },
  { diskMibPerSecond: 400, diskIops: 6_000 },
]

export function companyOf(dice: Dice, { type, zones }: { type: string; zones: readonly string[] }): Company {
  const reservations: NonNullable<WorldText['reservations']> = zones.flatMap((zone) => {
    const reserved = { kind: 'on-demand' as const, type, zone, count: dice.between(1, 2) }
    return [
      ...(dice.chance(0.5) ? [reserved] : []),
      ...(dice.chance(0.5) ? [{ ...reserved, isInterruptible: true as const }] : []),
    ]
  })
  return {
    world: {
      users: { test: { ...OWNER, policies: POLICIES } },
      ...(dice.chance(0.5) && { diskKey: KEY }),
      reservations,
    },
    config: { tags: { 'cost-center': '42' } },
    resources: dice.oneOf(SPEEDS),
  }
}
