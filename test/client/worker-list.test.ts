import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { workerList } from '../../client/worker-list'
import { ClientWorld, NOW } from './world'

let world: ClientWorld
beforeEach(async () => {
  world = await ClientWorld.make()
})
afterEach(() => world.remove())

const timestamp = (atMs: number): object => ({
  seconds: Math.floor(atMs / 1_000),
  nanos: (atMs % 1_000) * 1e6,
})

/** A worker as the server has heard of it. */
function heard(taskQueue: string, { host = 'a', pid = 7, agoMs = 1_000, used = 0, status = 1 } = {}): object {
  return {
    workerHeartbeat: {
      taskQueue,
      workerIdentity: `ec2@${host}?version=0.1.0&pid=${pid}&started=1`,
      status,
      startTime: timestamp(NOW - 60_000),
      heartbeatTime: timestamp(NOW - agoMs),
      activityTaskSlotsInfo: { currentUsedSlots: used, currentAvailableSlots: 100 - used },
      workflowTaskSlotsInfo: { currentUsedSlots: 0, currentAvailableSlots: 40 },
    },
  }
}

/** A server that knows these workers, two on each page, and has a backlog in one queue. */
function serverWith(workers: object[], pollers: object[] = []): Partial<Client> {
  const listWorkers = async ({ nextPageToken }: { nextPageToken?: Uint8Array }): Promise<object> => {
    const from = nextPageToken?.[0] ?? 0
    const isMore = from + 2 < workers.length
    return {
      workersInfo: workers.slice(from, from + 2),
      nextPageToken: isMore ? Uint8Array.of(from + 2) : new Uint8Array(),
    }
  }
  const describeTaskQueue = async ({ taskQueue }: { taskQueue: { name: string } }): Promise<object> => ({
    pollers: taskQueue.name === 'crucible.ec2' ? pollers : [],
    stats:
      taskQueue.name === 'crucible.ec2'
        ? { approximateBacklogCount: 3, approximateBacklogAge: { seconds: 4, nanos: 5e8 } }
        : {},
  })
  return { workflowService: { listWorkers, describeTaskQueue } as unknown as Client['workflowService'] }
}

describe('the list of workers', () => {
  it('has each process once for each role, and the load of each queue over all of them', async () => {
    world.client = serverWith([
      heard('crucible.ec2', { used: 5 }),
      heard('crucible.ec2.watch', { used: 30 }),
      heard('crucible.ec2', { host: 'b', used: 2, status: 2 }),
      heard('crucible'),
    ])
    const { workers, queues } = await workerList(world.context, ['local'])
    expect(workers).toEqual([
      { ...PROCESS, role: 'orchestrator' },
      { ...PROCESS, role: 'ec2' },
      { ...PROCESS, role: 'ec2', host: 'b', isStopping: true },
    ])
    expect(
      queues.map(({ queue, type, workers, slots, waiting, oldestMs }) => [
        queue,
        type,
        workers,
        `${slots.used}/${slots.total}`,
        waiting,
        oldestMs,
      ]),
    ).toEqual([
      ['crucible', 'workflow', 1, '0/40', 0, 0],
      ['crucible', 'activity', 1, '0/100', 0, 0],
      ['crucible.local', 'activity', 0, '0/0', 0, 0],
      ['crucible.local.watch', 'activity', 0, '0/0', 0, 0],
      ['crucible.ec2', 'activity', 2, '7/200', 3, 4_500],
      ['crucible.ec2.watch', 'activity', 1, '30/100', 0, 0],
    ])
  })

  it('has a process that polls before its first report, and none whose polls are over', async () => {
    const poller = (pid: number, agoMs: number): object => ({
      identity: `ec2@a?version=0.1.0&pid=${pid}&started=1`,
      lastAccessTime: timestamp(NOW - agoMs),
    })
    world.client = serverWith([heard('crucible.ec2')], [poller(7, 500), poller(8, 2_000), poller(9, 100_000)])
    const { workers, queues } = await workerList(world.context, [])
    expect(workers).toEqual([
      { ...PROCESS, role: 'ec2' },
      { ...PROCESS, role: 'ec2', pid: 8, startedAtMs: null, heardAtMs: NOW - 2_000 },
    ])
    expect(queues.find(({ queue }) => queue === 'crucible.ec2')).toMatchObject({ workers: 2 })
  })

  it('has the queue of launches only where it is served', async () => {
    world.client = serverWith([heard('crucible.lambda.launch'), heard('crucible.local')])
    const { queues } = await workerList(world.context, [])
    expect(queues.filter(({ queue }) => queue.endsWith('.launch'))).toMatchObject([
      { queue: 'crucible.lambda.launch', workers: 1 },
    ])
  })

  it.each([
    ['is silent for minutes', { agoMs: 140_000 }],
    ['has shut down', { status: 3 }],
  ])('leaves out a worker that %s', async (_, worker) => {
    world.client = serverWith([heard('crucible', worker)])
    const { workers, queues } = await workerList(world.context, [])
    expect(workers).toEqual([])
    expect(queues[0]).toMatchObject({ queue: 'crucible', workers: 0 })
  })

  it('names a worker that does not report itself as ours do by its queue and host', async () => {
    world.client = serverWith([
      {
        workerHeartbeat: {
          taskQueue: 'others',
          workerIdentity: '5@c',
          hostInfo: { hostName: 'c', processId: '5' },
          status: 1,
          startTime: timestamp(NOW - 1_000),
        },
      },
    ])
    expect((await workerList(world.context, [])).workers).toMatchObject([
      { role: 'others', host: 'c', pid: 5, version: '' },
    ])
  })
})

const PROCESS = {
  host: 'a',
  pid: 7,
  version: '0.1.0',
  startedAtMs: NOW - 60_000,
  heardAtMs: NOW - 1_000,
  isStopping: false,
}
