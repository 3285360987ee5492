/** The account of a company: roles with a path, a key of its own for disks, and policies about tags and encryption. */
import { DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2'
import { PutBucketEncryptionCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { COMPANY_POLICY } from '../../clouds/company'
import { openGranter, tryGrant } from '../../../storage/open-granter'
import { openStore } from '../../../storage/open-store'
import { CloudDeployment, QUICK, type DeploymentWishes } from '../../recovery/deployment'
import { itInAll } from '../../support/selection'
import { connectTo, quietWorkers, type TestConnection } from '../../support/temporal'
import { ACCOUNT, rolesOf } from './setup/accounts'
import { evaluateTemplate } from './setup/template'

const DISK_KEY = `arn:aws:kms:us-east-1:${ACCOUNT}:key/1234abcd`
const STORE_KEY = `arn:aws:kms:us-east-1:${ACCOUNT}:key/5678ef`
const TEMPLATE = evaluateTemplate({
  account: ACCOUNT,
  parameters: {
    Regions: 'us-east-1',
    Bucket: 'recovery',
    VpcId: 'vpc-default',
    RolePath: '/ml/',
    DiskKeyArns: DISK_KEY,
    KmsKeyArn: STORE_KEY,
  },
})
let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

/** The most that the company lets any role or user of the account do. */
const BOUNDARY = {
  Version: '2012-10-17',
  Statement: [
    {
      Effect: 'Allow',
      Action: [
        'ec2:*',
        's3:*',
        'ssm:*',
        'ssmmessages:*',
        'ec2messages:*',
        'kms:*',
        'sts:*',
        'pricing:*',
        'iam:PassRole',
        'iam:Get*',
        'iam:List*',
        'iam:Simulate*',
        'servicequotas:*',
      ],
      Resource: '*',
    },
  ],
}

/** The company's key encrypts the bucket. */
async function encrypted(Bucket: string): Promise<void> {
  const s3 = new S3Client({ forcePathStyle: true })
  const ApplyServerSideEncryptionByDefault = { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: STORE_KEY } as const
  const Rules = [{ ApplyServerSideEncryptionByDefault, BucketKeyEnabled: true }]
  await s3.send(new PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration: { Rules } }))
  s3.destroy()
}

/** The workers have the permissions of the template's role, and no others. */
function inCompany(
  settings: Record<string, string>,
  world: DeploymentWishes['world'] = {},
): DeploymentWishes {
  const worker = TEMPLATE.policiesOf('crucible-worker')
  const forTheTest = [
    { Effect: 'Allow', Action: ['s3:CreateBucket', 's3:PutEncryptionConfiguration'], Resource: '*' },
  ]
  const granted = { ...worker, company: COMPANY_POLICY, test: forTheTest }
  const policies = Object.fromEntries(
    Object.entries(granted).map(([name, Statement]) => [name, { Version: '2012-10-17', Statement }]),
  )
  return {
    world: {
      account: ACCOUNT,
      diskKey: DISK_KEY,
      regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
      roles: Object.fromEntries(
        Object.entries(rolesOf(TEMPLATE)).map(([name, role]) => [name, { ...role, boundary: BOUNDARY }]),
      ),
      users: { test: { accessKeyId: 'test', secretAccessKey: 'test', policies, boundary: BOUNDARY } },
      ...world,
    },
    prepare: encrypted,
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

  /** The key's policy allows the workers, and not the role of machines. */
  const isKeyClosed = () => {
    const keys = { [STORE_KEY]: { delegates: false, users: [`arn:aws:iam::${ACCOUNT}:user/test`] } }
    return inCompany({ CRUCIBLE_EC2_TAGS: 'cost-center=42' }, { keys })
  }

  it('the right to the key of the store that machines lack is named as doctor does', async () => {
    const deployment = await CloudDeployment.start(at, isKeyClosed())
    try {
      const store = openStore(deployment.home.storeUrl)
      const roleArn = `arn:aws:iam::${ACCOUNT}:role/ml/crucible-grant`
      const probe = { jobId: 'job-probe', attempt: 1, durationMs: 3_600_000 }
      await expect(tryGrant(store, openGranter(store, { roleArn })!, probe)).rejects.toThrow(
        /permission denied: allow kms:GenerateDataKey with the KMS key of the bucket, in its key policy/,
      )
    } finally {
      await deployment.stop()
    }
  }, 120_000)

  // The runner waits for new rights for half a minute.
  itInAll(
    'a job whose machines lack it ends with the words of S3',
    async () => {
      const deployment = await CloudDeployment.start(at, isKeyClosed())
      try {
        const job = await deployment.submit({}, { lastAttempt: 1 })
        const { state, reason, message } = await deployment.ended(job)
        expect([state, reason]).toEqual(['failed', 'auth'])
        expect(message).toMatch(
          /not authorized to perform: kms:Decrypt on resource: \S+ because no resource-based policy allows the kms:Decrypt action\. Allow/,
        )
      } finally {
        await deployment.stop()
      }
    },
    240_000,
  )

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
