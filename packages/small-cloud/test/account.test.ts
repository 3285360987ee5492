import * as sdk from '@aws-sdk/client-ec2'
import {
  ListRequestedServiceQuotaChangeHistoryCommand,
  RequestServiceQuotaIncreaseCommand,
} from '@aws-sdk/client-service-quotas'
import { afterEach, describe, expect, it } from '@jest/globals'
import { clientsOf, refusal, stopClouds, testCloud, type TestCloud } from './support'

afterEach(stopClouds)

const IMAGE = { ImageId: 'resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64' }

async function launched(
  { clients }: { clients: Pick<TestCloud['clients'], 'ec2'> },
  wish: Partial<sdk.RunInstancesCommandInput>,
): Promise<string> {
  const { Instances } = await clients.ec2.send(
    new sdk.RunInstancesCommand({ ...IMAGE, MinCount: 1, MaxCount: 1, InstanceType: 'm5.large', ...wish }),
  )
  return Instances![0]!.InstanceId!
}

describe('an account with a key of its own for disks', () => {
  it('ends the machines of callers who may not use it in the second in which it accepts them', async () => {
    const diskKey = 'arn:aws:kms:us-east-1:111122223333:key/1234abcd'
    const worker = (...Action: string[]) => ({
      accessKeyId: 'worker',
      secretAccessKey: 'secret',
      policies: { p: { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource: '*' }] } },
    })
    const reasonOf = async (...actions: string[]): Promise<string | undefined> => {
      const { cloud, clock } = await testCloud({ diskKey, users: { worker: worker(...actions) } })
      const keys = { accessKeyId: 'worker', secretAccessKey: 'secret' }
      const { ec2 } = clientsOf(cloud.endpoint, keys)
      expect((await ec2.send(new sdk.GetEbsDefaultKmsKeyIdCommand({}))).KmsKeyId).toBe(diskKey)
      const BlockDeviceMappings = [{ DeviceName: '/dev/sda1', Ebs: { Encrypted: true } }]
      const id = await launched({ clients: { ec2 } }, { BlockDeviceMappings })
      await clock.advance(1)
      const { Reservations } = await ec2.send(new sdk.DescribeInstancesCommand({ InstanceIds: [id] }))
      return Reservations![0]!.Instances![0]!.StateReason?.Code
    }
    expect(await reasonOf('ec2:*')).toBe('Client.InternalError')
    expect(await reasonOf('ec2:*', 'kms:CreateGrant')).toBeUndefined()
  })
})

describe('spot in an account that never had any', () => {
  it('needs a role of its own, or somebody who may make it', async () => {
    const allowing = (...Action: string[]) => ({
      accessKeyId: 'worker',
      secretAccessKey: 'secret',
      managed: [],
      policies: { p: { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource: '*' }] } },
    })
    const test = await testCloud({ linkedRoles: [], users: { worker: allowing('ec2:*') } })
    const { ec2 } = clientsOf(test.cloud.endpoint, { accessKeyId: 'worker', secretAccessKey: 'secret' })
    const spot = (by: sdk.EC2Client) =>
      by.send(
        new sdk.RunInstancesCommand({
          ...IMAGE,
          MinCount: 1,
          MaxCount: 1,
          InstanceType: 'm5.large',
          InstanceMarketOptions: { MarketType: 'spot' },
        }),
      )
    expect((await refusal(spot(ec2))).code).toBe('AuthFailure.ServiceLinkedRoleCreationNotPermitted')
    await spot(test.clients.ec2)
    await spot(ec2)
    expect(test.cloud.account().roles.map(({ name }) => name)).toContain('AWSServiceRoleForEC2Spot')
  })
})

describe('a request for a higher quota', () => {
  it.each([true, false])('is decided after a while: %s', async (isGranted) => {
    const test = await testCloud({
      quotas: { 'L-DB2E81BA': 0 },
      quotaDecision: { after: '1m', isGranted },
    })
    const { quotas } = test.clients
    const wish = { ServiceCode: 'ec2', QuotaCode: 'L-DB2E81BA', DesiredValue: 8 }
    const gpu = () => launched(test, { InstanceType: 'g5.xlarge' })
    await quotas.send(new RequestServiceQuotaIncreaseCommand(wish))
    expect((await refusal(quotas.send(new RequestServiceQuotaIncreaseCommand(wish)))).code).toBe(
      'ResourceAlreadyExistsException',
    )
    expect((await refusal(gpu())).code).toBe('VcpuLimitExceeded')
    await test.clock.advance(60_000)
    const { RequestedQuotas } = await quotas.send(
      new ListRequestedServiceQuotaChangeHistoryCommand({ ServiceCode: 'ec2' }),
    )
    expect(RequestedQuotas!.map(({ Status }) => Status)).toEqual([isGranted ? 'APPROVED' : 'DENIED'])
    if (isGranted) await gpu()
    else expect((await refusal(gpu())).code).toBe('VcpuLimitExceeded')
  })
})
