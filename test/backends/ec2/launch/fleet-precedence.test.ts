/** Which of several causes stands for a fleet without a machine, cause by cause. */
import { describe, expect, it } from '@jest/globals'
import { LEFT_ALONE_MS, type Host } from '../../../../backends/ec2/host'
import { failureOfFleet } from '../../../../backends/ec2/launch/fleet-failure'
import { createMemory } from '../../../../backends/ec2/launch/memory'
import type { FailureClass } from '../../../../core/failure'
import type { Offer } from '../../../../core/offer'
import type { Order } from '../../../../core/job/plan'
import { MINUTE_MS, SECOND_MS } from '../../../../core/time/time'

const pool = (type: string, subnet: string) => ({ type, subnet })
const offer = (type: string, subnet: string): Offer =>
  ({
    backend: 'ec2',
    capacityType: 'on-demand',
    type,
    place: `zone-of-${subnet}`,
    data: { subnet },
  }) as unknown as Offer
const OFFERS = [offer('g5.xlarge', 'a'), offer('g6.xlarge', 'a'), offer('g5.xlarge', 'b')]
const ORDER = { attemptId: 'job-a-1', offers: OFFERS } as Order

type Cause = [code: string, message?: string]

interface Stage {
  host: Host
  /** What causes stand for, the first in subnet `a`, the second in `b`. */
  judge: (...causes: Cause[]) => ReturnType<typeof failureOfFleet>
  pass: (ms: number) => void
  /** Places of the pools that are left alone. */
  leftAlone: () => string[]
}

function stage(): Stage {
  let nowMs = 1e12
  const clock = () => nowMs
  const memory = createMemory(clock)
  const host = { memory, deps: { clock } } as Host
  return {
    host,
    judge: (...causes) =>
      failureOfFleet(
        host,
        ORDER,
        causes.map(([code, message = `it was ${code}`], at) => ({
          code,
          message,
          pool: pool('g5.xlarge', 'ab'[at] ?? 'a'),
        })),
      ),
    pass: (ms) => void (nowMs += ms),
    leftAlone: () =>
      OFFERS.filter((one) => memory.whyMissed(one) !== undefined).map(
        ({ type, place }) => `${type} ${place}`,
      ),
  }
}

const NO_STOCK: Cause = ['InsufficientInstanceCapacity']
const PROFILE: Cause = [
  'InvalidParameterValue',
  'Value (p) is invalid. Invalid IAM Instance Profile name (p)',
]
const PASS_ROLE: Cause = [
  'UnauthorizedOperation',
  'ann is not authorized to perform: iam:PassRole on resource: r',
]

describe('a cause that holds for every launch of the deployment', () => {
  it.each<[FailureClass, string, Cause]>([
    ['auth', 'keys that are refused', ['AuthFailure']],
    ['auth', 'keys that are unknown', ['InvalidClientTokenId']],
    ['auth', 'the missing right to pass the role', PASS_ROLE],
    ['auth', 'the missing role of spot machines', ['AuthFailure.ServiceLinkedRoleCreationNotPermitted']],
    ['auth', 'an account that is not open yet', ['PendingVerification']],
    ['auth', 'a Region that is not enabled', ['OptInRequired']],
    ['auth', 'a blocked account', ['Blocked']],
    ['invalid', 'an image that is gone', ['InvalidAMIID.NotFound']],
    ['invalid', 'an image that cannot be used', ['InvalidAMIID.Unavailable']],
    ['invalid', 'a snapshot that is gone', ['InvalidSnapshot.NotFound']],
    ['invalid', 'a profile that is no name', ['InvalidIamInstanceProfileArn.Malformed']],
    ['transient', 'a profile that is not known yet', PROFILE],
    ['transient', 'a group that is not known yet', ['InvalidGroup.NotFound']],
  ])('%s: %s outranks pools without machines, and leaves none alone', (failureClass, _, cause) => {
    for (const causes of [
      [NO_STOCK, cause],
      [cause, NO_STOCK],
      [['UnfulfillableCapacity'] satisfies Cause, cause],
    ]) {
      const { judge, leftAlone } = stage()
      expect(judge(...causes)).toMatchObject({ class: failureClass, code: cause[0] })
      expect(leftAlone()).toEqual([])
    }
  })
})

describe('of causes of single pools', () => {
  /** The one that comes first stands for all that come after it. */
  const RANKED: [FailureClass, Cause][] = [
    ['capacity', NO_STOCK],
    ['throttled', ['RequestLimitExceeded']],
    ['transient', ['InternalError']],
    ['quota', ['VcpuLimitExceeded']],
    ['unclassified', ['BrandNewTrouble']],
    ['expired', ['InvalidCapacityReservationState']],
    // A policy may deny one type, zone or subnet.
    [
      'auth',
      ['UnauthorizedOperation', 'ann is not authorized to perform: ec2:RunInstances with an explicit deny'],
    ],
    ['invalid', ['InvalidParameterCombination']],
  ]
  const pairs = RANKED.slice(1).map(([lesser, cause], at) => [...RANKED[at]!, lesser, cause] as const)

  it.each(pairs)('%s (%j) stands for the fleet next to %s (%j)', (failureClass, cause, _lesser, other) => {
    for (const causes of [
      [cause, other],
      [other, cause],
    ]) {
      const failure = stage().judge(...causes)
      expect(failure.class).toBe(failureClass)
      expect(failure.message).toContain(`(${causes.map(([code]) => code).join(', ')})`)
    }
  })
})

describe('what may be too new to be known', () => {
  it('is given a minute, not less', () => {
    const { judge, pass } = stage()
    expect(judge(PROFILE).class).toBe('transient')
    pass(MINUTE_MS - SECOND_MS)
    expect(judge(PROFILE).class).toBe('transient')
    pass(SECOND_MS)
    expect(judge(PROFILE).class).toBe('invalid')
  })

  it('is given its own minute, whatever else was missing before', () => {
    const { judge, pass } = stage()
    judge(PROFILE)
    pass(2 * MINUTE_MS)
    const another: Cause = [
      'InvalidParameterValue',
      'Value (q) is invalid. Invalid IAM Instance Profile name (q)',
    ]
    expect(judge(another).class).toBe('transient')
    expect(judge(['InvalidGroup.NotFound']).class).toBe('transient')
  })

  it('is no other parameter that is wrong', () => {
    expect(stage().judge(['InvalidParameterValue', 'Value (7) for parameter Iops is invalid'])).toMatchObject(
      {
        class: 'invalid',
      },
    )
  })
})

describe('a pool that gave nothing', () => {
  it('is left alone, and neither its zone nor its type elsewhere', () => {
    const { judge, leftAlone } = stage()
    judge(NO_STOCK)
    expect(leftAlone()).toEqual(['g5.xlarge zone-of-a'])
  })

  it('is every pool of the order where the error names none', () => {
    const { host, leftAlone } = stage()
    failureOfFleet(host, ORDER, [{ code: 'InsufficientInstanceCapacity', message: 'none', pool: {} }])
    expect(leftAlone()).toHaveLength(OFFERS.length)
  })

  it.each<[keyof typeof LEFT_ALONE_MS, Cause]>([
    ['capacity', NO_STOCK],
    ['quota', ['VcpuLimitExceeded']],
    ['never', ['Unsupported']],
  ])('is left alone as long as %s takes', (why, cause) => {
    const { judge, pass, leftAlone } = stage()
    judge(cause)
    pass(LEFT_ALONE_MS[why] - 1)
    expect(leftAlone()).toHaveLength(1)
    pass(1)
    expect(leftAlone()).toEqual([])
  })
})
