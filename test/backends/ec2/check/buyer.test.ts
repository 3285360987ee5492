import { describe, expect, it } from '@jest/globals'
import type { Problem } from '../../../../backends/backend'
import { patiently } from '../../harness'
import { FakeHarness } from '../fake-harness'

const ROLE = 'arn:aws:iam::123456789012:role/crucible-buyer'
const checked = (h: FakeHarness): Promise<Problem[]> => h.backend.check(patiently())

describe('the check of the role that buys', () => {
  it('finds nothing amiss with a role that may buy, or without a role', async () => {
    expect(await checked(new FakeHarness({ buyerRole: ROLE }))).toEqual([])
    const h = new FakeHarness()
    h.aws.denied = ['ec2:PurchaseCapacityBlock']
    expect(await checked(h)).toEqual([])
  })

  it.each<[string, Partial<ConstructorParameters<typeof FakeHarness>[0]>, (h: FakeHarness) => void, RegExp]>([
    [
      'a role that cannot be taken',
      {},
      ({ aws }) => aws.fail('blockTypes', 'AccessDenied', { httpStatus: 403, message: 'not you' }),
      /not permitted: not you/,
    ],
    [
      'a role that lacks permissions',
      {},
      ({ aws }) => (aws.denied = ['ec2:PurchaseCapacityBlock', 'ec2:CancelCapacityReservation']),
      /lacks ec2:PurchaseCapacityBlock, ec2:CancelCapacityReservation$/,
    ],
    [
      'a role of another account',
      { buyerRole: ROLE.replace('123456789012', '999999999999') },
      () => undefined,
      /of another account/,
    ],
  ])('warns of %s, which stops no job', async (_what, config, breaks, words) => {
    const h = new FakeHarness({ buyerRole: ROLE, ...config })
    breaks(h)
    const problems = await checked(h)
    expect(problems).toEqual([
      {
        ...{ severity: 'warning', failure: 'auth', message: expect.stringMatching(words) },
        remedy: expect.stringContaining('crucible setup aws --buyer'),
      },
    ])
  })

  it('is left out if reservations are off', async () => {
    const h = new FakeHarness({ buyerRole: ROLE, reservations: 'none' })
    h.aws.denied = ['ec2:PurchaseCapacityBlock']
    expect(await checked(h)).toEqual([])
    expect(h.aws.countOf('blockTypes')).toBe(0)
  })
})
