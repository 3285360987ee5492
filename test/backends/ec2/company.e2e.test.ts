/** The account of a company: roles with a path, a key of its own for disks, and policies about tags and encryption. */
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { COMPANY_POLICY } from '../../clouds/company'
import { CloudDeployment, QUICK, type DeploymentWishes } from '../../recovery/deployment'
import { connectTo, quietWorkers, type TestConnection } from '../../support/temporal'
import { ACCOUNT, rolesOf } from './setup/accounts'
import { evaluateTemplate } from './setup/template'

const DISK_KEY = `arn:aws:kms:us-east-1:${ACCOUNT}:key/1234abcd`
const TEMPLATE = evaluateTemplate({
  account: ACCOUNT,
  parameters: {
    Regions: 'us-east-1',
    Bucket: 'recovery',
    VpcId: 'vpc-default',
    RolePath: '/ml/',
    DiskKeyArns: DISK_KEY,
  },
})
let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

/** The workers have the permissions of the template's role, and no others. */
function inCompany(settings: Record<string, string>): DeploymentWishes {
  const worker = TEMPLATE.policiesOf('crucible-worker')
  const forTheTest = [{ Effect: 'Allow', Action: 's3:CreateBucket', Resource: '*' }]
  const granted = { ...worker, company: COMPANY_POLICY, test: forTheTest }
  const policies = Object.fromEntries(
    Object.entries(granted).map(([name, Statement]) => [name, { Version: '2012-10-17', Statement }]),
  )
  return {
    world: {
      account: ACCOUNT,
      diskKey: DISK_KEY,
      regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
      roles: rolesOf(TEMPLATE),
      users: { test: { accessKeyId: 'test', secretAccessKey: 'test', policies } },
    },
    settings: {
      ...QUICK,
      CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/ml/crucible-grant`,
      ...settings,
    },
  }
}

describe('in the account of a company', () => {
  it('a job runs to its end with the permissions of the template alone', async () => {
    const deployment = await CloudDeployment.start(at, inCompany({ CRUCIBLE_EC2_TAGS: 'cost-center=42' }))
    try {
      const job = await deployment.submit({}, { lastAttempt: 1 })
      expect(await deployment.ended(job)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
      const ec2 = new EC2Client({})
      const { Reservations = [] } = await ec2.send(new DescribeInstancesCommand({}))
      const machines = Reservations.flatMap(({ Instances = [] }) => Instances)
      expect(machines).toHaveLength(1)
      expect(machines[0]!.Tags).toContainEqual({ Key: 'cost-center', Value: '42' })
      ec2.destroy()
    } finally {
      await deployment.stop()
    }
  }, 120_000)

  it('a job without those tags ends with the words of the policy, and is not tried for ever', async () => {
    const deployment = await CloudDeployment.start(at, inCompany({}))
    try {
      const job = await deployment.submit({}, { lastAttempt: 1 })
      const { state, reason, message } = await deployment.ended(job)
      expect([state, reason]).toEqual(['failed', 'auth'])
      expect(message).toMatch(/not authorized to perform: ec2:RunInstances on resource: .*explicit deny/)
    } finally {
      await deployment.stop()
    }
  }, 120_000)
})
