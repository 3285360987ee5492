import { beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../../backends/backend'
import type { MachineHandle } from '../../../../core/handle'
import type { Order } from '../../../../core/job/plan'
import { patiently } from '../../harness'
import type { FakeMachine } from '../fake-machine'
import { Ec2Harness } from '../harness'

describe('what EC2 says of machines', () => {
  let nowMs: number
  let h: Ec2Harness
  let backend: Backend
  let order: Order
  let handle: MachineHandle
  let machine: FakeMachine
  beforeEach(async () => {
    nowMs = Date.now()
    h = new Ec2Harness({ staleForMs: 300_000 }, { clock: () => nowMs })
    backend = h.backend
    order = await h.order()
    const outcome = await backend.launch(order, patiently())
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    handle = outcome.handle
    machine = h.aws.machines.get(handle.id)!
  })
  const look = async () => (await backend.observe([handle], patiently()))[0]

  it.each([
    ['Server.SpotInstanceTermination', { cause: 'interrupted' }],
    ['Server.SpotInstanceShutdown', { cause: 'interrupted' }],
    ['Client.UserInitiatedShutdown', { cause: 'ended' }],
    ['Client.InstanceInitiatedShutdown', { cause: 'ended' }],
    ['Server.InsufficientInstanceCapacity', { cause: 'failed-to-start', failure: { class: 'capacity' } }],
    ['Client.VolumeLimitExceeded', { cause: 'failed-to-start', failure: { class: 'quota' } }],
    ['Something.New', { cause: 'unknown', detail: 'in its own words' }],
  ])('ended by %s', async (code, expected) => {
    machine.end({ code, message: 'in its own words' })
    // From now on it costs nothing, told in whole seconds.
    const endedAtMs = Math.floor(nowMs / 1_000) * 1_000
    expect(await look()).toMatchObject({ state: 'stopping', endedAtMs })
    nowMs += 1_000
    expect(await look()).toMatchObject({ state: 'gone', ...expected })
  })

  it('is not believed when it shows nothing of a machine that is too young for its lists', async () => {
    h.aws.staleForMs = 10_000
    expect(await look()).toMatchObject({ state: 'pending' })
    nowMs += 10_000
    expect(await look()).toMatchObject({ state: 'running' })
    h.aws.machines.delete(handle.id)
    nowMs += 300_000
    expect(await look()).toEqual({
      state: 'gone',
      cause: 'unknown',
      detail: 'EC2 does not know this machine',
    })
  })

  it('takes some time until the absence of an unknown launch is certain', async () => {
    const other = h.open()
    const find = (attemptId: string) => other.find(attemptId, patiently())
    expect(await find('job-lost-1')).toEqual({ kind: 'unsettled', againInMs: 15_000 })
    nowMs += 299_000
    expect(await find('job-lost-1')).toEqual({ kind: 'unsettled', againInMs: 1_000 })
    nowMs += 1_000
    expect(await find('job-lost-1')).toEqual({ kind: 'absent' })
  })

  it('counts a machine that is still shutting down: it may be at work', async () => {
    await backend.terminate(handle, patiently())
    expect(await backend.find(order.attemptId, patiently())).toMatchObject({ kind: 'found' })
    nowMs += 1_000
    expect(await backend.find(order.attemptId, patiently())).toMatchObject({
      ...{ kind: 'absent', ended: [{ id: handle.id, realised: handle.realised }] },
    })
  })

  it('is asked for all machines together, and for none by a name that is not its own', async () => {
    const many = Array.from({ length: 450 }, (_, at) => ({
      ...handle,
      id: `i-${String(at).padStart(17, '0')}`,
    }))
    await backend.observe([...many, { ...handle, id: 'job-1' }], patiently())
    const asked = h.aws.calls.filter(({ name }) => name === 'byId').at(-1)!.detail as string[]
    expect(asked).toHaveLength(450)
  })

  it('ends nothing of another deployment, and nothing twice', async () => {
    const theirs = h.open({ deployment: 'theirs' })
    await expect(theirs.terminate(handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringContaining('belongs to deployment test') },
    })
    expect(h.aws.countOf('terminate')).toBe(0)
    await backend.terminate(handle, patiently())
    await backend.terminate(handle, patiently())
    expect(h.aws.countOf('terminate')).toBe(1)
  })

  it('ends a machine abruptly, once, and none of another deployment', async () => {
    await expect(h.open({ deployment: 'theirs' }).endAbruptly!(handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid' },
    })
    await backend.endAbruptly!(handle, patiently())
    await backend.endAbruptly!(handle, patiently())
    expect(h.aws.countOf('terminate')).toBe(1)
  })

  it('lists volumes that no machine uses, and deletes them', async () => {
    const tags = {
      'crucible:deployment': 'test',
      'crucible:job': order.jobId,
      'crucible:attempt': order.attemptId,
    }
    h.aws.volumes.push({ id: 'vol-1', state: 'available', zone: 'a', sizeGiB: 100, createdAtMs: nowMs, tags })
    const volume = (await backend.list('test', patiently())).find(({ handle: { kind } }) => kind === 'volume')
    expect(volume).toMatchObject({ handle: { id: 'vol-1' }, owner: { attemptId: order.attemptId } })
    await backend.terminate(volume!.handle, patiently())
    await backend.terminate(volume!.handle, patiently())
    expect(h.aws.volumes).toEqual([])
  })
})
