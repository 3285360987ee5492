import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { afterEach, describe, expect, it } from '@jest/globals'
import { freePlanAdvice } from '../../../../backends/ec2/check/free-plan'
import { readPlan } from '../../../../backends/ec2/sdk/plan'
import { stopClouds, testCloud } from '../../../../packages/small-cloud/test/support'
import { patient } from '../../../support/patience'

afterEach(stopClouds)

describe('the advice to an account on the free plan', () => {
  const type = (name: string, isFreeTier = true) => ({ name, isFreeTier })

  it.each([
    ['m7i-flex.large', [type('t3.micro'), type('c7i-flex.large'), type('m7i-flex.large')]],
    ['c7i-flex.large', [type('t3.micro'), type('m7i-flex.large', false), type('c7i-flex.large')]],
    ['t3.micro', [type('g5.xlarge', false), type('t3.micro')]],
  ])('names %s where that is the best allowed', (best, types) => {
    expect(freePlanAdvice(types)).toMatch(
      new RegExp(`^Upgrade the account's plan.* fit into ${best} run\\.$`),
    )
  })

  it('says so where no type is allowed', () => {
    expect(freePlanAdvice([type('g5.xlarge', false)])).toMatch(
      /None of the machine types .* is allowed until then\.$/,
    )
  })
})

describe('the plan of an account', () => {
  it.each(['free', 'paid'] as const)('is read over the wire: %s', async (plan) => {
    const { cloud } = await testCloud({ plan })
    const { credentials, endpoint } = cloud
    const sts = new STSClient({ endpoint, region: 'eu-west-1', credentials })
    const ask = () =>
      readPlan(sts, { endpoint: cloud.endpoint, signal: AbortSignal.timeout(patient(20_000)) })
    expect(await ask()).toBe(plan)
    expect((await sts.send(new GetCallerIdentityCommand({}))).Account).toBe('111122223333')
    expect(await ask()).toBe(plan)
  })

  it('is an error where the caller may not read it', async () => {
    const { cloud } = await testCloud({ users: { ann: { accessKeyId: 'ann', secretAccessKey: 's' } } })
    const credentials = { accessKeyId: 'ann', secretAccessKey: 's' }
    const sts = new STSClient({ endpoint: cloud.endpoint, region: 'us-east-1', credentials })
    const reading = readPlan(sts, { endpoint: cloud.endpoint, signal: AbortSignal.timeout(patient(20_000)) })
    await expect(reading).rejects.toMatchObject({ code: 'AccessDeniedException', reach: 'answered' })
  })
})
