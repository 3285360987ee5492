import { afterEach, describe, expect, it } from '@jest/globals'
import type { Ec2Config } from '../../../../backends/ec2/config'
import type { Problem } from '../../../../backends/backend'
import { patiently } from '../../harness'
import { Ec2Harness, type PaperHarness } from '../harness'

const ROLE = 'arn:aws:iam::111122223333:role/buyer'
const ELSEWHERE = 'arn:aws:iam::999999999999:role/buyer'
const DENIED = ['ec2:PurchaseCapacityBlock', 'ec2:CancelCapacityReservation']

let h: PaperHarness
afterEach(() => h.dispose())

/** What is wrong in an account whose buyer may do everything but some actions. */
async function problems(
  config: Partial<Ec2Config>,
  denied: string[] = [],
  trusts = ['account'],
): Promise<Problem[]> {
  const no = { Statement: [{ Effect: 'Deny', Action: denied, Resource: '*' }] }
  h = await Ec2Harness.onPaper({
    world: {
      roles: {
        'crucible-machine': {
          managed: ['AmazonSSMManagedInstanceCore'],
          hasProfile: true,
          trusts: ['ec2.amazonaws.com'],
        },
        buyer: { managed: ['AdministratorAccess'], trusts, policies: denied.length === 0 ? {} : { no } },
      },
    },
    config,
  })
  return h.backend.check(patiently())
}

describe('the check of the role that buys', () => {
  it('finds nothing amiss with a role that may buy', async () => {
    expect(await problems({ buyerRole: ROLE })).toEqual([])
  })

  it('is left out without a role', async () => {
    expect(await problems({}, DENIED)).toEqual([])
  })

  it.each<[string, string, string[], string[], RegExp]>([
    ['a role that cannot be taken', ROLE, [], ['ec2.amazonaws.com'], /not permitted: /],
    [
      'a role that lacks permissions',
      ROLE,
      DENIED,
      ['account'],
      /lacks ec2:PurchaseCapacityBlock, ec2:CancelCapacityReservation$/,
    ],
    ['a role of another account', ELSEWHERE, [], ['account'], /belongs to another account/],
  ])('warns of %s, which stops no job', async (_what, buyerRole, denied, trusts, words) => {
    expect(await problems({ buyerRole }, denied, trusts)).toEqual([
      {
        severity: 'warning',
        failure: 'auth',
        message: expect.stringMatching(words),
        remedy: expect.stringContaining('crucible setup aws --buyer'),
      },
    ])
  })

  it('is left out if reservations are off', async () => {
    expect(await problems({ buyerRole: ROLE, reservations: 'none' }, DENIED)).toEqual([])
    expect(h.calls('AssumeRole')).toEqual([])
  })
})
