import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { sparkline } from '../../../cli/truffle/sparkline'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

let account: TruffleAccount

beforeAll(async () => {
  account = await TruffleAccount.open({
    interruptionBands: { 'g6.xlarge': 1 },
    prices: [
      { type: 'g6.xlarge', zone: 'us-east-1a', usdPerHour: 0.2 },
      { type: 'g6.xlarge', zone: 'us-east-1b', usdPerHour: 0.4 },
    ],
    quotas: { 'L-417A185B': 384, 'L-2C3B7624': 0 },
  })
})
afterAll(() => account.close())

describe('truffle spot', () => {
  it('shows prices, savings and how often AWS interrupts', async () => {
    const { results } = await account.json(
      'spot',
      'g6.xlarge',
      '--show-savings',
      '-r',
      'us-east-1',
      '--sort-by-price',
    )
    expect(results[0]).toMatchObject({
      instance_type: 'g6.xlarge',
      availability_zone: 'us-east-1a',
      spot_price: 0.2,
      on_demand_price: 0.8048,
      savings_percent: 75,
      interruption_frequency: '5-10%',
      product_type: 'Linux/UNIX',
    })
    const prices = results.map((row) => Number(row['spot_price']))
    expect(prices).toEqual([...prices].sort((a, b) => a - b))
  })

  it('keeps to a price, and picks the first', async () => {
    const { results } = await account.json(
      'spot',
      'g6.xlarge',
      '--max-price',
      '0.30',
      '--az',
      'us-east-1a,us-east-1b',
    )
    expect(results.map((row) => row['availability_zone'])).toEqual(['us-east-1a'])
    const picked = await account.json('spot', 'g6', '--sort-by-price', '--pick-first')
    expect(picked.results.map((row) => row['spot_price'])).toEqual([0.2])
  })

  it('ends with 3 when no price fits', async () => {
    expect(await account.run('spot', 'p5.48xlarge', '--max-price', '0.01', '--json')).toMatchObject({
      exitCode: 3,
    })
  })

  it('adds placement scores where it is asked for them, and says what they mean', async () => {
    const { results, notes } = await account.json('spot', 'g6', '--scores', '8', '-r', 'us-east-1,us-west-2')
    expect(results[0]).toMatchObject({ placement_score: 9 })
    expect(notes.join(' ')).toContain('for 8 machines of any of the types in one Region')
    const forbidden = account.cloud.addFault({
      fault: 'error',
      code: 'UnauthorizedOperation',
      status: 403,
      where: { action: 'GetSpotPlacementScores' },
    })
    const denied = await account.json('spot', 'g6', '--scores', '8', '-r', 'us-east-1')
    forbidden()
    expect(denied.results[0]).toMatchObject({ placement_score: null, spot_price: expect.any(Number) })
    expect(denied.notes.join(' ')).toContain('No placement scores (ec2:GetSpotPlacementScores)')
  })

  it('adds capacity scores of each zone for an account that may ask, and says what the others lack', async () => {
    const without = await account.json('spot', 'g6', '--scores', '8', '-r', 'us-east-1')
    expect(without.results[0]).toMatchObject({ placement_score: 9, capacity_score: null })
    expect(without.notes.join(' ')).toMatch(/No capacity scores, .* Unified Operations .*does not include/)
    const entitled = await TruffleAccount.open({
      capacityScores: { 'g6.xlarge': 'high', 'g6.2xlarge': 'low' },
    })
    const { results, notes } = await entitled.json('spot', 'g6', '--scores', '8', '-r', 'us-east-1')
    const { stdout } = await entitled.run('spot', 'g6', '--scores', '8', '-r', 'us-east-1')
    const [onDemand] = (await entitled.json('az', 'g6.2xlarge', '--scores', '8', '-r', 'us-east-1')).results
    const { stdout: zones } = await entitled.run('az', 'g6.2xlarge', '--scores', '8', '-r', 'us-east-1')
    const markets = entitled.cloud.journal
      .calls({ service: 'ec2', action: 'GetCapacityManagerSupportabilityScores' })
      .map(({ parameters }) => (parameters as { MarketType: string }).MarketType)
    await entitled.close()
    const scores = new Map(results.map((row) => [String(row['instance_type']), row['capacity_score']]))
    expect([scores.get('g6.xlarge'), scores.get('g6.2xlarge'), scores.get('g6.4xlarge')]).toEqual([
      'high',
      'low',
      'unsupported',
    ])
    expect(notes.join(' ')).toContain("Capacity scores are AWS's for 8 machines of one type in one zone")
    expect(stdout).toMatch(/Score +Capacity/)
    expect(onDemand).toMatchObject({ az_count: 3, capacity_scores: ['low', 'low', 'low'] })
    expect(zones).toMatch(/Capacity\n[^]*low, low, low/)
    expect(new Set(markets)).toEqual(new Set(['spot', 'on-demand']))
    const refused = await account.json('az', 'g6.xlarge', '--scores', '8', '-r', 'us-east-1')
    expect(refused.results[0]).toMatchObject({ az_count: 3, capacity_scores: null })
    expect(refused.notes.join(' ')).toContain('No capacity scores')
  })

  it('draws the course of a price', () => {
    expect([sparkline([1, 2, 3, 2, 1]), sparkline([5, 5])]).toEqual(['▁▅█▅▁', '▁▁'])
  })
})

describe('truffle quotas', () => {
  it('shows limit, use and what is free, and the command that asks for more', async () => {
    const { results, request_commands } = await account.json(
      'quotas',
      'p5.48xlarge',
      '-r',
      'us-east-1',
      '--request',
      '768',
    )
    expect(results[0]).toEqual({
      region: 'us-east-1',
      family: 'P',
      market: 'on-demand',
      quota_code: 'L-417A185B',
      limit_vcpus: 384,
      used_vcpus: 0,
      available_vcpus: 384,
      request: null,
    })
    expect(request_commands).toEqual([
      'aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-417A185B --desired-value 768 --region us-east-1',
    ])
  })

  it('keeps a quota whose use is unknown', async () => {
    const forbidden = account.cloud.addFault({
      fault: 'error',
      code: 'UnauthorizedOperation',
      status: 403,
      where: { action: 'DescribeInstances' },
    })
    const { results, notes } = await account.json('quotas', 'trn1', '-r', 'us-east-1')
    forbidden()
    expect(results[0]).toMatchObject({
      family: 'Trn',
      limit_vcpus: 0,
      used_vcpus: null,
      available_vcpus: null,
    })
    expect(notes.join(' ')).toContain('ec2:DescribeInstances')
  })

  it('refuses what has no quota', async () => {
    expect(await account.run('quotas', 'q9.large')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('q9.large'),
    })
  })
})
