/** Set-up in accounts in which others have been at work. */
import { DescribeSubnetsCommand, RunInstancesCommand } from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { createClients } from '../../../../backends/ec2/setup/clients'
import { linkedRoles } from '../../../../backends/ec2/setup/roles'
import type { Site } from '../../../../backends/ec2/setup/driver'
import type { Cloud } from '#small-cloud'
import { clientsOf, IMAGE } from '../../../../packages/small-cloud/test/support'
import { applied, emptyAccount, ignoring, setupOf } from './accounts'

jest.setTimeout(180_000)

let cloud: Cloud
afterEach(() => cloud?.stop())

describe('the role of spot machines', () => {
  it('is taken as made where another has made it meanwhile', async () => {
    cloud = await emptyAccount({ linkedRoles: ['spot.amazonaws.com'] })
    setupOf(cloud)
    const clients = createClients({ region: 'us-east-1', endpoint: cloud.endpoint })
    const site = {
      clients,
      choices: { prefix: 'crucible' },
      signal: ignoring(),
      ids: new Map(),
    } as never as Site
    const name = 'AWSServiceRoleForEC2Spot'
    const piece = { service: 'spot.amazonaws.com', name, description: 'x' }
    expect(await linkedRoles.make(piece as never, site)).toBe(name)
  })
})

describe('a machine of a job', () => {
  it('is in the way of a removal also when its profile is gone, and so is one that only has the profile', async () => {
    cloud = await emptyAccount()
    await applied(setupOf(cloud))
    const { ec2 } = clientsOf(cloud.endpoint)
    const { Subnets } = await ec2.send(new DescribeSubnetsCommand({}))
    const run = async (more: object): Promise<string> => {
      const words = { ImageId: IMAGE, MinCount: 1, MaxCount: 1, InstanceType: 'm7i.large' as const }
      const { Instances } = await ec2.send(
        new RunInstancesCommand({ ...words, SubnetId: Subnets![0]!.SubnetId!, ...more }),
      )
      return Instances![0]!.InstanceId!
    }
    const Tags = [{ Key: 'crucible:deployment', Value: 'team' }]
    const bare = await run({ TagSpecifications: [{ ResourceType: 'instance', Tags }] })
    const untagged = await run({ IamInstanceProfile: { Name: 'crucible-machine' } })
    await run({})
    const { obstacles } = await setupOf(cloud).removal(ignoring())
    expect(obstacles).toHaveLength(1)
    expect(obstacles[0]!.message).toMatch(/^2 of its machines are still there/)
    for (const id of [bare, untagged]) expect(obstacles[0]!.message).toContain(id)
  })
})

describe('an account on the free plan', () => {
  it('is reported before anything is made', async () => {
    cloud = await emptyAccount({ plan: 'free' })
    const { remarks } = await setupOf(cloud).survey(ignoring())
    expect(remarks.at(-1)).toMatch(
      /^The account is on the free plan.*Upgrade the account's plan.*m7i-flex.large/,
    )
  })

  it('is surveyed also by who may not read the plan', async () => {
    const where = { service: 'freetier' } as const
    cloud = await emptyAccount({ faults: [{ fault: 'error', code: 'AccessDeniedException', where }] })
    const { remarks, parts } = await setupOf(cloud).survey(ignoring())
    expect(remarks.join(' ')).not.toContain('free plan')
    expect(parts.length).toBeGreaterThan(5)
  })
})
