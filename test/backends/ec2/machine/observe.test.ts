import { EC2Client, RunInstancesCommand, TerminateInstancesCommand } from '@aws-sdk/client-ec2'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { MachineHandle } from '../../../../core/handle'
import type { Order } from '../../../../core/job/plan'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../../core/time/time'
import { IMAGE } from '../../../../packages/small-cloud/test/support'
import { patiently } from '../../harness'
import { Ec2Harness, type PaperHarness } from '../harness'

describe('what EC2 says of machines', () => {
  let h: PaperHarness
  let order: Order
  let handle: MachineHandle
  beforeEach(async () => {
    h = await Ec2Harness.onPaper({
      world: { durations: { notFound: '10s', pending: '1s', shuttingDown: '5s', terminatedVisible: '1h' } },
      config: { staleForMs: 5 * MINUTE_MS },
    })
    order = await h.order()
    handle = await h.launched(order)
  })
  afterEach(() => h.dispose())
  const look = async () => (await h.backend.observe([handle], patiently()))[0]

  it.each([
    ['Server.SpotInstanceTermination', { cause: 'interrupted' }],
    ['Server.SpotInstanceShutdown', { cause: 'interrupted' }],
    ['Client.UserInitiatedShutdown', { cause: 'ended' }],
    ['Client.InstanceInitiatedShutdown', { cause: 'ended' }],
    ['Server.InsufficientInstanceCapacity', { cause: 'failed-to-start', failure: { class: 'capacity' } }],
    ['Client.VolumeLimitExceeded', { cause: 'failed-to-start', failure: { class: 'quota' } }],
    ['Something.New', { cause: 'unknown', detail: expect.stringContaining('Something.New') }],
  ])('ended by %s', async (reason, expected) => {
    h.cloud.addFault({ fault: 'launch-fails', reason })
    handle = await h.launched(await h.order())
    await h.clock.advance(MINUTE_MS)
    expect(await look()).toMatchObject({ state: 'gone', ...expected })
  })

  it('is not believed when it shows nothing of a machine that is too young for its lists', async () => {
    expect(await look()).toMatchObject({ state: 'pending' })
    await h.clock.advance(10 * SECOND_MS)
    expect(await look()).toMatchObject({ state: 'running' })
    await h.backend.terminate(handle, patiently())
    await h.clock.advance(2 * HOUR_MS)
    expect(await look()).toEqual({
      state: 'gone',
      cause: 'unknown',
      detail: 'EC2 does not know this machine',
    })
  })

  it('does not say that a young machine is gone because the clock was set back', async () => {
    const [seen] = await h.backend.observe(
      [{ ...handle, id: 'i-0123456789abcdef0', launchedAtMs: h.clock.nowMs() + 2 * HOUR_MS }],
      patiently(),
    )
    expect(seen).toMatchObject({ state: 'pending' })
  })

  it('takes some time until the absence of an unknown launch is certain', async () => {
    const other = await h.reopen()
    const find = (attemptId: string) => other.find(attemptId, patiently())
    expect(await find('job-lost-1')).toEqual({ kind: 'unsettled', againInMs: 15_000 })
    await h.clock.advance(299_000)
    expect(await find('job-lost-1')).toEqual({ kind: 'unsettled', againInMs: 1_000 })
    await h.clock.advance(1_000)
    expect(await find('job-lost-1')).toEqual({ kind: 'absent' })
  })

  it('takes that time also when the clock is set ahead meanwhile: the lists may still be old', async () => {
    let monotonicMs = 0
    const stepped = await Ec2Harness.onPaper({
      config: { staleForMs: 5 * MINUTE_MS },
      deps: { monotonic: () => monotonicMs },
    })
    try {
      const find = () => stepped.backend.find('job-lost-1', patiently())
      expect(await find()).toMatchObject({ kind: 'unsettled' })
      await stepped.clock.advance(2 * HOUR_MS)
      monotonicMs = 299_000
      expect(await find()).toEqual({ kind: 'unsettled', againInMs: 1_000 })
      monotonicMs = 300_000
      expect(await find()).toEqual({ kind: 'absent' })
    } finally {
      await stepped.dispose()
    }
  })

  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'hides a young machine for as long as the lists may, when the clock is set by %d ms',
    async (stepMs) => {
      let [aheadMs, monotonicMs] = [0, 0]
      const nowMs = h.clock.nowMs()
      const deps = { clock: () => nowMs + aheadMs, monotonic: () => monotonicMs }
      const backend = await h.reopen({}, deps)
      const unlisted = { ...handle, id: 'i-0123456789abcdef0', launchedAtMs: nowMs - SECOND_MS }
      const seen = async () => (await backend.observe([unlisted], patiently()))[0]
      expect(await seen()).toMatchObject({ state: 'pending' })
      aheadMs = stepMs
      monotonicMs = 5 * MINUTE_MS - 2 * SECOND_MS
      expect(await seen()).toMatchObject({ state: 'pending' })
      monotonicMs += SECOND_MS
      expect(await seen()).toMatchObject({ state: 'gone' })
    },
  )

  it('counts a machine that is still shutting down: it may be at work, and costs nothing', async () => {
    await h.clock.advance(MINUTE_MS)
    const endedAtMs = Math.floor(h.clock.nowMs() / SECOND_MS) * SECOND_MS
    await h.backend.terminate(handle, patiently())
    expect(await look()).toMatchObject({ state: 'stopping', endedAtMs })
    expect(await h.backend.find(order.attemptId, patiently())).toMatchObject({ kind: 'found' })
    await h.clock.advance(MINUTE_MS)
    expect(await h.backend.find(order.attemptId, patiently())).toMatchObject({
      kind: 'absent',
      ended: [{ id: handle.id, realised: handle.realised }],
    })
  })

  it('is asked for no machine by a name that is not its own', async () => {
    await h.backend.observe([handle, { ...handle, id: 'job-1' }], patiently())
    const [asked] = h
      .calls('DescribeInstances')
      .map(({ parameters }) => JSON.stringify(parameters))
      .slice(-1)
    expect(asked).toContain(handle.id)
    expect(asked).not.toContain('job-1')
  })

  it('ends nothing of another deployment, and nothing twice', async () => {
    await h.clock.advance(MINUTE_MS)
    const theirs = await h.reopen({}, { deployment: 'theirs' })
    await expect(theirs.terminate(handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringContaining('belongs to deployment test') },
    })
    expect(h.calls('TerminateInstances')).toEqual([])
    await h.backend.terminate(handle, patiently())
    await h.backend.terminate(handle, patiently())
    expect(h.calls('TerminateInstances')).toHaveLength(1)
  })

  it('ends a machine abruptly, once, and none of another deployment', async () => {
    await h.clock.advance(MINUTE_MS)
    const theirs = await h.reopen({}, { deployment: 'theirs' })
    await expect(theirs.endAbruptly!(handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid' },
    })
    await h.backend.endAbruptly!(handle, patiently())
    await h.backend.endAbruptly!(handle, patiently())
    expect(h.calls('TerminateInstances')).toHaveLength(1)
  })

  it('lists volumes that no machine uses, and deletes them', async () => {
    const owner = { deployment: 'test', jobId: order.jobId, attemptId: order.attemptId }
    const Tags = Object.entries(owner).map(([name, Value]) => ({
      Key: `crucible:${name.replace(/Id$/, '')}`,
      Value,
    }))
    const client = new EC2Client({ region: 'us-east-1', endpoint: h.cloud.endpoint })
    const { Instances } = await client.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        InstanceType: 'm7i.large',
        MinCount: 1,
        MaxCount: 1,
        BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { DeleteOnTermination: false } }],
        TagSpecifications: [{ ResourceType: 'volume', Tags }],
      }),
    )
    await h.clock.advance(MINUTE_MS)
    await client.send(new TerminateInstancesCommand({ InstanceIds: [Instances![0]!.InstanceId!] }))
    await h.clock.advance(MINUTE_MS)
    client.destroy()
    const volumes = async () =>
      (await h.backend.list('test', patiently())).filter(({ handle: { kind } }) => kind === 'volume')
    const [volume] = await volumes()
    expect(volume).toMatchObject({ owner })
    await h.backend.terminate(volume!.handle, patiently())
    await h.backend.terminate(volume!.handle, patiently())
    expect(await volumes()).toEqual([])
  })
})
