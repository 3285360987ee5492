/**
 * What truffle sends and what the small cloud answers, judged by botocore's models of the services; and the same commands on moto, where it
 * knows their calls. Neither was made by us. Skipped without a Python with boto3, or without moto.
 */
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { awsClients, judgeWire } from '../../support/aws-clients'
import { hasMotoIn, startMoto, type Moto } from '../../support/moto'
import { startRecordingProxy, type RecordingProxy } from '../../support/recording-proxy'
import { itInAll } from '../../support/selection'
import { TruffleAccount } from './account'

jest.setTimeout(240_000)

const { python } = awsClients()
let account: TruffleAccount | undefined
let proxy: RecordingProxy | undefined
let moto: Moto | undefined

afterEach(async () => {
  await account?.close()
  await proxy?.stop()
  await moto?.stop()
  account = undefined
  proxy = undefined
  moto = undefined
})

;(python === undefined ? describe.skip : describe)('by the models of botocore', () => {
  it('every request of every command, and every answer, is well formed', async () => {
    account = await TruffleAccount.open(
      {
        reservations: [
          { kind: 'on-demand', type: 'inf2.xlarge', zone: 'us-east-1a', count: 12 },
          { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 32, ends: '168h' },
        ],
        blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1b', count: 64, usdPerInstanceHour: 31.5 }],
      },
      async (endpoint) => (proxy = await startRecordingProxy(endpoint)).endpoint,
    )
    const lines = [
      'search g6.* --show-price',
      'az p5.48xlarge',
      'list',
      'quotas p5 trn1',
      'capacity --odcr --gpu-only',
      'capacity --blocks',
      'capacity --topology',
      'spot g5 g6 --show-savings --scores 4 --no-interruptions',
      'capacity --blocks --offerings --instance-types p5.48xlarge --count 8 --days 7 --start-after 2026-01-01',
      'validate p5.48xlarge --count 8 --days 7',
    ]
    for (const line of lines) expect((await account.run(...line.split(' '), '--fresh')).exitCode).toBe(0)
    const { actions, problems } = await judgeWire(python!, proxy!.calls)
    expect(problems).toEqual([])
    expect(actions).toEqual(
      [
        'DescribeAvailabilityZones',
        'DescribeCapacityBlockOfferings',
        'DescribeCapacityReservationTopology',
        'DescribeCapacityReservations',
        'DescribeInstanceTypeOfferings',
        'DescribeInstanceTypes',
        'DescribeInstances',
        'DescribeRegions',
        'DescribeSpotPriceHistory',
        'DescribeSubnets',
        'GetCapacityManagerSupportabilityScores',
        'GetSpotPlacementScores',
      ]
        .map((name) => `ec2:${name}`)
        .concat('pricing:GetProducts', 'servicequotas:GetServiceQuota')
        .concat('servicequotas:ListRequestedServiceQuotaChangeHistory'),
    )
  })
})

const hasMoto = python !== undefined && hasMotoIn(python)

;(hasMoto ? describe : describe.skip)('on moto', () => {
  // In `npm test`, test/backends/ec2/moto.test.ts asks moto, by the same clients.
  itInAll('types, zones and spot prices are found; what moto does not know is named', async () => {
    account = await TruffleAccount.open({}, async () => (moto = await startMoto(python!)).endpoint)
    const types = await account.json('search', 'p5.48xlarge', '-r', 'us-east-1,us-west-2')
    expect(types.unanswered).toEqual([])
    expect(types.results[0]).toMatchObject({
      region: 'us-east-1',
      vcpus: 192,
      gpus: 8,
      gpu_model: 'H100',
      network_performance: '3200 Gigabit',
      efa_interfaces: 32,
    })
    const zones = await account.json('az', 'g5.xlarge', '-r', 'us-east-1')
    expect(zones.results[0]).toMatchObject({ availability_zones: expect.arrayContaining(['us-east-1a']) })
    const spot = await account.json('spot', 'g5.xlarge', '-r', 'us-east-1', '--no-interruptions')
    expect(spot.unanswered).toEqual([])
    const everywhere = await account.json('search', 'm5.large')
    expect(everywhere.results.length).toBeGreaterThan(10)
    const capacity = await account.run('capacity', '-r', 'us-east-1', '--json')
    expect([capacity.exitCode > 0, JSON.parse(capacity.stdout)]).toMatchObject([
      true,
      { error: { kind: expect.any(String) } },
    ])
  })
})
