import {
  CreateTagsCommand,
  DescribeInstancesCommand,
  DescribeRegionsCommand,
  DescribeSubnetsCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  clientsOf,
  IMAGE,
  operatorOf,
  refusal,
  stopClouds,
  testCloud,
  type TestCloud,
  UP_MS,
} from './support'

afterEach(stopClouds)

const SPOT: RunInstancesCommandInput = {
  ImageId: IMAGE,
  InstanceType: 'g5.xlarge',
  MinCount: 1,
  MaxCount: 1,
  Placement: { AvailabilityZone: 'us-east-1a' },
  InstanceMarketOptions: { MarketType: 'spot' },
}

async function run(
  { clients, clock }: TestCloud,
  more: Partial<RunInstancesCommandInput> = {},
  upMs = UP_MS,
): Promise<string> {
  const { Instances } = await clients.ec2.send(new RunInstancesCommand({ ...SPOT, ...more }))
  await clock.advance(upMs)
  return Instances![0]!.InstanceId!
}

const summary = ({ cloud }: TestCloud, id: string) => cloud.instances().find((each) => each.id === id)!

describe('an answer that is lost', () => {
  it.each(['reset', 'internal-error', 'unavailable'] as const)(
    '(%s) leaves its effect behind',
    async (instead) => {
      const test = await testCloud({
        faults: [{ fault: 'lost-answer', instead, where: { action: 'RunInstances' }, times: 1 }],
      })
      const launch = (clients = test.clients) =>
        clients.ec2.send(new RunInstancesCommand({ ...SPOT, ClientToken: 'once' }))
      await refusal(launch())
      expect(test.cloud.instances()).toHaveLength(1)
      const { Instances } = await launch()
      expect(Instances![0]!.InstanceId).toBe(test.cloud.instances()[0]!.id)
      expect(
        test.cloud.journal.calls({ action: 'RunInstances' }).map(({ isAnswerLost }) => isAnswerLost),
      ).toEqual([true, false])
    },
  )

  it('shows that a client sends again on its own', async () => {
    const test = await testCloud({
      faults: [{ fault: 'lost-answer', instead: 'internal-error', where: { action: 'RunInstances' } }],
    })
    await refusal(clientsOf(test.cloud.endpoint, { maxAttempts: 3 }).ec2.send(new RunInstancesCommand(SPOT)))
    const calls = test.cloud.journal.calls({ isMutating: true })
    expect(calls.map(({ sending }) => sending)).toEqual([1, 2, 3])
    expect(new Set(calls.map(({ invocation }) => invocation)).size).toBe(1)
    // The SDK fills in a token and repeats it, so there is one machine.
    expect(test.cloud.instances()).toHaveLength(1)
  })
})

describe('errors by the world', () => {
  it('come with the status that belongs to the code, as often as they are configured', async () => {
    const test = await testCloud({
      faults: [
        { fault: 'error', code: 'RequestLimitExceeded', where: { action: 'Describe*' }, times: 1 },
        { fault: 'error', code: 'InternalError', where: { action: 'DescribeRegions' }, skip: 1, times: 1 },
        { fault: 'error', code: 'Odd', status: 418, message: 'so', from: '1m', until: '2m' },
      ],
    })
    const ask = () => test.clients.ec2.send(new DescribeRegionsCommand({}))
    expect(await refusal(ask())).toMatchObject({ code: 'RequestLimitExceeded', status: 503 })
    await ask()
    expect(await refusal(ask())).toMatchObject({ code: 'InternalError', status: 500 })
    await ask()
    await test.clock.advance(60_000)
    expect(await refusal(ask())).toMatchObject({ code: 'Odd', status: 418, message: 'so' })
    await test.clock.advance(60_000)
    await ask()
  })

  it('of chance repeat with the seed', async () => {
    const pattern = async (seed: number): Promise<string> => {
      const test = await testCloud({ seed, faults: [{ fault: 'error', code: 'Unavailable', chance: 0.5 }] })
      const outcomes: string[] = []
      for (let i = 0; i < 24; i++)
        outcomes.push(
          await test.clients.ec2.send(new DescribeRegionsCommand({})).then(
            () => '+',
            () => '-',
          ),
        )
      return outcomes.join('')
    }
    const first = await pattern(7)
    expect(first).toMatch(/\+.*-|-.*\+/)
    expect(await pattern(7)).toBe(first)
    expect(await pattern(8)).not.toBe(first)
  })

  it('may be added while the cloud runs', async () => {
    const { cloud, clients } = await testCloud()
    const answer = await fetch(`${cloud.endpoint}/_sim/faults`, {
      method: 'POST',
      headers: operatorOf(cloud),
      body: JSON.stringify({ fault: 'error', code: 'Blocked', times: 1 }),
    })
    expect(answer.status).toBe(200)
    expect(await refusal(clients.ec2.send(new DescribeRegionsCommand({})))).toMatchObject({
      code: 'Blocked',
      status: 403,
    })
    const wrong = await fetch(`${cloud.endpoint}/_sim/faults`, {
      method: 'POST',
      headers: operatorOf(cloud),
      body: '{"fault":"none"}',
    })
    expect([wrong.status, ((await wrong.json()) as { error: string }).error]).toEqual([
      400,
      expect.stringContaining('fault'),
    ])
    const foreign = await fetch(`${cloud.endpoint}/_sim/faults`, {
      method: 'POST',
      headers: { authorization: operatorOf(cloud)['authorization']! },
      body: '{"fault":"no-capacity"}',
    })
    expect(foreign.status).toBe(415)
  })
})

describe('eventual consistency', () => {
  it('hides a new instance, then shows it', async () => {
    const test = await testCloud({ durations: { notFound: '4s' } })
    const id = await run(test, {}, 0)
    const list = async () => (await test.clients.ec2.send(new DescribeInstancesCommand({}))).Reservations
    expect(
      (await refusal(test.clients.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] })))).code,
    ).toBe('InvalidInstanceID.NotFound')
    expect(
      (
        await refusal(
          test.clients.ec2.send(new CreateTagsCommand({ Resources: [id], Tags: [{ Key: 'a', Value: 'b' }] })),
        )
      ).code,
    ).toBe('InvalidInstanceID.NotFound')
    expect(
      (await refusal(test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] })))).code,
    ).toBe('InvalidInstanceID.NotFound')
    expect(await list()).toEqual([])
    await test.clock.advance(4000)
    expect(await list()).toHaveLength(1)
  })

  it('shows states of the past', async () => {
    const test = await testCloud({ durations: { staleList: '1m', terminatedVisible: '1h' } })
    const id = await run(test, {}, 120_000)
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }))
    await test.clock.advance(30_000)
    const state = async () =>
      (await test.clients.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }))).Reservations![0]!
        .Instances![0]!.State!.Name
    expect([await state(), summary(test, id).state]).toEqual(['running', 'terminated'])
    await test.clock.advance(60_000)
    expect(await state()).toBe('terminated')
  })
})

describe('throttling', () => {
  it('follows the documented buckets', async () => {
    const test = await testCloud()
    const { ec2 } = test.clients
    const send = (count: number, ask: () => Promise<unknown>) =>
      Promise.allSettled(Array.from({ length: count }, ask))
    const refused = async (count: number, ask: () => Promise<unknown>) =>
      (await send(count, ask)).filter(({ status }) => status === 'rejected').length
    // 50 unfiltered, 100 with a filter or pages.
    expect(await refused(53, () => ec2.send(new DescribeInstancesCommand({})))).toBe(3)
    expect(await refused(103, () => ec2.send(new DescribeSubnetsCommand({ MaxResults: 5 })))).toBe(3)
    await test.clock.advance(1000)
    expect(await refused(12, () => ec2.send(new DescribeInstancesCommand({})))).toBe(2)
  })

  it('can be switched off', async () => {
    const test = await testCloud({ throttling: 'off' })
    await Promise.all(
      Array.from({ length: 60 }, () => test.clients.ec2.send(new DescribeInstancesCommand({}))),
    )
  })
})

describe('interruptions', () => {
  it('announce themselves in the metadata, then take the machine', async () => {
    const test = await testCloud({
      faults: [{ fault: 'interruption', after: '10m', rebalanceBefore: '3m', where: { capacity: 'spot' } }],
    })
    const id = await run(test)
    const machine = test.machines.get(id)!
    await test.clock.advance(10 * 60_000)
    expect(JSON.parse(machine.metadata('events/recommendations/rebalance')!)).toEqual({
      noticeTime: expect.stringMatching(/Z$/),
    })
    expect(machine.metadata('spot/instance-action')).toBeUndefined()
    await test.clock.advance(3 * 60_000)
    const notice = JSON.parse(machine.metadata('spot/instance-action')!) as { action: string; time: string }
    expect(notice.action).toBe('terminate')
    expect(Math.abs(Date.parse(notice.time) - test.clock.nowMs() - 2 * 60_000)).toBeLessThan(2 * UP_MS)
    expect(summary(test, id).state).toBe('running')
    await test.clock.advance(2 * 60_000 + UP_MS)
    expect(summary(test, id)).toMatchObject({ state: 'terminated', reason: 'Server.SpotInstanceTermination' })
    expect(machine.isDead).toBe(true)
  })

  it('leave machines on demand alone, and may come without a word', async () => {
    const test = await testCloud({ faults: [{ fault: 'interruption', after: '1m', isSilent: true }] })
    const [spot, other] = [await run(test), await run(test, { InstanceMarketOptions: undefined })]
    await test.clock.advance(2 * 60_000)
    expect([summary(test, spot).state, summary(test, other).state]).toEqual(['terminated', 'running'])
    expect(test.machines.get(spot)!.metadata('spot/instance-action')).toBeUndefined()
  })

  it('come when the pool no longer holds the machine', async () => {
    const test = await testCloud({
      stock: [
        {
          type: 'g5.xlarge',
          capacity: 'spot',
          changes: [
            [0, 2],
            ['10m', 1],
          ],
        },
      ],
    })
    const [elder, younger] = [await run(test), await run(test)]
    await test.clock.advance(10 * 60_000)
    expect(test.machines.get(younger)!.metadata('spot/instance-action')).toBeDefined()
    await test.clock.advance(3 * 60_000)
    expect([summary(test, elder).state, summary(test, younger).state]).toEqual(['running', 'terminated'])
    expect((await refusal(run(test))).code).toBe('InsufficientInstanceCapacity')
  })

  it('come when the price passes what somebody will pay', async () => {
    const test = await testCloud({
      prices: [
        {
          type: 'g5.xlarge',
          changes: [
            [0, 0.3],
            ['10m', 0.5],
          ],
        },
      ],
    })
    const capped = await run(test, {
      InstanceMarketOptions: { MarketType: 'spot', SpotOptions: { MaxPrice: '0.4' } },
    })
    const open = await run(test)
    await test.clock.advance(13 * 60_000)
    expect([summary(test, capped).state, summary(test, open).state]).toEqual(['terminated', 'running'])
  })
})

describe('machines that fail', () => {
  it('launches that fail after they were accepted', async () => {
    const test = await testCloud({
      faults: [{ fault: 'launch-fails', reason: 'Client.VolumeLimitExceeded', times: 1 }],
    })
    const id = await run(test)
    expect(summary(test, id)).toMatchObject({ state: 'terminated', reason: 'Client.VolumeLimitExceeded' })
    expect(test.machines.size).toBe(0)
    expect(summary(test, await run(test)).state).toBe('running')
  })

  it('shutting-down that lasts, and keeps its place in the pool', async () => {
    const test = await testCloud({
      stock: [{ count: 1 }],
      faults: [{ fault: 'stuck-shutting-down', for: '20m' }],
    })
    const id = await run(test)
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }))
    await test.clock.advance(19 * 60_000)
    expect(summary(test, id).state).toBe('shutting-down')
    expect(test.machines.get(id)!.isDead).toBe(true)
    expect((await refusal(run(test))).code).toBe('InsufficientInstanceCapacity')
    await test.clock.advance(2 * 60_000)
    expect(summary(test, id).state).toBe('terminated')
    await run(test)
  })

  it('hardware that dies, and machines that fall silent', async () => {
    const test = await testCloud({
      faults: [
        { fault: 'crash', after: '1m', where: { zone: 'us-east-1a' } },
        { fault: 'hang', after: '1m', where: { zone: 'us-east-1b' } },
      ],
    })
    const crashed = await run(test)
    const hung = await run(test, { Placement: { AvailabilityZone: 'us-east-1b' } })
    await test.clock.advance(2 * 60_000)
    expect(summary(test, crashed)).toMatchObject({ state: 'terminated', reason: 'Server.InternalError' })
    expect(summary(test, hung)).toMatchObject({ state: 'running', isImpaired: true })
    expect([crashed, hung].map((id) => test.machines.get(id)!.isDead)).toEqual([true, true])
  })
})
