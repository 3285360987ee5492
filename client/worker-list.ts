import type { Client, WorkflowService } from '@temporalio/client'
import {
  backendQueue,
  launchQueue,
  ORCHESTRATOR_QUEUE,
  ORCHESTRATOR_ROLE,
  roleServing,
  watchQueue,
} from '../core/queues'
import { SECOND_MS } from '../core/time/time'
import { parseIdentity } from '../service/worker-identity'
import { msOf, POLL_FRESH_MS, QUEUE_TYPES, type QueueType } from './clock'
import type { Context } from './context'

/** Tasks of a kind that a worker does at the same time. */
interface Slots {
  used: number
  total: number
}

/** A process that runs workers of one role. Times are by the server's clock, in Unix milliseconds. */
export interface WorkerProcess {
  /** `orchestrator`, or the name of a backend. */
  role: string
  host: string
  pid: number
  /** Version of this product; empty if the worker does not report it. */
  version: string
  /** Null until its first report, which comes some seconds after its first poll. */
  startedAtMs: number | null
  /** When the server last heard of it. */
  heardAtMs: number
  isStopping: boolean
}

/** A task queue and those who serve it. */
export interface QueueLoad {
  queue: string
  type: QueueType
  /** Processes that serve it. */
  workers: number
  slots: Slots
  /** Tasks that wait for a worker, and the age of the oldest one. */
  waiting: number
  oldestMs: number
}

export interface WorkerList {
  workers: WorkerProcess[]
  queues: QueueLoad[]
}

/** A worker is silent for longer only if it is gone: it reports itself every 15 s, one of another version every minute. */
const LOST_AFTER_MS = 130 * SECOND_MS
const PAGE_SIZE = 1_000
/** `temporal.api.enums.v1.WorkerStatus.WORKER_STATUS_RUNNING` and `WORKER_STATUS_SHUTDOWN` */
const RUNNING = 1
const SHUT_DOWN = 3

/** Which slots do the tasks of a queue of that type. */
const SLOTS_OF = { workflow: 'workflowTaskSlotsInfo', activity: 'activityTaskSlotsInfo' } as const

type Heartbeat = NonNullable<
  NonNullable<Awaited<ReturnType<WorkflowService['listWorkers']>>['workersInfo']>[number]['workerHeartbeat']
>

/**
 * All workers of the deployment's namespace that the server has heard of recently, and the load of the queues of the orchestrator and of
 * these backends, whether served or not. Throws `unavailable` when the server does not answer.
 */
export async function workerList(context: Context, backends: readonly string[]): Promise<WorkerList> {
  const client = await context.temporal()
  const { namespace } = context.config.temporal
  const nowMs = context.now()
  const heard = (await heartbeats(client, namespace)).filter((each) => isPresent(each, nowMs))
  const served = heard.map(({ taskQueue }) => taskQueue ?? '')
  const queues: [queue: string, type: QueueType][] = [
    [ORCHESTRATOR_QUEUE, 'workflow'],
    [ORCHESTRATOR_QUEUE, 'activity'],
    ...[...new Set([...backends, ...served.map(roleServing).filter(isBackend)])].flatMap((backend) =>
      [backendQueue(backend), watchQueue(backend), launchQueue(backend)]
        // Only accounts that limit their launches have a queue for them.
        .filter((queue) => queue !== launchQueue(backend) || served.includes(queue))
        .map((queue): [string, QueueType] => [queue, 'activity']),
    ),
  ]
  const loads = await Promise.all(
    queues.map(async ([queue, type]) => {
      const serving = heard.filter(({ taskQueue }) => taskQueue === queue)
      return loadOf(client, { namespace, queue, type, serving, nowMs })
    }),
  )
  const polling = loads.flatMap(({ polling }) => polling)
  return { workers: sorted([...polling, ...heard.map(processOf)]), queues: loads.map(({ load }) => load) }
}

async function heartbeats(client: Client, namespace: string): Promise<Heartbeat[]> {
  const all: Heartbeat[] = []
  let nextPageToken: Uint8Array | undefined
  do {
    const page = await client.workflowService.listWorkers({ namespace, pageSize: PAGE_SIZE, nextPageToken })
    for (const { workerHeartbeat } of page.workersInfo ?? []) if (workerHeartbeat) all.push(workerHeartbeat)
    nextPageToken = page.nextPageToken?.length ? page.nextPageToken : undefined
  } while (nextPageToken !== undefined)
  return all
}

function isPresent({ status, heartbeatTime, startTime }: Heartbeat, nowMs: number): boolean {
  return (status as number) !== SHUT_DOWN && msOf(heartbeatTime ?? startTime) > nowMs - LOST_AFTER_MS
}

function isBackend(role: string | undefined): role is string {
  return role !== undefined && role !== ORCHESTRATOR_ROLE
}

function processOf({
  workerIdentity,
  taskQueue,
  hostInfo,
  status,
  startTime,
  heartbeatTime,
}: Heartbeat): WorkerProcess {
  // Workers that share a connection report one identity, which has the role of one of them.
  const own = parseIdentity(workerIdentity ?? '')
  return {
    role: roleServing(taskQueue ?? '') ?? taskQueue ?? '',
    host: own?.host ?? hostInfo?.hostName ?? '',
    pid: own?.process.pid ?? Number(hostInfo?.processId ?? 0),
    version: own?.version ?? '',
    startedAtMs: msOf(startTime),
    heardAtMs: msOf(heartbeatTime ?? startTime),
    isStopping: (status as number) !== RUNNING,
  }
}

function keyOf({ role, host, pid }: WorkerProcess): string {
  return [role === ORCHESTRATOR_ROLE ? '' : role, host, String(pid).padStart(10)].join(' ')
}

/** Each process once for each role, although it serves several queues; the last one of the list says the most. */
function sorted(all: readonly WorkerProcess[]): WorkerProcess[] {
  const byKey = new Map(all.map((one) => [keyOf(one), one]))
  return [...byKey.values()].sort((a, b) => keyOf(a).localeCompare(keyOf(b)))
}

/** The load of a queue, and the processes that poll it: the server knows those some seconds before their first report. */
async function loadOf(
  client: Client,
  {
    namespace,
    queue,
    type,
    serving,
    nowMs,
  }: { namespace: string; queue: string; type: QueueType; serving: Heartbeat[]; nowMs: number },
): Promise<{ load: QueueLoad; polling: WorkerProcess[] }> {
  const { pollers, stats } = await client.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: QUEUE_TYPES[type],
    reportStats: true,
  })
  const polling = (pollers ?? [])
    .filter(({ lastAccessTime }) => msOf(lastAccessTime) > nowMs - POLL_FRESH_MS)
    .flatMap(({ identity, lastAccessTime }) => pollerOf(queue, identity ?? '', msOf(lastAccessTime)))
  const slots = serving.map((worker) => worker[SLOTS_OF[type]])
  const used = sum(slots.map((each) => each?.currentUsedSlots ?? 0))
  const load = {
    queue,
    type,
    workers: new Set([...polling, ...serving.map(processOf)].map(keyOf)).size,
    slots: { used, total: used + sum(slots.map((each) => each?.currentAvailableSlots ?? 0)) },
    waiting: Number(stats?.approximateBacklogCount ?? 0),
    oldestMs: msOf(stats?.approximateBacklogAge),
  }
  return { load, polling }
}

function pollerOf(queue: string, identity: string, heardAtMs: number): WorkerProcess[] {
  const own = parseIdentity(identity)
  if (own === undefined) return []
  const { host, version, process } = own
  const role = roleServing(queue) ?? queue
  return [{ role, host, pid: process.pid, version, startedAtMs: null, heardAtMs, isStopping: false }]
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
