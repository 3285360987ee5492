import { afterEach, describe, expect, it } from '@jest/globals'
import { createClients } from '../../../../backends/ec2/setup/clients'
import { askForQuotas, planRemarks, readQuotas } from '../../../../backends/ec2/setup/quotas'
import type { RegionSetup } from '../../../../backends/ec2/setup/site'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { patiently } from '../../harness'

let cloud: Cloud
afterEach(() => cloud?.stop())

const NONE = { 'L-DB2E81BA': 0, 'L-3819A6DF': 0 }

async function siteIn(world: WorldText): Promise<RegionSetup> {
  cloud = await startCloud({ world: { throttling: 'off', ...world } })
  process.env['AWS_ACCESS_KEY_ID'] = cloud.credentials.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = cloud.credentials.secretAccessKey
  const clients = createClients({ region: 'us-east-1', endpoint: cloud.endpoint })
  return { clients, ...patiently() } as RegionSetup
}

describe('quotas of machines with GPUs', () => {
  it('are requested once, and followed', async () => {
    const site = await siteIn({ quotas: NONE, quotaDecision: { after: '2s', isGranted: true } })
    expect(await askForQuotas(site)).toMatchObject([
      { value: 0, request: expect.stringMatching(/^8 vCPUs .*: pending/), isAskable: false },
      { value: 0, request: expect.stringMatching(/pending/), isAskable: false },
    ])
    await askForQuotas(site)
    const requests = cloud.journal.calls({ action: 'RequestServiceQuotaIncrease' })
    expect(requests.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
  })

  it('can be requested again once they were refused', async () => {
    const site = await siteIn({ quotas: NONE, quotaDecision: { after: '0s', isGranted: false } })
    await askForQuotas(site)
    const refused = { value: 0, request: expect.stringMatching(/: refused$/), isAskable: true }
    expect(await readQuotas(site)).toMatchObject([refused, refused])
    await askForQuotas(site)
    expect(cloud.journal.calls({ action: 'RequestServiceQuotaIncrease' })).toHaveLength(4)
  })
})

describe('the free plan of an account', () => {
  it('is reported, unless the plan may not be read', async () => {
    const free = await siteIn({ plan: 'free' })
    expect(await planRemarks(free)).toEqual([
      expect.stringMatching(/^The account is on the free plan.*Upgrade the account's plan.*m7i-flex.large/),
    ])
    await cloud.stop()
    const fault = { fault: 'error', code: 'AccessDeniedException', where: { service: 'freetier' } } as const
    expect(await planRemarks(await siteIn({ plan: 'free', faults: [fault] }))).toEqual([])
  })
})
