/** Machines exchange data with the store at the speed of their disks and network, in worlds that say so. */
import { DescribeInstanceTypesCommand } from '@aws-sdk/client-ec2'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { Wires } from '../src/ec2/wires'
import { Limit, paceConnections, type Limits } from '../src/s3/pace'
import { planWorld } from '../src/world/load'
import { makeWorld } from '../src/world/world'
import type { Instance } from '../src/ec2/model'
import { stopClouds, testCloud } from './support'

const MIB = 2 ** 20

/** Sends a body to a server that echoes it, and returns the echo with the milliseconds that it took. */
async function echoed(limits: Limits | undefined, body: Buffer): Promise<{ back: Buffer; ms: number }> {
  const server = createServer((request, response) => void request.pipe(response))
  paceConnections(server, () => limits)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const from = performance.now()
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    method: 'PUT',
    body: new Uint8Array(body),
  })
  const back = Buffer.from(await answer.arrayBuffer())
  const ms = performance.now() - from
  server.closeAllConnections()
  server.close()
  return { back, ms }
}

afterEach(stopClouds)

describe('a connection to the store', () => {
  const body = randomBytes(MIB)

  it.each([
    ['up', { up: [new Limit(2 * MIB)], down: [] }],
    ['down', { up: [], down: [new Limit(2 * MIB)] }],
    ['in both directions by one limit', both(new Limit(4 * MIB))],
    ['by the least of several', { up: [new Limit(2 * MIB), new Limit(100 * MIB)], down: [] }],
  ])('is as fast as its limit %s', async (_, limits) => {
    const { back, ms } = await echoed(limits, body)
    expect(back.equals(body)).toBe(true)
    expect(ms).toBeGreaterThan(490)
  })

  it('shares a limit with the others of its machine', async () => {
    const limits = { up: [new Limit(4 * MIB)], down: [] }
    const all = await Promise.all([echoed(limits, body), echoed(limits, body), echoed(limits, body)])
    expect(Math.max(...all.map(({ ms }) => ms))).toBeGreaterThan(740)
  })

  it('without limits is served as it comes', async () => {
    expect((await echoed(undefined, body)).back.equals(body)).toBe(true)
  })
})

function both(limit: Limit): Limits {
  return { up: [limit], down: [limit] }
}

describe('the limits of a machine', () => {
  const speedsOf = (type: string, mibPerSecond: number, world: Parameters<typeof planWorld>[0]) => {
    const made = makeWorld({ plan: planWorld(world), directory: '' })
    const volumes = [{ speed: { mibPerSecond, iops: 3_000 } }]
    const machine = { owns: () => true }
    const instance = { type: made.types.get(type), volumes, machine } as unknown as Instance
    const wires = new Wires(
      made,
      () => [instance],
      () => process.pid,
    )
    const limits = wires.limitsOf({ localPort: 1, remotePort: 2 })
    // Milliseconds for a gibibyte on one connection.
    return limits && Math.round(Math.max(...limits.down.slice(0, 2).map((limit) => limit.take(1_024 * MIB))))
  }

  it.each([
    ['its root disk', 'c7i.large', 125, {}, 8_192],
    ['its link to the disk', 'g5.xlarge', 2_000, {}, 2_454],
    ['its network, with local disks', 'g5.xlarge', 125, { localDisks: true }, 859],
    ['the share of the world', 'c7i.large', 125, { throughput: 0.5 }, 16_384],
  ])('are those of %s', (_, type, mibPerSecond, world, ms) => {
    expect(speedsOf(type, mibPerSecond, { throughput: 1, ...world })).toBeCloseTo(ms, -1)
  })

  it('are none in a world without a throughput', () => {
    expect(speedsOf('c7i.large', 125, {})).toBeUndefined()
  })

  it('can be read by EC2 users', async () => {
    const { clients } = await testCloud()
    const InstanceTypes: ['g5.xlarge', 'p4d.24xlarge'] = ['g5.xlarge', 'p4d.24xlarge']
    const answer = await clients.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes }))
    const found = new Map(answer.InstanceTypes!.map((one) => [one.InstanceType, one.NetworkInfo]))
    expect(found.get('g5.xlarge')).toMatchObject({
      NetworkPerformance: 'Up to 10 Gigabit',
      NetworkCards: [{ NetworkCardIndex: 0, BaselineBandwidthInGbps: 2.5, PeakBandwidthInGbps: 10 }],
    })
    expect(found.get('p4d.24xlarge')!.NetworkPerformance).toBe('4x 100 Gigabit')
    expect(found.get('p4d.24xlarge')!.NetworkCards).toHaveLength(4)
  })
})
