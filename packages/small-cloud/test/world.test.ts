import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import {
  DescribeAvailabilityZonesCommand,
  DescribeSpotPriceHistoryCommand,
  paginateDescribeSpotPriceHistory,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import { startCloud, type WorldText } from '../src/index'
import { DURATIONS } from '../src/world/durations'
import { loadWorld, planWorld } from '../src/world/load'
import { valueAt } from '../src/world/series'
import { readTrace } from '../src/world/traces'
import { makeWorld } from '../src/world/world'
import { Market } from '../src/world/market'
import { DrivenClock } from '../src/clock'
import { testFolder } from './support/folders'
import { stopClouds, testCloud } from './support'

afterEach(stopClouds)

function file(name: string, text: string | Buffer): string {
  const path = join(testFolder('world'), name)
  writeFileSync(path, text)
  return path
}

const HOUR_MS = 3_600_000

function market(
  world: WorldText,
  clock = new DrivenClock(1_795_000_000_000),
): { market: Market; clock: DrivenClock } {
  return { market: new Market(makeWorld({ plan: planWorld(world), directory: '/' }), clock), clock }
}

const POOL = { region: 'us-east-1', zone: 'us-east-1a', type: 'g5.xlarge', capacity: 'spot' } as const

describe('a world file', () => {
  it('is YAML or JSON, with durations in units', () => {
    const yaml = file(
      'world.yaml',
      'seed: 4\nspeed: 60\ndurations:\n  boot: [1s, 2m]\n  notice: 90s\nstock:\n  - type: g5.xlarge\n    changes: [[0, 2], [1h, 0]]\n',
    )
    const world = makeWorld(loadWorld(yaml))
    expect([world.seed, world.speed, world.durations.boot, world.durations.notice]).toEqual([
      '4',
      60,
      [1000, 120_000],
      [90_000, 90_000],
    ])
    expect(world.durations.pending).toEqual(DURATIONS.pending)
    expect(loadWorld(file('world.json', JSON.stringify({ seed: 4 }))).plan.seed).toBe(4)
    expect(
      makeWorld(loadWorld(file('empty.yaml', '')))
        .regions.get('us-east-1')!
        .zones.map(({ id }) => id),
    ).toEqual(['use1-az1', 'use1-az2', 'use1-az3'])
  })

  it.each([
    ['seeds: 1\n', /:1:1: seeds: there is no field seeds here/],
    ['a: [\n', /:2:1: /],
    ['durations:\n  boot: 5 parsecs\n', /:2:9: durations\.boot: .*is not a duration; write 500ms/],
    ['durations:\n  boots: 5s\n', /:2:3: durations\.boots: there is no field boots/],
    ['stock:\n  - type: g5.xlarge\n', /:2:5: stock\.0: needs exactly one of count, changes, trace/],
    ['faults:\n  - fault: explosion\n', /:2:\d+: faults\.0\.fault: /],
    ['faults:\n  - fault: error\n', /:2:\d+: faults\.0(\.code)?: /],
    [
      'faults:\n  - fault: error\n    code: A\n    where: { zone: us-east-1a }\n',
      /faults\.0\.where\.zone: there is no field zone here/,
    ],
    ['quotas:\n  G: 3\n', /:2:\d+: quotas\.G: is not a quota code, such as L-DB2E81BA/],
    ['faults:\n  - fault: crash\n', /:2:5: faults\.0\.after: is missing/],
    ['stock:\n  - { type: g5.xlrge, count: 1 }\n', /:2:13: stock\.0\.type: this world has no type g5\.xlrge/],
    [
      'prices:\n  - { zone: us-east-9a, usdPerHour: 1 }\n',
      /:2:13: prices\.0\.zone: this world has no zone us-east-9a; it has us-east-1a, us-east-1b, us-east-1c/,
    ],
    [
      'stock:\n  - { region: eu-west-1, count: 1 }\n',
      /stock\.0\.region: .*no region eu-west-1; it has us-east-1/,
    ],
    [
      'transfers:\n  - { from: eu-west-9, usdPerGb: 1 }\n',
      /:2:13: transfers\.0\.from: this world has no region eu-west-9; it has us-east-1/,
    ],
    [
      'transfers:\n  - { to: eu-west-9, usdPerGb: 1 }\n',
      /transfers\.0\.to: this world has no region eu-west-9/,
    ],
    ['offered: { g9.large: [us-east-1a] }\n', /:1:\d+: offered\.g9\.large: this world has no type g9\.large/],
    ['offered: { g5.xlarge: [us-east-1f] }\n', /offered\.g5\.xlarge\.0: this world has no zone us-east-1f/],
    [
      'faults:\n  - { fault: crash, after: 1m, where: { zone: us-east-2* } }\n',
      /faults\.0\.where\.zone: this world has no zone us-east-2\*/,
    ],
    [
      'regions:\n  us-east-1:\n    zones: [us-east-1a]\n    subnets: [{ zone: us-east-1b, egress: nat }]\n',
      /:4:\d+: regions\.us-east-1\.subnets\.0\.zone: this world has no zone us-east-1b; it has us-east-1a/,
    ],
  ])('%j is refused with its place and the way out', (text, words) => {
    const path = file('world.yaml', text)
    expect(() => loadWorld(path)).toThrow(words)
    expect(() => loadWorld(path)).toThrow(path)
  })

  it('may name zones and types with *, and types of its own', () => {
    const text =
      'types: { own.large: { vcpus: 2, memoryGiB: 4, usdPerHour: 1 } }\nstock: [{ type: own.large, count: 1 }]\n' +
      'faults: [{ fault: no-capacity, where: { zone: us-east-1*, type: g5.* } }]\n'
    expect(loadWorld(file('world.yaml', text)).plan.stock[0]!.type).toBe('own.large')
  })

  it('is missed where it is not, or is none', () => {
    expect(() => loadWorld('/none.yaml')).toThrow('there is no world file /none.yaml')
    expect(() => loadWorld(testFolder('world'))).toThrow(/the world file .* cannot be read \(EISDIR\); give/)
  })

  it('fails before anything listens where one of its recordings cannot be used', async () => {
    const odd = file('odd.json', '{}')
    await expect(startCloud({ world: { stock: [{ trace: { file: odd } }] } })).rejects.toThrow(
      /stock\.0\.trace: .*odd\.json is not a recording/,
    )
    await expect(startCloud({ world: { stock: [{ trace: { file: 'gone.json' } }] } })).rejects.toThrow(
      /gone\.json cannot be read \(ENOENT\)/,
    )
  })
})

describe('prices and stock', () => {
  it('of the usual world are below those on demand, repeat with the seed, and move', () => {
    const { market: first, clock } = market({ seed: 1 })
    const price = first.priceOf(POOL)
    expect(price).toBeGreaterThan(0.2)
    expect(price).toBeLessThan(1.006 * 0.5)
    expect(market({ seed: 1 }).market.priceOf(POOL)).toBe(price)
    expect(market({ seed: 2 }).market.priceOf(POOL)).not.toBe(price)
    const history = first.priceHistory(POOL, clock.nowMs() - 10 * 24 * HOUR_MS, clock.nowMs())
    expect(history.length).toBeGreaterThan(30)
    expect(history[0]).toEqual({ atMs: clock.nowMs(), usdPerHour: price })
  })

  it('follow the last rule that fits, at the speed of the world', async () => {
    const { market: test, clock } = market({
      speed: 60,
      prices: [
        { usdPerHour: 9 },
        {
          type: 'g5.xlarge',
          changes: [
            [0, 0.4],
            ['1h', 0.6],
          ],
        },
      ],
      stock: [
        { count: 5 },
        {
          zone: 'us-east-1a',
          capacity: 'spot',
          changes: [
            [0, 3],
            ['2h', 1],
          ],
        },
      ],
    })
    expect([test.priceOf(POOL), test.priceOf({ ...POOL, type: 'p3.2xlarge' })]).toEqual([0.4, 9])
    expect([test.stockOf(POOL), test.stockOf({ ...POOL, zone: 'us-east-1b' })]).toEqual([3, 5])
    expect([test.untilPriceChangeMs(POOL), test.untilStockChangeMs(POOL)]).toEqual([60_000, 120_000])
    await clock.advance(60_000)
    expect([test.priceOf(POOL), test.stockOf(POOL)]).toEqual([0.6, 3])
    await clock.advance(60_000)
    expect([test.stockOf(POOL), test.untilStockChangeMs(POOL)]).toEqual([1, undefined])
  })

  it('are reported by the price history: the current ones, and the changes since', async () => {
    const { clients, clock } = await testCloud({
      prices: [
        {
          type: 'g5.xlarge',
          changes: [
            [0, 0.4],
            ['1h', 0.6],
            ['2h', 0.5],
          ],
        },
      ],
    })
    const ask = async (fromMs: number) => {
      const now = new Date(clock.nowMs())
      const pages = paginateDescribeSpotPriceHistory(
        { client: clients.ec2, pageSize: 2 },
        {
          StartTime: new Date(clock.nowMs() - fromMs),
          EndTime: now,
          InstanceTypes: ['g5.xlarge'],
          ProductDescriptions: ['Linux/UNIX'],
        },
      )
      const rows: string[] = []
      for await (const { SpotPriceHistory } of pages)
        for (const { AvailabilityZone, SpotPrice } of SpotPriceHistory ?? [])
          if (AvailabilityZone === 'us-east-1b') rows.push(SpotPrice!)
      return rows
    }
    await clock.advance(2.5 * HOUR_MS)
    expect(await ask(0)).toEqual(['0.500000'])
    expect(await ask(HOUR_MS)).toEqual(['0.500000', '0.600000'])
    expect(await ask(24 * HOUR_MS)).toEqual(['0.500000', '0.600000', '0.400000'])
    const none = await clients.ec2.send(
      new DescribeSpotPriceHistoryCommand({ ProductDescriptions: ['Windows'] }),
    )
    expect(none.SpotPriceHistory).toEqual([])
  })
})

describe('recordings', () => {
  it('of ticks give stock and prices', () => {
    const path = file(
      'ticks.json',
      JSON.stringify({ metadata: { gap_seconds: 600 }, data: [1, 1, 0, 2], prices: [0.5, 0.5, 0.7, 0.6] }),
    )
    const { stock, usdPerHour } = readTrace(path, { offset: 600_000 })
    expect(stock!.changes).toEqual([
      [-600_000, 1],
      [600_000, 0],
      [1_200_000, 2],
    ])
    expect([valueAt(stock!, 0), valueAt(stock!, 600_000), valueAt(usdPerHour!, 700_000)]).toEqual([1, 0, 0.7])
  })

  it('of nodes give their number', () => {
    const path = file('nodes.csv', 'ms,event,node\n0,add,a\n0,add,b\n60000,remove,a\n90000,add,c\n')
    expect(readTrace(path, { offset: 0 }).stock!.changes).toEqual([
      [0, 2],
      [60_000, 1],
      [90_000, 2],
    ])
  })

  it('of price changes are aligned over their zones', () => {
    const path = file(
      'prices.csv',
      'zone,time_as_recorded,usd_per_hour\nz1,2023-02-16T05:00:00,1.5\nz2,2023-02-16T06:00:00,1.7\n',
    )
    expect(readTrace(path, { zone: 'z2', offset: 0 }).usdPerHour!.changes).toEqual([[HOUR_MS, 1.7]])
    expect(() => readTrace(path, { offset: 0 })).toThrow(
      'holds several zones; write `zone:` with one of z1, z2',
    )
    expect(() => readTrace(path, { zone: 'z3', offset: 0 })).toThrow('has no zone z3')
  })

  it('of windows give both', () => {
    const line = {
      zone: 'z1',
      window: 3,
      start_time: 'x',
      gap_seconds: 100,
      ticks: 3,
      available_rle: [
        [1, 2],
        [0, 1],
      ],
      spot_price_rle: [[0.9, 3]],
    }
    const path = file('windows.ndjson.gz', gzipSync(`${JSON.stringify(line)}\n`))
    const { stock, usdPerHour } = readTrace(path, { window: 3, offset: 0 })
    expect([stock!.changes, usdPerHour!.changes]).toEqual([
      [
        [0, 1],
        [200_000, 0],
      ],
      [[0, 0.9]],
    ])
  })
})

describe('regions', () => {
  it('are those of the world', async () => {
    const { clients } = await testCloud({
      regions: {
        'us-west-2': { zones: ['us-west-2a', 'us-west-2c'] },
        'us-east-1': { zones: ['us-east-1a'] },
      },
    })
    const { AvailabilityZones } = await clients.ec2.send(new DescribeAvailabilityZonesCommand({}))
    expect(AvailabilityZones!.map(({ ZoneName, ZoneId }) => [ZoneName, ZoneId])).toEqual([
      ['us-east-1a', 'use1-az1'],
    ])
  })
})
