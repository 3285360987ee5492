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
  { clients }: TestCloud,
  wish: Partial<sdk.RunInstancesCommandInput>,
): Promise<string> {
  const { Instances } = await clients.ec2.send(
    new sdk.RunInstancesCommand({ ...IMAGE, MinCount: 1, MaxCount: 1, InstanceType: 'm5.large', ...wish }),
  )
  return Instances![0]!.InstanceId!
}

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
